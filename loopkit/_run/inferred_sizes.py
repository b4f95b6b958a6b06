"""Inference of sizes from the shapes of arrays, and the check of all extents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pymbolic.primitives as p

from loopkit import _sets
from loopkit._budget import in_turn
from loopkit._errors import InvalidArgumentError, counted
from loopkit._expression import BUILTINS, evaluate, python_source, to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._linear import Linear, NotAffineError, product, total
from loopkit._program import ArrayParam, Expression
from loopkit._run.arrays import ArrayInfo, Layout, contiguous_strides

if TYPE_CHECKING:
    from loopkit._run.plan import ArgumentPlan


def compile_tuple(expressions: Iterable[Expression]) -> Callable[[Mapping[str, int]], Any]:
    """A function from the values of the names to the tuple of the expressions' values."""
    # The names are those of a kernel, and may be words of Python: index the mapping by text.
    body = "".join(f"{python_source(e, lambda name: f'of[{name!r}]')}, " for e in expressions)
    function: Callable[[Mapping[str, int]], Any] = eval(f"lambda of: ({body})", {**BUILTINS})
    return function


def whole_value(expr: Expression, values: Mapping[str, int]) -> int:
    """The value of ``expr``, in numbers of any size; without some name's, a ``KeyError``."""
    return int(evaluate(expr, {name: int(values[name]) for name in variable_names(expr)}))


# An expression, its value, whence that is, and the array and axis of an extent.
_Equation = tuple[Expression, int, str, tuple[str, int] | None]


@dataclass
class Known:
    """The sizes and scalars of a call that are known, and whence each of them is."""

    values: dict[str, Any]
    origins: dict[str, str]

    def add(self, name: str, value: int, origin: str) -> None:
        """From now on ``name`` is ``value``."""
        self.values[name], self.origins[name] = value, origin

    def described(self, names: Iterable[str]) -> str:
        """``n = 3 (from a's axis 0) and m = 4 (as passed)``"""
        origins = {n: f" ({origin})" for n, origin in self.origins.items() if origin}
        return " and ".join(f"{n} = {self.values[n]}{origins.get(n, '')}" for n in names)


class SizeSolver:
    """Infers the sizes of one program from the shapes and strides of its arrays.

    An extent like ``n - 2`` that is negative means no element: the loops that would
    reach for one are empty then.  A size itself that is an extent is not negative.
    """

    def __init__(self, plan: ArgumentPlan) -> None:
        self._plan = plan
        self._shape_functions = {
            param.name: compile_tuple(map(_extent, param.shape)) for param in plan.array_params
        }
        self._stride_functions = {
            param.name: compile_tuple(param.strides) for param in plan.array_params
        }
        #: For each array the axes whose extents, and those whose strides, sizes are in.
        self._sized = {
            name: [[(n, e) for n, e in enumerate(of) if variable_names(e)] for of in both]
            for name, both in ((n, (a.shape, a.strides)) for n, a in plan.arrays.items())
        }

    def infer(self, known: Known, arrays: Mapping[str, ArrayInfo]) -> None:
        """Add the sizes that the arrays determine to what is known."""
        lengths: list[_Equation] = []
        # A leading dimension that is an argument of its own is known from strides alone.
        steps: list[_Equation] = []
        # No elements may mean a negative extent; an extent of 0 is supposed where nothing else
        # is known.
        empty: list[_Equation] = []
        for name, info in arrays.items():
            shape, strides = self._sized[name]
            for axis, extent in shape:
                length, origin = info.shape[axis], f"from {name}'s axis {axis}"
                if length or not _may_be_negative(extent):
                    lengths.append((extent, length, origin, (name, axis)))
                if not length:
                    empty.append((extent, 0, origin, None))
            for axis, stride in strides:
                origin = f"from the stride of {name}'s axis {axis}"
                steps.append((stride, info.strides[axis], origin, None))
        for extents in (lengths, empty):
            extents.sort(key=lambda equation: not _is_name(equation[0]))
        for equations in (lengths, steps, empty):
            self._infer_from(equations, known)
            if self._plan.scalars.keys() <= known.values.keys():
                break

    def _infer_from(self, equations: Sequence[_Equation], known: Known) -> None:
        waiting = list(equations)
        while True:
            left = []
            for equation in waiting:
                expr, number, origin, place = equation
                unknown = variable_names(expr) - known.values.keys()
                if not unknown:
                    continue
                line = _affine(expr, known.values) if len(unknown) == 1 else None
                if line is None or not line.terms:
                    left.append(equation)
                    continue
                ((variable, coefficient),) = line.terms.items()
                value, rest = divmod(number - line.constant, coefficient)
                if not rest:
                    known.add(variable.name, value, origin)
                elif place is not None:
                    others = known.described(sorted(variable_names(expr) - {variable.name}))
                    raise InvalidArgumentError(
                        f"{place[0]}: axis {place[1]} should have "
                        f"{counted(to_text(expr), 'element')}"
                        f"{others and ' with '}{others}, but has {number}, "
                        f"which no integer {variable.name} gives"
                    )
            if len(left) == len(waiting):
                break
            waiting = left
        lines = [(_affine(e, known.values), number) for e, number, _, _ in waiting]
        system = [(line, number) for line, number in lines if line is not None]
        for name, solved in _solve(system).items() if system else ():
            known.add(name, solved, "from the shapes")

    def check_shapes(self, known: Known, arrays: Mapping[str, ArrayInfo]) -> None:
        """Compare every extent that was passed with what it should be."""
        for name, info in arrays.items():
            wanted = self._shape_functions[name](known.values)
            if wanted == tuple(info.shape):
                continue
            param = self._plan.arrays[name]
            axis = next(i for i, n in enumerate(wanted) if n != info.shape[i])
            should = _expected(param.shape[axis], wanted[axis], known)
            raise InvalidArgumentError(
                f"{name}: axis {axis} should have {should}, but has {info.shape[axis]}"
            )

    def _strides(
        self, param: ArrayParam, shape: Sequence[int], known: Known, array: ArrayInfo | None
    ) -> tuple[int, ...]:
        """An array's strides.  Those that are parameters are what it was passed with.

        Of what is not passed, or is passed in another layout than these allow, they are as without
        gaps: its elements are copied then.
        """
        strides_of: Callable[..., tuple[int, ...]] = self._stride_functions[param.name]
        own = [p for p in self._plan.stride_params if p.array == param.name]
        if not own:
            return strides_of(known.values)
        if array is not None:
            given = {p.name: array.strides[p.axis] for p in own if p.axis is not None}
            strides = strides_of({**known.values, **given})
            if Layout(tuple(shape), strides).has(array.strides):
                return strides
        without = {p.name: whole_value(p.default, known.values) for p in own}
        return strides_of({**known.values, **without})

    def layouts(self, known: Known, arrays: Mapping[str, ArrayInfo]) -> dict[str, Layout]:
        """Shape and strides of every array, scratch arrays too."""
        result = {}
        for param in self._plan.array_params:
            shape = self._shape_functions[param.name](known.values)
            for axis, extent in enumerate(shape):
                if extent < 0:
                    what = _expected(param.shape[axis], extent, known)
                    raise InvalidArgumentError(f"{param.name}: axis {axis} would have {what}")
            if 0 in shape:  # strides that are products of negative extents mean nothing
                strides = contiguous_strides(shape)
            else:
                strides = self._strides(param, shape, known, arrays.get(param.name))
            result[param.name] = Layout(shape, strides)
        return result


