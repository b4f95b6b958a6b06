"""Concrete values out of a set, the smallest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import islpy as isl

from loopkit import _points, _sets


def smallest_point(domain: isl.Set, sizes: Iterable[str], names: Sequence[str]) -> dict[str, int]:
    """A point of a set that is not empty: smallest sizes first, then smallest ``names``."""
    used = set(_sets.names_of(domain))
    order = [n for n in sorted(set(sizes)) if n in used]
    order += [n for n in names if n not in order]
    found = _points.smallest_point(_sets.project_onto(domain, order), order) or {}
    return {name: found.get(name, 0) for name in order}
