"""Texts: valid kernels, mutations of them, and soups of their words."""

from __future__ import annotations

import random
import re

KERNELS: list[tuple[str, str, dict[str, str]]] = [
    ("{ [i]: 0 <= i < n }", "c[i] = a[i] + b[i]", {"a, b": "float32"}),
    (
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        {"a, b, c": "float32"},
    ),
    (
        "{ [i, j]: 0 <= i < n and 0 <= j <= i }",
        "for i, j\n  <> t = a[j] if j < 5 else 0.5\n  c[i, j] = t*t {id=w, tags=x}\nend",
        {"a": "float64"},
    ),
    (
        "{ [i, j]: 0 < i < n - 1 and 0 < j < n - 1 }",
        "f(x, y) := a[x, y]\nc[i, j] = f(i - 1, j) + f(i + 1, j) - 2*f(i, j)",
        {"a": "float32"},
    ),
    (
        "{ [i, j]: 0 <= i < 64 and 0 <= j < 16 }",
        "for i, j\n  <float32> t[j] = a[i]*j {id=init}\n  c[i, j] = t[j] + 1 {dep=init}\nend",
        {"a": "float32"},
    ),
    (
        "{ [i]: 0 <= i < n }",
        "if i % 2 == 0\n  c[i] = max(a[i], 0)\nelse\n  c[i] = exp(a[i]) {id=odd}\nend",
        {"a": "float32"},
    ),
    ("{ [i]: 0 <= i < n }", "c[i] = x[i] // 3 + (i << 2)", {"x": "int64"}),
    ("{ [i]: 0 <= i < n }", "c[i] = a[i] + 1\n... nop\nd[i] = c[i]*2", {"a": "float16"}),
]
CONDITIONS = ["n >= 1", "n mod 16 = 0", "n, m, l >= 1", "n = 2*m and m >= 3", "n >= m >= 1"]

_WORDS = re.compile(r"[A-Za-z_]\w*|\d+|\s+|.", re.S)
_SOUP = [
    *"()[]{}<>=+-*/%&|^~!?:;,.#@$\"'\\\n\t ",
    *("**", "//", "<<", ">>", ":=", "==", "!=", "<=", ">=", "...", "->", "<>", "&&", "||"),
    *("i", "j", "n", "a", "c", "t", "x", "f", "sum", "max", "argmin", "for", "end", "if", "else"),
    *("elif", "with", "and", "or", "not", "mod", "exists", "floor", "ceil", "true", "nan", "inf"),
    *(
        "0",
        "1",
        "2",
        "-1",
        "0x10",
        "1e400",
        "1e-400",
        "1.5f",
        "99999999999999999999",
        "1j",
        "2**64",
    ),
    *(
        "{id=w}",
        "{dep=*}",
        "{if=i > 1}",
        "{tags=a:b}",
        "{atomic}",
        "<float32>",
        "<int99>",
        "float32(",
    ),
    *("... gbarrier", "... nop", "simul_reduce(", "reduce(sum, i, ", "é", "\ud800", "\0", "\u00b7"),
    "(" * 200,
]


def mutated(rng: random.Random, text: str) -> str:
    """``text`` with some of its words changed, dropped, doubled or exchanged."""
    words: list[str] = _WORDS.findall(text)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8])):
        at = rng.randrange(len(words) + 1)
        change = rng.randrange(6)
        if change == 0 or not words or at == len(words):
            words.insert(at, rng.choice(_SOUP))
        elif change == 1:
            del words[at]
        elif change == 2:
            words[at] = rng.choice(_SOUP)
        elif change == 3:
            words.insert(at, rng.choice(words))
        elif change == 4:
            other = rng.randrange(len(words))
            words[at], words[other] = words[other], words[at]
        else:
            start, stop = sorted((at, rng.randrange(len(words) + 1)))
            words[at:at] = words[start:stop] * rng.choice([1, 1, 2, 20])
    return "".join(words)


def soup(rng: random.Random) -> str:
    """Words without sense."""
    return rng.choice(["", " "]).join(rng.choice(_SOUP) for _ in range(rng.randrange(1, 30)))


def nearly(rng: random.Random, text: str) -> str:
    """``text``, a mutation of it, or no such thing at all."""
    chance = rng.random()
    if chance < 0.15:
        return text
    return soup(rng) if chance < 0.25 else mutated(rng, text)
