"""The text above the function: headers, and helpers whose definitions are checked literally.

The proof assumes that ``lk_floordiv`` is a quotient rounded down, ``lk_max`` a maximum that
propagates NaN, and so on. Tests establish this by executing the helpers; this module checks that
the text defines them in exactly those words. After changing a helper, review its meaning, then
update its digest below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256

from loopkit._promotion import components_of
from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.types import C_TYPES, PIECES, record_called

DIGESTS = {
    "lk_floordiv": "0cfd8c2d44cc94ee",
    "lk_mod": "e7cbd5a2167910e8",
    "lk_floordiv.float": "13c18a9edf071aca",
    "lk_floordiv.double": "6ca3dfd22b524489",
    "lk_shl": "24b585c3e62d2fa7",
    "lk_shr": "f411909e7109db56",
    "lk_ipow": "8a149e3b0253dc7f",
    "lk_popcount": "fc30dda97b1230cf",
    "lk_clz": "24927ac4703eacb5",
    "lk_ffs": "ea25d8b2a8adb570",
    "lk_brev": "cafca1b6000ce8ea",
    "lk_power": "a5112910c8f684bd",
    "lk_abs": "f24b86a41d76dcd8",
    "lk_sign": "baa2970974b1e6c6",
    "lk_compare": "e87b1dded441183b",
    "lk_max": "dc12bdee38da6337",
    "lk_min": "cbae2ea967413d95",
    "lk_complex64": "afb5957c89dd721c",
    "lk_complex64.functions": "f66555c9f00cd8e1",
    "lk_complex128": "8be76741441cd34e",
    "lk_complex128.functions": "3b42ed6cfe9bd8c7",
    "lk_complex.convert": "e64c8545dfcc430c",
    "lk_atomic": "628d158f7864bb0b",
    "lk_publish": "4d1783654d97445e",
    "lk_await": "479b11faf06a9122",
    "lk_flagged": "486e1e24a810b005",
    "lk_value": "775f42fb6d19b580",
    "lk_publish_word": "6a7ea664e84a740d",
    "lk_await_word": "3b07e03b1c28b2ce",
    "lk_atomic_add": "c22ce7212a6d978d",
    "lk_atomic_add_parts": "5273eccaceae2472",
    "lk_atomic_mul": "1138f29b33b0aaf0",
    "lk_atomic_mul_half": "4f0fc66b55fa283f",
    "lk_atomic_max": "1609734597823a90",
    "lk_atomic_max_real": "f8d038e61c358879",
    "lk_atomic_max_half": "dba3f98fcd95feee",
    "lk_atomic_min": "616dc4433ecb6419",
    "lk_atomic_min_real": "ac5c86d60f7e4464",
    "lk_atomic_min_half": "6ab2151dc0100b27",
    "lk_atomic_and": "b282c948c509b943",
    "lk_atomic_or": "5108f29d0274c9c7",
    "lk_atomic_xor": "f154e02dae9a3437",
}
"""Digests of definitions, without their comments and however they are laid out."""

_NAMES = {value: name for name, value in DIGESTS.items()}
_DIRECTIVES = {
    "#include <cuda_fp16.h>": "cuda_fp16.h",
    "#include <cuda_bf16.h>": "cuda_bf16.h",
    "#define LK_INFINITY __int_as_float(0x7f800000)": "LK_INFINITY",
    "#define LK_NAN __int_as_float(0x7fc00000)": "LK_NAN",
}
_STRUCT = re.compile(r"struct (\w+) \{ ((?:[\w ]+; )+)\};", re.ASCII)
_BEFORE = {
    "lk_complex64.functions": ("lk_complex64",),
    "lk_complex128.functions": ("lk_complex128",),
    "lk_complex.convert": ("lk_complex64", "lk_complex128"),
    **dict.fromkeys(
        ("lk_atomic_add", "lk_atomic_mul", "lk_atomic_mul_half", "lk_atomic_max", "lk_atomic_min"),
        ("lk_atomic",),
    ),
    **dict.fromkeys(("lk_atomic_and", "lk_atomic_or", "lk_atomic_xor"), ("lk_atomic",)),
    **dict.fromkeys(("lk_atomic_max_real", "lk_atomic_max_half"), ("lk_atomic", "lk_max")),
    **dict.fromkeys(("lk_atomic_min_real", "lk_atomic_min_half"), ("lk_atomic", "lk_min")),
}
"""What a definition takes from those above it."""


@lru_cache(maxsize=256)
def digest(block: str) -> str:
    """A hash of the definitions in a piece of text.

    Comments and whitespace do not count, except line ends of preprocessor directives.
    """
    lines = (" ".join(line.partition("//")[0].split()) for line in block.split("\n"))
    return sha256("\n".join(line for line in lines if line).encode()).hexdigest()[:16]


def without_own(above: tuple[str, ...], texts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The lines above the function, blank where definitions of the user's stand, word for word.

    Raises :class:`ReadError` where one stands there twice.
    """
    lines = [*above]
    for text in texts:
        size = len(text)
        places = [at for at in range(len(lines)) if tuple(lines[at : at + size]) == text]
        for at in places:
            lines[at : at + size] = [""] * size
        if len(places) > 1:
            raise ReadError(places[1] + 1, f"'{text[0].strip()}' is defined twice")
    return tuple(lines)


def definitions(above: tuple[str, ...]) -> frozenset[str]:
    """What the lines above the function define, by the names that the preamble has for it.

    Raises :class:`ReadError` for what loopkit does not put there, or not so.
    """
    found: set[str] = set()
    block: list[tuple[int, str]] = []
    for number, line in enumerate((*above, ""), 1):
        if line.strip():
            if not line.lstrip().startswith("//"):
                block.append((number, line))
            continue
        for first, name in _named(block):
            if name in found:
                raise ReadError(first, f"'{name}' is defined twice")
            if not found.issuperset(_BEFORE.get(name) or _parts(name)):
                raise ReadError(first, f"'{name}' uses a function that is not defined above it")
            found.add(name)
        block = []
    return frozenset(found)


def _named(block: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """What a block defines and where: a helper, or directives line by line."""
    if not block:
        return []
    first, text = block[0]
    if len(block) == 1 and _is_record(text):
        return [(first, text.split()[1])]
    if text.strip() in _DIRECTIVES:
        pieces = [(number, _DIRECTIVES.get(line.strip(), "")) for number, line in block]
    else:
        name = _NAMES.get(digest("\n".join(line for _, line in block)))
        pieces = [(first, name or "")]
    unknown = [number for number, name in pieces if not name]
    if unknown:
        raise ReadError(unknown[0], "the text defines what the proof does not know")
    return pieces


def _is_record(line: str) -> bool:
    """Whether a line defines a record as its name says."""
    match = _STRUCT.fullmatch(line)
    record = record_called(match[1]) if match else None
    if match is None or record is None:
        return False
    fields = (field.rpartition(" ") for field in match[2].split("; ")[:-1])
    due = [(name, C_TYPES[kind]) for name, kind in components_of(record).items()]
    return due == [(name, ctype) for ctype, _, name in fields]


def _parts(name: str) -> set[str]:
    """What the components of a record take from above it."""
    record = record_called(name)
    kinds = components_of(record).values() if record else ()
    return {PIECES[kind] for kind in kinds if kind in PIECES}
