"""Kernels under other names: all that loopkit once called something itself, and more.

What a user calls things changes no answer.  A :class:`Renaming` says everything that a test says
of a kernel in other words: texts, arguments of transforms, the generated code.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import loopkit as lk
from loopkit._transform import _transforms


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


LABELS = _words("b x w s e R W K Q 1 2 o n p q m0 m1 m3 i0 i1 i2 earlier other")
"""What once told the instances of a pair apart, behind two underscores."""

WORDS = _words(
    """
    _g0 _g1 _g2 _l0 _l1 _l2 _g0__b _l0__b _l1__x _g0__x _cell0 _cell1 _cell_0 _cell_1
    _loopkit_value _loopkit_index _loopkit_other _loopkit_new_0 _loopkit_twin_i _quotient0
    _quotient1 _v_i _t_i _c_0 _c_1 _r_i _s_i _o_i _value0 _value_1 _i0_one _i0_two _i1_one _i _k _v
    _axis_0 axis_l_0 axis_g_0 _other_i _cell_of_i x_other earlier cell index word value
    _load _used _decide _0 _1 _2 i_prime kernel_ insn_
    """
)
"""Other words that loopkit made up once, and some that it might."""

_TOKEN = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?!\.\w)")
_MADE_FROM = ("fetch_", "compute_")


@dataclass(frozen=True)
class Renaming:
    """New names for the names of a kernel; what is made of a name follows it."""

    names: Mapping[str, str]

    def name(self, word: str) -> str:
        """What becomes of a word."""
        if word in self.names:
            return self.names[word]
        for start in _MADE_FROM:
            if word.startswith(start):
                return start + self.name(word[len(start) :])
        whole = max((n for n in self.names if word.startswith(n + "_")), key=len, default=None)
        return word if whole is None else self.names[whole] + word[len(whole) :]

    def text(self, text: str) -> str:
        """What becomes of a text: of the language, of a match, of C."""
        return _TOKEN.sub(lambda found: self.name(found[0]), text)

    def value(self, value: Any) -> Any:
        """What becomes of an argument."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (tuple, list, set, frozenset)):
            return type(value)(self.value(v) for v in value)
        if isinstance(value, Mapping):
            return {self.value(k): self.value(v) for k, v in value.items()}
        return value

    def call(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that is told everything in the new words."""

        def renamed(*args: Any, **kwargs: Any) -> Any:
            return function(*self.value(args), **self.value(kwargs))

        return renamed


def names_of(kernel: lk.Kernel) -> list[str]:
    """The names that the user of a kernel gave."""
    found = [*kernel.all_inames, *(a.name for a in kernel.args)]
    found += [t.name for t in kernel.temporaries if t.made_by is None]
    found += [r.name for r in kernel.substitutions]
    return list(dict.fromkeys(found))


def hostile(kernel: lk.Kernel, seed: object) -> Renaming:
    """Names for those of a kernel, chosen by chance, to be mistaken for one another."""
    rng = random.Random(f"hostile {seed}")
    words = rng.sample(WORDS, len(WORDS))
    # What a reduction makes is called so, too: then it is no name of the user's alone.
    chosen: dict[str, str] = {"acc": "acc"} if "acc" in names_of(kernel) else {}
    for iname in kernel.all_inames:
        chosen[iname] = iname if rng.random() < 0.5 else words.pop()
    labelled = [f"{i}__{label}" for i in chosen.values() for label in LABELS]
    rng.shuffle(labelled)
    for name in names_of(kernel):
        if name not in chosen:
            chosen[name] = labelled.pop() if rng.random() < 0.6 else words.pop()
    return Renaming(chosen)


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

    for name, function in _transforms.items():
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


def unwritten(name: str) -> lk.Kernel:
    """A read of what nothing has written, under a condition on a size; that is an error."""
    return lk.make_kernel(
        "{ [i, k]: 0 <= i < p and 0 <= k < p }",
        f"<> t[i] = a[i] {{if=i == 0}}\nb[k] = t[k] {{if=k < {name}}}",
        dtypes={"a": "float32"},
        assumptions=f"{name} >= 1",
    )


# }}}
