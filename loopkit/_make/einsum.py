"""Kernels from Einstein's summation convention."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from loopkit import _arguments as kind
from loopkit._called import fitting
from loopkit._errors import InvalidArgumentError, counted
from loopkit._kernel import Kernel
from loopkit._make.create import make_kernel
from loopkit._make.free_names import fresh_names
from loopkit._spelling import check_name, shown

_OPERANDS = re.compile(r"[A-Za-z]*(,[A-Za-z]*)*(->[A-Za-z]*)?")


@fitting
def make_einsum(spec: str, arg_names: str | Iterable[str], **knl_creation_kwargs: Any) -> Kernel:
    """Make a kernel from a formula in the notation of :func:`numpy.einsum`.

    ``make_einsum("ij,jk->ik", "a, b")`` is::

        { [i, j, k]: 0 <= i < Ni and 0 <= j < Nj and 0 <= k < Nk }
        out[i, k] = sum(j, a[i, j]*b[j, k])

    The inames are the letters of ``spec``, the result is ``out``, the length of an axis ``i`` is
    ``Ni``; what is called so already gets another name.  Letters that stand for one axis of an
    array named twice have one length.

    :arg spec: letters for the axes of each operand, separated by commas, and those of the result
        behind ``->``; without that, the letters that stand once, in alphabetical order.
    :arg arg_names: a name for each operand; one without axes is a number.
    :arg knl_creation_kwargs: further arguments of :func:`make_kernel`: ``dtypes``, ``name``, …
    :returns: the kernel, with no step taken.
    :raises InvalidArgumentError: where ``spec`` is malformed, or names and operands do not fit.
    """
    names = kind.names_in(kind.names("arg_names", arg_names))
    operands, result = _parsed(spec)
    if len(names) != len(operands):
        raise InvalidArgumentError(
            f"'{spec}' has {counted(len(operands), 'operand')}, "
            f"and is given {counted(len(names), 'name')}",
            instead="arg_names has a name for each operand",
        )
    if "out" in names:
        raise InvalidArgumentError(
            "no operand can be called 'out': the result is", instead="another name is free"
        )
    letters = tuple(dict.fromkeys("".join(operands)))
    lengths = _lengths(names, operands, letters)
    taken = {"out", *map(check_name, names)}
    inames = {letter: next(fresh_names(letter, taken)) for letter in letters}
    sizes = {
        letter: next(fresh_names(f"N{letter}", taken)) for letter in dict.fromkeys(lengths.values())
    }
    bounds = [f"0 <= {inames[i]} < {sizes[lengths[i]]}" for i in letters]
    domain = f"{{ [{', '.join(inames.values())}]: {' and '.join(bounds)} }}"
    factors = [_access(n, o, inames) for n, o in zip(names, operands, strict=True)]
    value = "*".join(factors)
    if summed := [inames[i] for i in letters if i not in result]:
        value = f"sum([{', '.join(summed)}], {value})"
    text = f"{_access('out', result, inames)} = {value}"
    return make_kernel(domain if letters else "{ : }", text, **knl_creation_kwargs)


def _parsed(spec: str) -> tuple[list[str], str]:
    """The letters of each operand, and of the result."""
    plain = kind.text("spec", spec).replace(" ", "")
    if "." in plain:
        raise InvalidArgumentError(
            f"spec '{spec}' leaves axes open, and a kernel has so many axes as its text says",
            instead="a letter for each axis, for example 'bij,bjk->bik'",
        )
    if _OPERANDS.fullmatch(plain) is None:
        raise InvalidArgumentError(
            f"spec is operands and a result, not {shown(spec)}",
            instead="letters for the axes of each, as in 'ij,jk->ik'",
        )
    left, arrow, result = plain.partition("->")
    operands = left.split(",")
    if not arrow:
        result = "".join(sorted(i for i in {*left} - {","} if left.count(i) == 1))
    for letter in result:
        if letter not in left:
            raise InvalidArgumentError(
                f"in '{spec}', the result has '{letter}', and no operand has",
                instead=f"a result has axes of its operands: {', '.join(sorted({*left} - {','}))}",
            )
        if result.count(letter) > 1:
            raise InvalidArgumentError(
                f"in '{spec}', the result has '{letter}' twice",
                instead="a kernel that writes a diagonal is made by make_kernel",
            )
    return operands, result


def _lengths(
    names: Sequence[str], operands: Sequence[str], letters: Sequence[str]
) -> dict[str, str]:
    """For each letter the one after which its length is called."""
    root = {letter: letter for letter in letters}
    axes: dict[str, str] = {}
    for name, operand in zip(names, operands, strict=True):
        before = axes.setdefault(name, operand)
        if len(before) != len(operand):
            raise InvalidArgumentError(
                f"'{name}' has {counted(len(before), 'axis', 'axes')} as '{before}' and "
                f"{len(operand)} as '{operand}'",
                instead="arrays of the same name are the same array: rename one of them",
            )
        for one, other in zip(before, operand, strict=True):
            first, second = sorted((root[one], root[other]), key=letters.index)
            root = {letter: first if r == second else r for letter, r in root.items()}
    return root


def _access(name: str, letters: str, inames: dict[str, str]) -> str:
    return f"{name}[{', '.join(inames[i] for i in letters)}]" if letters else name
