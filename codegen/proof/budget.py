"""What isl may spend on one question of the proof."""

from __future__ import annotations

OPERATIONS = 200_000
"""isl's own count of elementary steps for one question: seconds where it runs away.

Ordinary questions need a few hundred, the hardest of the gallery some ten thousand.
"""

ENOUGH = 20_000
"""What is still granted where several questions ran past their budget."""
