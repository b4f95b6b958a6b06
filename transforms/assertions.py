"""What is known about the data of index arrays: assertions, which the checker trusts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pymbolic.primitives as prim

from loopkit import _arguments as kind
from loopkit import _sets
from loopkit._arguments import is_integer
from loopkit._arrays import ArrayArg, ConstantTable, TemporaryVariable, product
from loopkit._assertions.asserted_cells import data_of, equal_cells, index_range
from loopkit._assertions.assertion_values import (
    Assertion,
    Disjoint,
    Increasing,
    Injective,
    Within,
    facts_of,
    in_order,
)
from loopkit._assertions.follow import is_written_once
from loopkit._assertions.limits import Limits
from loopkit._change import Change
from loopkit._errors import (
    IllegalTransformError,
    InvalidArgumentError,
    UnknownNameError,
    check_known,
)
from loopkit._expression import accesses, evaluate, is_constant, to_text, variable_names
from loopkit._hidden import hidden
from loopkit._kernel import Kernel
from loopkit._nodes import Expression
from loopkit._transform import transform


@transform
def assume_injective(
    kernel: Kernel,
    array: kind.Use,
    where: kind.MaybeFormula = None,
    *,
    unchecked: bool = False,
) -> Change:
    """Assert that no two cells of an integer array have the same value.

    Before: y[perm[i]] = x[i] may write a cell twice      After: never

    Executors check it on real data with ``check_assertions=True``.

    :arg array: an argument that the kernel does not write, or a temporary of which it writes each
        cell once. With a name for its one index, ``"pos[i]"``, where there is a condition.
    :arg where: a condition on a cell, as ``"flag[i] != 0"``: only cells for which it holds differ.
    :raises InvalidArgumentError: where that is known already, or impossible.
    """
    given: Any = array
    name, uses = given
    shape = _index_array(kernel, name, once=True).shape
    if where is None and uses is None:
        return _with(kernel, Injective(name))
    indices = uses[0] if uses else ()
    index = tuple(i.name for i in indices if isinstance(i, prim.Variable))
    known = {*kernel.sizes, *kernel.arg_by_name, *kernel.temporary_by_name}
    is_fit = len({*index} - known) == len(indices) == 1 == len(shape or "n")
    if where is None or not is_fit:
        raise InvalidArgumentError(
            "where holds for a cell whose one index has a name",
            instead=f"assume_injective('{name}[i]', where='flag[i] != 0')",
        )
    for read, subscripts in accesses(where):
        if subscripts:
            _index_array(kernel, read, once=True, of_numbers=False)
        elif read not in {*index, *kernel.sizes}:
            raise UnknownNameError("size", read, [*index, *kernel.sizes])
    return _with(kernel, Injective(name, index, where))


@transform
def assume_disjoint(
    kernel: Kernel, first: kind.Name, second: kind.Name, *, unchecked: bool = False
) -> Change:
    """Assert that two integer arrays have no value in common.

    Before: x[red[i]] and x[black[j]] may be one cell      After: never

    Executors check it on real data with ``check_assertions=True``.

    :arg first, second: arguments that the kernel does not write, or temporaries of which it
        writes each cell once.
    :raises InvalidArgumentError: where that is known already, or impossible.
    """
    _index_array(kernel, first, once=True)
    _index_array(kernel, second, once=True)
    if first == second:
        raise InvalidArgumentError(
            f"'{first}' shares all its values with itself",
            instead=f"that they all differ is said by assume_injective('{first}')",
        )
    return _with(kernel, Disjoint(*sorted((first, second))))


@transform
def assume_within(
    kernel: Kernel,
    array: kind.Name,
    lower: kind.Formula,
    upper: kind.Formula,
    *,
    unchecked: bool = False,
) -> Change:
    """Assert that ``lower <= v < upper`` for every value ``v`` of an integer array.

    Before: x[col[j]] may be outside of x      After (``"col", 0, "m"``): it is in x[0..m)

    Executors check it on real data with ``check_assertions=True``.

    :arg lower, upper: integers, or expressions over sizes such as ``"n + 1"``.
    :raises InvalidArgumentError: where that is known already, or impossible.
    """
    _index_array(kernel, array)
    return _with(kernel, Within(array, _bound(kernel, lower), _bound(kernel, upper)))


@transform
def assume_increasing(
    kernel: Kernel, array: kind.Name, strictly: kind.Flag = False, *, unchecked: bool = False
) -> Change:
    """Assert that the values of a one-dimensional integer array never decrease.

    Before: ranges rowptr[i] <= j < rowptr[i + 1] may overlap      After: they do not

    Executors check it on real data with ``check_assertions=True``.

    :arg strictly: that each value is above the one before, so that all differ.
    :raises InvalidArgumentError: where that is known already, or impossible.
    """
    argument = _index_array(kernel, array, once=True)
    if argument.shape is not None and len(argument.shape) != 1:
        raise InvalidArgumentError(
            f"'{array}' has {len(argument.shape)} axes, so that its values have no one order",
            instead="assume_increasing is about arrays with one axis",
        )
    return _with(kernel, Increasing(array, bool(strictly)))


def _index_array(
    kernel: Kernel, name: str, *, once: bool = False, of_numbers: bool = True
) -> ArrayArg | TemporaryVariable:
    """The integer array called ``name``: an argument that is only read, or a temporary.

    Of one whose cells are to have one value (``once``), each is written once.
    """
    argument = kernel.temporary_by_name.get(name) or kernel.arg_by_name.get(name)
    if not isinstance(argument, (ArrayArg, TemporaryVariable)):
        raise _no_index_array(kernel, name)
    if of_numbers and argument.dtype is not None and argument.dtype.kind not in "iu":
        raise InvalidArgumentError(
            f"'{name}' is an array of {argument.dtype}, not of integers",
            instead="assertions are about arrays whose values are used as subscripts",
        )
    writers = kernel.writers.get(name)
    if isinstance(argument, TemporaryVariable):
        if once and not is_written_once(kernel, name):
            raise IllegalTransformError(
                f"cells of '{name}' may be written more than once: what holds of their values "
                "at one time would not hold at another"
            )
    elif writers:
        raise IllegalTransformError(
            f"the kernel writes '{name}' (statement '{writers[0].id}'): "
            "what holds of its values before would not hold after",
            instead="assertions are about arrays that the kernel only reads",
        )
    return argument


def _no_index_array(kernel: Kernel, name: str) -> Exception:
    others = (
        (kernel.home_domain, "an iname"),
        (kernel.arg_by_name, "a scalar argument"),
    )
    hint = f"assume('{name} >= 1') says something of a size" if name in kernel.sizes else ""
    for names, what in others:
        if name in names:
            return InvalidArgumentError(f"'{name}' is {what}, and no array argument", instead=hint)
    known = [
        a.name
        for a in kernel.args
        if isinstance(a, ArrayArg)
        and (a.dtype is None or a.dtype.kind in "iu")
        and a.name not in kernel.writers
    ]
    return UnknownNameError("integer array", name, known)


def _bound(kernel: Kernel, expr: Expression) -> Expression:
    """An integer expression over sizes."""
    if is_integer(expr):
        return int(expr)
    if is_constant(expr):
        raise InvalidArgumentError(f"a bound is an integer expression over sizes, not {expr!r}")
    check_known("size", sorted(variable_names(expr)), kernel.sizes)
    try:
        if isinstance(evaluate(expr, dict.fromkeys(variable_names(expr), 97)), int):
            return expr
    except ArithmeticError:
        return expr  # divides by zero there, not everywhere
    except Exception:  # pymbolic has its own error for nodes that do not evaluate
        pass
    raise InvalidArgumentError(
        f"the bound {to_text(expr)} is no integer expression over sizes",
        instead="made of +, -, *, //, %, min and max, as in 'n*m' or '(n + 15) // 16'",
    )


def _with(kernel: Kernel, new: Assertion) -> Change:
    """The kernel with one more assertion, which must say something new and possible."""
    if all(isinstance(kernel.arg_by_name.get(a), ConstantTable) for a in new.arrays):
        tables = " and ".join(f"'{name}'" for name in new.arrays)
        is_known = _follows(kernel, kernel.assertions, new)
        raise InvalidArgumentError(
            f"what {tables} holds is known"
            + ("" if is_known else f", and nothing says that {new.text}")
        )
    if _follows(kernel, kernel.assertions, new):
        why = f"that {new.text} is known already"
        if new not in kernel.assertions:
            because = _fewest(kernel, new)
            why += f", since {' and '.join(a.text for a in because)}" if because else ""
        raise InvalidArgumentError(why)
    kept = tuple(a for a in kernel.assertions if not _follows(kernel, (new,), a))
    changed = kernel.with_(assertions=in_order((*kept, new)))
    for array in new.arrays:
        _refuse_impossible(changed, array, new)
    return Change(changed, assumes=True)


def _fewest(kernel: Kernel, new: Assertion) -> tuple[Assertion, ...]:
    """Assertions of the kernel that say ``new`` together, none of them left out."""
    chosen = kernel.assertions
    for assertion in kernel.assertions:
        rest = tuple(a for a in chosen if a != assertion)
        if _follows(kernel, rest, new):
            chosen = rest
    return chosen


def _follows(kernel: Kernel, known: tuple[Assertion, ...], new: Assertion) -> bool:
    """Whether ``known`` and the assumptions about sizes say what ``new`` says."""
    facts = facts_of(known)
    if new in known:
        return True
    if isinstance(new, Injective):
        return not facts.injective.isdisjoint((new.array, new.told))
    if isinstance(new, Increasing):
        return new.array in (facts.strict if new.strictly else facts.increasing)
    i, k = prim.Variable(hidden("cell")), prim.Variable(hidden("other"))
    # What types say, or earlier statements, may still be asserted.
    data = replace(data_of(kernel.with_(assertions=known)), limits=Limits())
    if isinstance(new, Disjoint):
        first, second = prim.Variable(new.first)[i], prim.Variable(new.second)[k]
        common = equal_cells(known, first, second, data)
        return bool((common & kernel.assumptions.set).is_empty())
    if not (_sets.is_affine(new.lower) and _sets.is_affine(new.upper)):
        return False
    v = prim.Variable(hidden("value"))
    values = index_range(known, prim.Variable(new.array)[i], v.name, data)
    inside = prim.LogicalAnd(
        (prim.Comparison(new.lower, "<=", v), prim.Comparison(v, "<", new.upper))
    )
    return bool((values & kernel.assumptions.set).is_subset(_sets.condition_set(inside)))


def _refuse_impossible(kernel: Kernel, array: str, new: Assertion) -> None:
    """An error if ``array`` can obey its assertions only where it has no cells."""
    facts = facts_of(kernel.assertions)
    bounds = facts.bounds.get(array, ())
    shape = kernel.array(array).shape
    if not bounds or shape is None:
        return
    count = product(list(shape))
    needed = count if array in facts.injective else 1
    if not _sets.is_affine(count):
        return
    some = kernel.assumptions.set & _sets.condition_set(prim.Comparison(count, ">=", 1))
    enough = _sets.universe()
    for lower, _ in bounds:
        for _, upper in bounds:
            if _sets.is_affine(lower) and _sets.is_affine(upper):
                room = prim.Sum((upper, prim.Product((-1, lower))))
                enough = enough & _sets.condition_set(prim.Comparison(needed, "<=", room))
    if some.is_empty() or not (some & enough).is_empty():
        return
    others = [a for a in kernel.assertions if a.arrays == (array,) and a != new]
    # An order alone asks for no values of its own.
    others = [a for a in others if not isinstance(a, Increasing) or array in facts.strict]
    texts = " and ".join(a.text for a in (new, *others))
    cells = "1 cell" if count == 1 else f"{to_text(count)} cells"
    raise InvalidArgumentError(f"no data is such that {texts}: there are {cells} in '{array}'")