def _is_name(expr: Expression) -> bool:
    return isinstance(expr, p.Variable)


def _may_be_negative(extent: Expression) -> bool:
    return bool(variable_names(extent)) and not _is_name(extent)


def _extent(expr: Expression) -> Expression:
    """How many elements an axis has whose extent is ``expr``."""
    if not variable_names(expr):
        return max(int(whole_value(expr, {})), 0)
    return p.Max((expr, 0)) if _may_be_negative(expr) else expr


def _expected(expr: Expression, value: int, known: Known) -> str:
    """``n + 2 = 9 elements (n = 7 from b's axis 0)``"""
    names = sorted(variable_names(expr))
    if not names:
        return counted(str(value), "element")
    if _is_name(expr):
        origin = known.origins.get(names[0], "")
        return f"{expr} = {counted(str(value), 'element')}" + (f" ({origin})" if origin else "")
    sizes = (f"{n} = {known.values[n]} {known.origins.get(n, '')}".rstrip() for n in names)
    meant = whole_value(expr, known.values)
    if meant < 0:
        return f"no elements, as {to_text(expr)} = {meant} ({', '.join(sizes)})"
    return f"{to_text(expr)} = {counted(str(value), 'element')} ({', '.join(sizes)})"


def _affine(expr: Expression, known: Mapping[str, int]) -> Linear | None:
    """``expr`` as a linear form of its unknown names, if it is that simple."""
    if not (variable_names(expr) - known.keys()):
        return Linear({}, whole_value(expr, known))
    if isinstance(expr, p.Variable):
        return Linear({expr: 1})
    if not isinstance(expr, p.Sum | p.Product):
        return None
    parts = [part for c in expr.children if (part := _affine(c, known)) is not None]
    if len(parts) < len(expr.children):
        return None
    try:
        return total(parts) if isinstance(expr, p.Sum) else product(parts, expr)
    except NotAffineError:
        return None


@in_turn
def _solve(equations: Sequence[tuple[Linear, int]]) -> dict[str, int]:
    """The names that the equations ``form == number`` fix, with their values.

    An equation that contradicts those before it is left to the caller's comparison of every
    extent afterwards, which has more to say.
    """
    solutions = _sets.universe()
    for form, number in equations:
        more = solutions & _sets.affine_equality(form.expression, number)
        solutions = solutions if more.is_empty() else more
    return _sets.fixed_values(solutions, _sets.names_of(solutions))
