"""The elements of a constant table as C text, and the way back.

Each element has exactly one spelling: integers are literals of their type, floating-point numbers
have the shortest digits that read back as the same value, and infinities and NaN are given by
their bit patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from loopkit import _promotion as dt
from loopkit.codegen.c.errors import ReadError

_SUFFIXES = {dt.UINT32: "u", dt.INT64: "LL", dt.UINT64: "ULL"}
_RAW = {dt.FLOAT16: "__half_raw", dt.BFLOAT16: "__nv_bfloat16_raw"}
_WIDTH = 92
"""Characters of elements in a line."""


def element_texts(dtype: dt.DType, data: bytes) -> list[str]:
    """Each element of some bytes, as C spells it."""
    text = _text_of(dtype)
    if dtype in dt.COMPLEXES:
        parts = element_texts(dt.real_of(dtype), data)
        return [f"{{{re}, {im}}}" for re, im in zip(parts[::2], parts[1::2], strict=True)]
    if dtype in _RAW:
        bits = np.frombuffer(data, np.uint16).tolist()
        return [f"{_RAW[dtype]}{{0x{b:04x}}}" for b in bits]
    return [text(value) for value in np.frombuffer(data, dtype)]


def table_lines(head: str, dtype: dt.DType, data: bytes) -> Iterator[str]:
    """``head = {...};`` in lines of a bearable length."""
    texts = element_texts(dtype, data)
    whole = f"{head} = {{{', '.join(texts)}}};"
    if len(whole) <= _WIDTH:
        yield whole
        return
    yield f"{head} = {{"
    line = ""
    for text in texts:
        if line and len(line) + len(text) > _WIDTH - 6:
            yield f"    {line.rstrip()}"
            line = ""
        line += f"{text}, "
    yield f"    {line.rstrip(', ')}"
    yield "};"


def read_elements(dtype: dt.DType, tokens: list[str], line: int) -> bytes:
    """The bytes of the elements that a sequence of tokens spells.

    Raises :class:`ReadError` for any spelling that :func:`element_texts` would not produce.
    """
    texts, depth = [""], 0
    for token in tokens:
        depth += (token in "({") - (token in ")}")
        if token == "," and depth == 0:
            texts.append("")
        else:
            texts[-1] += token
    try:
        parts = [_value(dtype, text) for text in texts]
        data = np.array(parts, np.uint16 if dtype in _RAW else dtype).tobytes()
    except (ValueError, OverflowError, TypeError):
        raise ReadError(line, f"these are no elements of type {dt.dtype_name(dtype)}") from None
    for own, text in zip(element_texts(dtype, data), texts, strict=True):
        if own.replace(" ", "") != text:
            raise ReadError(line, f"'{text}' is no element of type {dt.dtype_name(dtype)}")
    return data


def _value(dtype: dt.DType, text: str) -> Any:
    if dtype == dt.BOOL:
        return {"true": True, "false": False}.get(text, text == "")
    if dtype in _RAW:
        return int(text.removeprefix(_RAW[dtype]).strip("{}"), 16)
    if dtype in dt.COMPLEXES:
        re, im = text.strip("{}").split(",") if "(" not in text else _halves(text)
        real = dt.real_of(dtype)
        both = np.array([_value(real, re), _value(real, im)], real)
        return both.view(dtype)[0]
    if dtype in dt.INTEGERS:
        # The least of all is the one before it less one.
        first, *rest = text.removeprefix("-").split("-")
        sign = -1 if text.startswith("-") else 1
        return sign * int(first.rstrip("uL").rstrip("U")) - sum(int(r.rstrip("L")) for r in rest)
    if "(" in text:
        bits = int(text[text.index(",") + 1 : -1], 16)
        return np.array([bits], f"u{dtype.itemsize}").view(dtype)[0]
    return np.array([float(text.removesuffix("f"))]).astype(dtype)[0]


def _halves(text: str) -> tuple[str, str]:
    """The texts of the real and the imaginary part, split at the right comma."""
    inner, depth = text[1:-1], 0
    for place, sign in enumerate(inner):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            return inner[:place], inner[place + 1 :]
    raise ValueError(text)


def _text_of(dtype: dt.DType) -> Callable[[Any], str]:
    if dtype == dt.BOOL:
        return lambda value: "true" if value else "false"
    if dtype in dt.INTEGERS:
        suffix = _SUFFIXES.get(dtype, "")
        least = int(np.iinfo(dtype).min)
        if least and dtype.itemsize >= 4:  # C has no literal for it
            return lambda v: f"{v + 1}{suffix} - 1{suffix}" if v == least else f"{v}{suffix}"
        return lambda value: f"{value}{suffix}"
    suffix = "f" if dtype == dt.FLOAT32 else ""
    word, digits = ("float", 8) if suffix else ("double", 16)

    def text(value: Any) -> str:
        if not np.isfinite(value):
            bits = value.view(f"u{dtype.itemsize}")
            return f"__builtin_bit_cast({word}, 0x{int(bits):0{digits}x})"
        shortest = str(value) if suffix else repr(float(value))
        return (shortest if "." in shortest or "e" in shortest else shortest + ".0") + suffix

    return text
