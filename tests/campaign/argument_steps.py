"""Arguments drawn at random for the transforms of arguments."""

from __future__ import annotations

import random
from typing import Any

from loopkit import Kernel

from .naming import WORDS
from .variations import FILLED

Arguments = dict[str, Any] | None


def rename_argument(r: random.Random, knl: Kernel) -> Arguments:
    """A name of its own, that of a temporary or an iname, or one that looks like loopkit's."""
    free = [name for name in knl.arg_by_name if name not in FILLED]
    if not free:
        return None
    old = r.choice(free)
    taken = [*knl.temporary_by_name, *knl.all_inames]
    new = [f"{old}_new", f"{old}_s", "_" + old, r.choice(WORDS), *taken[:1]]
    return {"old_name": old, "new_name": r.choice(new)}


def set_argument_order(r: random.Random, knl: Kernel) -> Arguments:
    names = [*knl.arg_by_name]
    return {"arg_names": r.sample(names, len(names))}


def remove_unused_arguments(r: random.Random, knl: Kernel) -> Arguments:
    return {}
