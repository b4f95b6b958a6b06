"""Kernels under hostile names: what a user calls things changes no answer."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from campaign.naming import Renaming, chosen
from seams import registered_transforms as transforms

import loopkit as lk


def names_of(kernel: lk.Kernel) -> list[str]:
    """The names that the user of a kernel gave."""
    found = [*kernel.all_inames, *(a.name for a in kernel.args)]
    found += [t.name for t in kernel.temporaries if t.made_by is None]
    found += [r.name for r in kernel.substitutions]
    return list(dict.fromkeys(found))


def hostile(kernel: lk.Kernel, seed: object) -> Renaming:
    """Names for those of a kernel, chosen by chance, to be mistaken for one another."""
    names = names_of(kernel)
    # What a reduction makes is called so, too: then it is no name of the user's alone.
    kept = {n: n for n in names if n == "acc"}
    others = [n for n in names if n not in kernel.all_inames and n not in kept]
    return Renaming(kept | chosen(random.Random(f"hostile {seed}"), kernel.all_inames, others))


_MAKERS = ("make_kernel", "GlobalArg", "ArrayArg", "ValueArg", "TemporaryVariable")


@contextmanager
def spoken(renaming: Renaming) -> Iterator[None]:
    """Kernels that are made meanwhile, and steps taken, are told in the new words."""
    patches = [mock.patch.object(lk, n, renaming.call(getattr(lk, n))) for n in _MAKERS]
    # Only what a test says is said anew, not what one transform asks of another.
    busy: list[None] = []

    def method(function: Callable[..., Any]) -> Callable[..., Any]:
        def apply(kernel: lk.Kernel, *args: Any, **kwargs: Any) -> Any:
            if busy:
                return function(kernel, *args, **kwargs)
            busy.append(None)
            try:
                return function(kernel, *renaming.value(args), **renaming.value(kwargs))
            finally:
                busy.pop()

        return apply

    for name, function in transforms.items():
        patches.append(mock.patch.object(lk.Kernel, name, method(function)))
    for patch in patches:
        patch.start()
    try:
        yield
    finally:
        for patch in reversed(patches):
            patch.stop()


def tokens(text: str) -> list[str]:
    """The words and signs of a text, sorted: names decide the order of some things."""
    return sorted(re.findall(r"\w+|[^\w\s]", text))


# {{{ kernels in which names that are mistaken for one another do harm


def skewed(n: str, m: str) -> lk.Kernel:
    """Each row comes from the row above, one step to the right: docs/checking.md's example."""
    return lk.make_kernel(
        f"{{ [i, j]: 1 <= i < {n} and 0 <= j < {m} - 1 }}",
        "a[i, j] = (a[i - 1, j] + a[i - 1, j + 1]) / 2 {id=step}",
        dtypes={"a": "float32"},
        assumptions=f"{n}, {m} >= 2",
    )


def written(name: str) -> lk.Kernel:
    """A read of what was written under the same condition on a size; that is right."""
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < p and 0 <= k < p }",
        f"<> t[i] = a[i] {{if=i < {name}}}\nb[k] = t[k] {{if=k < {name}}}",
        dtypes={"a": "float32"},
        assumptions=f"{name} >= 1",
    )


def unwritten(name: str) -> lk.Kernel:
    """A read of what nothing has written, under a condition on a size; that is an error."""
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < p and 0 <= k < p }",
        f"<> t[i] = a[i] {{if=i == 0}}\nb[k] = t[k] {{if=k < {name}}}",
        dtypes={"a": "float32"},
        assumptions=f"{name} >= 1",
    )


# }}}
