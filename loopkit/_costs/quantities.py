"""Quantities as text: four digits and a unit."""

from __future__ import annotations


def seconds_text(seconds: float) -> str:
    """``2.054 ms``"""
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


def number_text(number: float) -> str:
    """``68,719,476,736`` or, of more than twelve digits, ``1.1e+15``."""
    return f"{number:,.0f}" if number < 1e12 else f"{number:.4g}"


def bytes_text(number: float) -> str:
    """``201.3 MB``: powers of 1000, as data sheets have them."""
    return _scaled(number, "B")


def rate_text(rate: float, unit: str) -> str:
    """``3.352 TB/s``, ``33.45 T instructions/s``"""
    return _scaled(rate, "B" if unit == "bytes" else f" {unit}") + "/s"


def _scaled(number: float, unit: str) -> str:
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= factor * 0.9995:
            return f"{number / factor:.4g} {prefix}{unit.lstrip() if unit == 'B' else unit}"
    return f"{number:.4g} {unit.strip()}"
