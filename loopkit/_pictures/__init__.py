"""Pictures of a schedule: data computed from the iteration domains, and drawing code."""
