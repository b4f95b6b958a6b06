"""Names to be mistaken for others: all that loopkit once called something itself, and more.

A :class:`Renaming` says everything that is said of a kernel in other words: texts, arguments of
transforms, the generated code.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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


def chosen(
    rng: random.Random, inames: Sequence[str], others: Sequence[str], more: Sequence[str] = ()
) -> dict[str, str]:
    """Hostile names: some for inames, half of which stay what they are, and some for all else.

    Beside those that instances and cells once had they are taken from ``more``.
    """
    words = [*WORDS, *more]
    rng.shuffle(words)
    found = {i: i if rng.random() < 0.5 else words.pop() for i in inames}
    labelled = [f"{i}__{label}" for i in found.values() for label in LABELS]
    rng.shuffle(labelled)
    for name in others:
        found[name] = (labelled if labelled and rng.random() < 0.6 else words).pop()
    return found
