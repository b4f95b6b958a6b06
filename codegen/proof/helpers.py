"""What stands above the function: headers, and helpers whose meaning the proof knows.

The proof takes ``lk_floordiv`` for a quotient that rounds down, ``lk_max`` for a
maximum that keeps NaN, and so on.  That their definitions are these is tested by
computing with them; here it is made sure that the text defines them in just
those words.  Whoever changes a helper looks at its meaning anew, and then at the
digest below.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from hashlib import sha256

DIGESTS = {
    "lk_floordiv": "c18b5ba40189c0fb",
    "lk_mod": "86623d6000f00927",
    "lk_floordiv, lk_mod (float)": "d36183223cf26efa",
    "lk_floordiv, lk_mod (double)": "b35bb8966a434415",
    "lk_shl": "c425bd153eb1adb8",
    "lk_shr": "4a129740487e9725",
    "lk_ipow": "c0cf2e9410c9a084",
    "lk_power": "0879525ddc866a8b",
    "lk_abs": "f24b86a41d76dcd8",
    "lk_sign": "8fd680268eea0d5b",
    "lk_compare": "15bcd0a965aff875",
    "lk_max": "6bdb724b4a163642",
    "lk_min": "2e930a4bbf8bc317",
    "lk_complex64": "372df0bc0a41d0c3",
    "lk_complex64 (functions)": "f820725fa26e0cda",
    "lk_complex128": "92db8edd36e39129",
    "lk_complex128 (functions)": "e65cba83b8883fef",
    "lk_to_complex64, lk_to_complex128": "743d73724d53f502",
}
"""Digests of definitions, without their comments and however they are laid out."""

_KNOWN = frozenset(DIGESTS.values())
_DIRECTIVES = frozenset(
    (
        "#include <cuda_fp16.h>",
        "#include <cuda_bf16.h>",
        "#define LK_INFINITY __int_as_float(0x7f800000)",
        "#define LK_NAN __int_as_float(0x7fc00000)",
    )
)
_DIRECTIVE_WORDS = ("#include", "#define")


@lru_cache(maxsize=256)
def digest(block: str) -> str:
    """What tells the definitions in a piece of text from others."""
    code = " ".join(line.partition("//")[0] for line in block.split("\n"))
    return sha256(" ".join(code.split()).encode()).hexdigest()[:16]


def unknown_line(lines: tuple[str, ...]) -> int | None:
    """The first line above the function that is none of what loopkit puts there."""
    block: list[str] = []
    for number, line in enumerate(lines, 1):
        is_head = line.startswith('extern "C" __global__')
        if line.strip() and not is_head:
            block.append(line)
            continue
        if block:
            wrong = _unknown_in(block)
            if wrong is not None:
                return number - len(block) + wrong
        if is_head:
            return None
        block = []
    return None


_DEFINED_BY = {
    **dict.fromkeys(
        ("__half", "__half2float", "__float2half", "__double2half"), "#include <cuda_fp16.h>"
    ),
    **dict.fromkeys(
        ("__nv_bfloat16", "__bfloat162float", "__float2bfloat16"), "#include <cuda_bf16.h>"
    ),
}
"""The header of each word that is no helper's and no word of C's."""
_WORD = re.compile(r"\b(?:lk_\w+|LK_\w+|__\w+)")
_DEFINITION = re.compile(
    r"__forceinline__ [\w ]*?(\w+)\(|^struct (?:alignas\(.*\) )?(\w+) \{|^#define (\w+)"
)


def undefined_word(lines: tuple[str, ...], declared: Collection[str]) -> tuple[int, str] | None:
    """The first word that no line above its own defines, with its line.

    ``declared`` are the function's own names.
    """
    defined: set[str] = set()
    for number, line in enumerate(lines, 1):
        code = line.partition("//")[0]
        if code.startswith("#include"):
            defined |= {w for w, header in _DEFINED_BY.items() if header == code.strip()}
        defined.update(match[match.lastindex or 1] for match in _DEFINITION.finditer(code))
        for word in _WORD.findall(code):
            needed = word.startswith(("lk_", "LK_")) or word in _DEFINED_BY
            if needed and word not in defined and word not in declared:
                return number, word
    return None


def _unknown_in(block: list[str]) -> int | None:
    """The position of the first line of a block that is not known."""
    code = [at for at, line in enumerate(block) if not line.lstrip().startswith("//")]
    if not code:
        return None
    first = code[0]
    if block[first].startswith(_DIRECTIVE_WORDS):
        return next((at for at in code if block[at].strip() not in _DIRECTIVES), None)
    return None if digest("\n".join(block[first:])) in _KNOWN else first
