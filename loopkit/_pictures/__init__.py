"""Pictures of what a schedule does: data made from a kernel's sets, and what draws them."""
