"""Faults in how statements are printed, and in what a call checks."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import numpy as np
from refusals.case import do

import loopkit as lk
from faults import kernels, programs
from faults.planting import Patch, fault
from faults.rewording import reworded
from loopkit import AddressSpace

# {{{ values


def text(pattern: str, replacement: str) -> Patch:
    """A statement is printed in another way."""

    def make(original: Any) -> Any:
        def change(text: str) -> str:
            return re.sub(pattern, replacement, text, count=1)

        return lambda self, *about: reworded(original(self, *about), change)

    return Patch("codegen.values:ValueLowering.assignment", make)


fault(
    "values: an update is printed as an assignment",
    kernels.row_sums,
    None,
    text(r"\+=", "="),
    sizes={"n": 3},
)
fault(
    "values: a sum is printed as a difference",
    kernels.added,
    None,
    text(r" \+ ", " - "),
    sizes={"n": 3},
)
fault(
    "values: a constant is printed with another value",
    kernels.stencil,
    None,
    text(r"2\.0f", "2.5f"),
    sizes={"n": 5},
)
fault(
    "values: a sum starts from one",
    kernels.row_sums,
    None,
    text(r"0\.0f", "1.0f"),
    sizes={"n": 3},
)
fault(
    "values: an access is printed twice, another not at all",
    kernels.stencil,
    None,
    text(r"a\[i \+ 1\]", "a[i - 1]"),
    sizes={"n": 5},
)
fault(
    "values: parentheses are lost",
    programs.distributed,
    None,
    text(r"\((a\[i\] \+ 1\.0f)\)", r"\1"),
    sizes={"n": 5},
)
fault(
    "values: copies for each value of an ilp iname are not made",
    kernels.through_scalar,
    None,
    Patch("codegen.prepare:_expand_private", lambda f: lambda kernel, iname: kernel),
    chain=(do("tag_inames", "j:ilp"),),
)

# }}}

# {{{ calls


def _narrowed(original: Any) -> Any:
    """Temporaries get a narrower type."""

    def infer(kernel: Any) -> Any:
        found = original(kernel)
        return found.with_(
            temporaries=tuple(
                dataclasses.replace(t, dtype=np.dtype("int8")) for t in found.temporaries
            )
        )

    return infer


fault(
    "values: temporaries are declared too narrow",
    kernels.through_scalar,
    None,
    Patch("codegen.prepare:infer_types", _narrowed),
)
fault(
    "values: a rule's arguments are exchanged",
    kernels.rules,
    None,
    Patch(
        "codegen.prepare:expand_rules",
        lambda f: (
            lambda kernel: f(
                kernel.with_(
                    substitutions=tuple(
                        dataclasses.replace(r, arguments=tuple(reversed(r.arguments)))
                        for r in kernel.substitutions
                    )
                )
            )
        ),
    ),
    sizes={"n": 4},
)
fault(
    "memory: private where threads exchange values",
    programs.staged_anywhere,
    None,
    Patch(
        "codegen.prepare:decide_address_spaces",
        lambda f: (
            lambda kernel: kernel.with_(
                temporaries=tuple(
                    dataclasses.replace(t, address_space=AddressSpace.PRIVATE)
                    for t in kernel.temporaries
                )
            )
        ),
    ),
    chain=(do("tag_inames", "i:l.0, j:l.0"),),
)
fault(
    "memory: shared where each thread has its own value",
    kernels.through_scalar,
    None,
    Patch(
        "codegen.prepare:decide_address_spaces",
        lambda f: (
            lambda kernel: kernel.with_(
                temporaries=tuple(
                    dataclasses.replace(t, address_space=AddressSpace.LOCAL)
                    for t in kernel.temporaries
                )
            )
        ),
    ),
    chain=(do("tag_inames", "i:l.1, j:l.0"),),
)


def _swapped_parameters(original: Any) -> Any:
    """The text names two pointers in another order than a launch passes them."""

    def signature(params: Any, *rest: Any) -> Any:
        names = [p.name for p in params]
        a, b = names.index("a"), names.index("b")
        params = list(params)
        params[a], params[b] = params[b], params[a]
        return original(params, *rest)

    return signature


fault(
    "calls: pointers in another order than the text has them",
    kernels.handed_on,
    None,
    Patch("codegen.lower:signature", _swapped_parameters),
    sizes={"n": 4},
)
fault(
    "calls: assumptions are not checked",
    programs.fours,
    None,
    Patch("codegen.lower:checks", lambda f: lambda assumptions: ()),
    chain=(do("split_iname", "i", 4),),
    sizes={"n": 8},
    evidence=lambda kernel: _runs_for(kernel, 6),
)


def _runs_for(kernel: Any, n: int) -> str | None:
    """A call with a size that the assumptions exclude."""
    a, b = np.ones(n, "f4"), np.ones(n, "f4")
    try:
        kernel.executor("host", sanitize=True)(a=a, b=b)
    except lk.AssumptionError:
        return None
    except lk.LoopkitError as error:
        return f"{type(error).__name__}: {error}"
    return f"it runs for n = {n}"


def _short_scratch(original: Any) -> Any:
    """Less memory is allocated for a global temporary than it needs."""

    def parameter(kernel: Any, array: Any, role: str) -> Any:
        found = original(kernel, array, role)
        if role != "scratch":
            return found
        return dataclasses.replace(found, shape=(found.shape[0] - 4, *found.shape[1:]))

    return parameter


fault(
    "calls: too little memory for a global temporary",
    programs.through_global,
    None,
    Patch("codegen.functions:_array_parameter", _short_scratch),
    sanitize=True,
)


def _crossed_strides(original: Any) -> Any:
    """Strides of an array that does not lie contiguously belong to the wrong axes."""

    def with_strides(kernel: Any, strided: Any) -> Any:
        found, params = original(kernel, strided)
        axes = [p.axis for p in params]
        return found, [
            dataclasses.replace(p, axis=axis)
            for p, axis in zip(params, reversed(axes), strict=True)
        ]

    return with_strides


fault(
    "calls: strides of axes exchanged",
    kernels.moved,
    None,
    Patch("codegen.lower:_with_strides", _crossed_strides),
    sizes={"n": 6},
    strided="a",
    values=lambda sizes: {"a": np.asfortranarray(np.arange(24.0, dtype="f4").reshape(6, 4))},
)

# }}}
