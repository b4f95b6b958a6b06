"""Faults in what is saved behind a launch, and where it is loaded again."""

from __future__ import annotations

import save_kernels as k
from refusals.case import do
from seams import sets as _sets

from faults.planting import Patch, fault

THREADS = (do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"),)
STEP = do("save_and_reload_temporaries", "id:first", "id:second")
PARTED = do("save_and_reload_temporaries", "id:first", "id:second", within_inames=())
SIZES = {"n": 13}


def _values(name: str, made: object) -> Patch:
    """A method of what is known of the values of one temporary."""
    return Patch(f"transforms.save:_Values.{name}", made)  # type: ignore[arg-type]


fault(
    "save_and_reload_temporaries: it saves in front of the write",
    k.chosen,
    STEP,
    Patch("transforms.save:span", lambda f: lambda *a: (f(*a)[0], f(*a)[1] - 1)),
    chain=THREADS,
    sizes=SIZES,
)
fault(
    "save_and_reload_temporaries: it loads behind the first use",
    k.power,
    STEP,
    Patch("transforms.save:span", lambda f: lambda *a: (f(*a)[1] + 1, f(*a)[1])),
    chain=THREADS,
    sizes=SIZES,
)
fault(
    "save_and_reload_temporaries: all threads have one place",
    k.power,
    STEP,
    _values("index", lambda f: lambda self, iname: 0 if "inner" in iname else f(self, iname)),
    chain=THREADS,
    sizes=SIZES,
)
fault(
    "save_and_reload_temporaries: all iterations have one place",
    k.power,
    PARTED,
    _values("index", lambda f: lambda self, iname: 0),
    sizes=SIZES,
)
fault(
    "save_and_reload_temporaries: a place too few",
    k.tiles,
    PARTED,
    _values("extent", lambda f: lambda self, iname: (f(self, iname)[0], f(self, iname)[1] - 1)),
    sizes=SIZES,
    sanitize=True,
)
fault(
    "save_and_reload_temporaries: one cell is left out",
    k.tiles,
    STEP,
    _values(
        "cells",
        lambda f: (
            lambda self, sides, names, place: (
                f(self, sides, names, place) - _sets.equality(names[0], 2)
            )
        ),
    ),
    chain=THREADS,
    sizes=SIZES,
)
fault(
    "save_and_reload_temporaries: only where it began is known of a value",
    k.stepped,
    do("save_and_reload_temporaries"),
    _values(
        "flows",
        lambda f: lambda self: (c for c in f(self) if self.launches[c.writer.id].number < 1),
    ),
    chain=(do("tag_inames", "i: l.0"),),
    sizes={"n": 3},
)

# {{{ what data decide

IN_LOOP = do("save_and_reload_temporaries", "id:first", "id:second", within_inames=("i",))
IN_LOOPS = do("save_and_reload_temporaries", "id:first", "id:second", within_inames=("i", "j"))

for case, kernel, step in (("a branch", k.either, IN_LOOP), ("a loop", k.broken_off, IN_LOOPS)):
    fault(
        f"save_and_reload_temporaries: what {case} leaves is saved in front of the write",
        kernel,
        step,
        Patch("transforms.save:span", lambda f: lambda *a: (f(*a)[0], f(*a)[0] - 1)),
        sizes=SIZES,
    )
    fault(
        f"save_and_reload_temporaries: what {case} leaves is reloaded behind the first use",
        kernel,
        step,
        Patch("transforms.save:span", lambda f: lambda *a: (f(*a)[1] + 1, f(*a)[1])),
        sizes=SIZES,
    )

# }}}
