"""The printed form of a kernel: signature, block and thread indices, and the loop nest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import (
    AddressSpace,
    ArrayArg,
    ConstantTable,
    TemporaryVariable,
    ValueArg,
    storage_shape,
    swizzled_text,
)
from loopkit._budget import in_turn
from loopkit._cached import memoised
from loopkit._collectives import TOGETHER, reduction_text
from loopkit._combined import with_combinations
from loopkit._device_functions import called_by
from loopkit._errors import LoopkitError, TypeInferenceError
from loopkit._expression import to_text
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._launches import is_one_launch
from loopkit._make.check_bounds import first_outside
from loopkit._nodes import Expression
from loopkit._open_lengths import open_lengths
from loopkit._places import decide_address_spaces, shared_storage
from loopkit._promotion import dtype_name
from loopkit._rules import is_expanded, without_results
from loopkit._tree import LaunchBarrier, Loop, Tree
from loopkit.codegen.bounds import Bounds
from loopkit.codegen.combinations import combination_note
from loopkit.codegen.ir import Barrier, Code, Do, For, If, Leave, Let
from loopkit.codegen.launches import PartIf, PartLoop, Parts, parted, parts_of
from loopkit.codegen.nest import nest_of
from loopkit.codegen.prepare import prepare

_SYMBOLS = {"sum": "+=", "product": "*="}
_COLUMN = 80


@dataclass(frozen=True)
class Line:
    """A line of a nest: what it says, a remark beside it, and the lines inside of it.

    ``kind`` is ``"signature"``, ``"array"``, ``"rule"``, ``"assumption"``, ``"axes"``, ``"loop"``,
    ``"statement"``, ``"barrier"``, ``"combine"``, ``"launch"`` or ``"remark"``; ``statement`` is
    the position of a statement in the kernel's.  Inside of ``"axes"`` each ``"axis"`` has a
    hardware word for its remark.
    """

    kind: str
    text: str
    note: str = ""
    inside: tuple[Line, ...] = ()
    statement: int | None = None


def show(kernel: Kernel) -> str:
    """The kernel's loop nest as text, with what each line is for beside it."""
    return "\n".join(_texts((outline(kernel),), ""))


def _texts(lines: Iterable[Line], pad: str) -> Iterator[str]:
    for line in lines:
        if line.kind == "axes":
            yield pad + "   ".join(axis.text for axis in line.inside)
            continue
        text = pad + line.text
        yield f"{text:<{_COLUMN - 3}}   {line.note}" if line.note else text
        yield from _texts(line.inside, pad + "  ")


@in_turn
@memoised
def outline(kernel: Kernel) -> Line:
    """The loop nest as data: the line of the signature, and all others inside of it."""
    head, note = _signature(kernel)
    placed = decide_address_spaces(kernel)
    places = {s.id: number for number, s in enumerate(kernel.statements)}
    try:
        spelled, nest = _nest(kernel, placed, places)
    except LoopkitError as error:
        spelled, nest = placed, [*_plain(placed, placed.tree, places)]
        nest.append(_no_code(error))
    else:
        nest += map(_no_code, open_lengths(kernel))
    above = (*_temporaries(spelled), *_rules(kernel), *_assumptions(kernel))
    return Line("signature", head, note, (*above, *nest))


def _no_code(error: LoopkitError) -> Line:
    return Line("remark", f"(no code can be made of this: {error.why})")


def _array(array: ArrayArg | TemporaryVariable) -> str:
    """An array with its extents, and what its axes are called: ``a[row: n, col: m]``."""
    if array.shape is None:
        return f"{array.name}[?]"
    axes = list(map(to_text, storage_shape(array)))
    if array.dim_names:
        axes = [f"{name}: {axis}" for name, axis in zip(array.dim_names, axes, strict=False)]
    return f"{array.name}[{', '.join(axes)}]" if axes else array.name


def _signature(kernel: Kernel) -> tuple[str, str]:
    computed = kernel.computed_sizes
    values = [
        f"{a.name} = {to_text(computed[a.name])}" if a.name in computed else a.name
        for a in kernel.args
        if isinstance(a, ValueArg)
    ]
    arrays = [a for a in kernel.args if isinstance(a, ArrayArg)]
    written = {a.name for a in arrays if a.name in kernel.writers}
    inputs = [
        _array(a)
        for a in arrays
        if (a.name not in written or a.name in kernel.readers) and not isinstance(a, ConstantTable)
    ]
    outputs = [_array(a) for a in arrays if a.name in written]
    inside = "; ".join(p for p in (", ".join(values), ", ".join(inputs)) if p)
    head = f"{kernel.name}({inside})" + (f" -> {', '.join(outputs)}" if outputs else "")
    dtypes = {str(a.dtype) if a.dtype is not None else "untyped" for a in arrays}
    if len(dtypes) == 1:
        return head, dtypes.pop()
    return head, ", ".join(f"{a.name}: {a.dtype or 'untyped'}" for a in arrays)


def _temporaries(kernel: Kernel) -> Iterator[Line]:
    for table in (a for a in kernel.args if isinstance(a, ConstantTable)):
        note = f"constant {dtype_name(table.dtype) if table.dtype else ''}"
        yield Line("array", _array(table), f"{note}: {_elements(table)}")
    for t in kernel.temporaries:
        if t.shape or t.address_space is not AddressSpace.PRIVATE:
            yield Line(
                "array",
                _array(t),
                f"{t.address_space.word} {dtype_name(t.dtype) if t.dtype else ''}".rstrip()
                + _swizzled(t)
                + _over(kernel, t),
            )


def _elements(table: ConstantTable) -> str:
    """The first elements of a table."""
    flat = table.array.ravel()
    dots = ", ..." if len(flat) > _FIRST else ""
    return ", ".join(str(value) for value in flat[:_FIRST]) + dots


_FIRST = 4
"""So many elements of a table stand in the nest."""


def _swizzled(temporary: TemporaryVariable) -> str:
    text = swizzled_text(temporary)
    return f", swizzled {text}" if text else ""


def _over(kernel: Kernel, temporary: TemporaryVariable) -> str:
    """What else lies where a temporary does, above it in the list."""
    names = shared_storage(kernel).get(temporary.name, (temporary.name,))
    return "" if names[0] == temporary.name else f", in the place of {names[0]}"


def _rules(kernel: Kernel) -> Iterator[Line]:
    for function in kernel.functions:
        for overload in function.overloads:
            yield Line("rule", overload.signature, "CUDA C")
    for rule in kernel.substitutions:
        arguments = f"({', '.join(rule.arguments)})" if rule.arguments else ""
        body = without_results(rule.expression, kernel.rule_by_name)
        yield Line("rule", f"{rule.name}{arguments} := {to_text(body)}")


def _assumptions(kernel: Kernel) -> Iterator[Line]:
    condition = _sets.conditions(kernel.assumptions.set)
    if condition is not True:
        yield Line("assumption", f"assuming {to_text(condition)}")
    for assertion in kernel.assertions:
        yield Line("assumption", f"assuming {assertion.text}")
    if kernel.owes_bounds and (found := first_outside(kernel)) is not None:
        access = to_text(prim.Subscript(prim.Variable(found.array), found.indices))
        yield Line("assumption", f"owing that {access} lies in its array")
    for iname, *ends in kernel.slabs:
        parts = zip(("first", "last"), ends, strict=True)
        which = (f"the {at}" + (f" {n}" if n > 1 else "") for at, n in parts if n)
        yield Line("assumption", f"peeling {' and '.join(which)} of {iname}")


def _note(kernel: Kernel, statement: Statement) -> str:
    if statement.kind == "update":
        return reduction_text(kernel, statement)
    if statement.is_atomic:
        return "atomic"
    if statement.kind == "move":
        return statement.made_by or "move"
    called = called_by(statement.tags)
    return f"of {', '.join(called)}" if called else ""


def statement_text(statement: Statement) -> str:
    """``lhs = rhs`` with updates spelled ``+=`` or ``max=``."""
    symbol = "="
    if statement.operation is not None:
        symbol = _SYMBOLS.get(statement.operation, f"{statement.operation}=")
    return f"{to_text(statement.lhs)} {symbol} {to_text(statement.rhs)}"


def _nest(kernel: Kernel, placed: Kernel, places: Mapping[str, int]) -> tuple[Kernel, list[Line]]:
    """What is lowered, as a kernel whose statements and arrays are shown, and as lines."""
    if not is_one_launch(kernel):
        try:
            parts = parts_of(kernel)
        except TypeInferenceError:
            parts = parted(placed)
        return placed, [*_launches(parts, placed, places)]
    made = _prepared(kernel)
    # Rules stand in the nest as they are called.
    spelled = made if is_expanded(kernel) else placed
    return spelled, [*_launch(made, spelled, places)]


def _prepared(kernel: Kernel) -> Kernel:
    """What is lowered; a nest needs no types."""
    try:
        return prepare(kernel)
    except TypeInferenceError:
        return with_combinations(decide_address_spaces(kernel))


def _launches(
    parts: Parts, whole: Kernel, places: Mapping[str, int], conditions: tuple[str, ...] = ()
) -> Iterator[Line]:
    """Launches, one under the other, in the loops that a call runs around them.

    ``conditions`` are tested by the call.
    """
    for part in parts:
        if isinstance(part, PartLoop):
            inside = tuple(_launches(part.body, whole, places))
            yield _loop(part.iname, part.bounds, _if(conditions, "launches"), inside)
            continue
        if isinstance(part, PartIf):
            yield from _launches(part.body, whole, places, (*conditions, to_text(part.condition)))
            continue
        about = f"launch {part.launch.number + 1}: {part.kernel.name}"
        yield Line("launch", f"==== {_if(conditions, about)}")
        yield from _launch(_prepared(part.kernel), whole, places)


def _launch(made: Kernel, spelled: Kernel, places: Mapping[str, int]) -> Iterator[Line]:
    """The nest of one launch, under its axes."""
    nest = nest_of(made)
    axes = tuple(
        Line("axis", f"{c.iname} = {c.word}" + (f" + {c.lower}" if c.lower else ""), c.word)
        for c in nest.hardware.coordinates
    )
    if axes:
        yield Line("axes", "", inside=axes)

    def told(statement: Statement) -> str:
        # Only the lowered kernel knows the scans of its launch.
        return combination_note(made, statement, nest.hardware.block)

    yield from _lines(spelled, nest.code, (), places, told)


def _plain(kernel: Kernel, nodes: Tree, places: Mapping[str, int]) -> Iterator[Line]:
    """The tree, as nothing is known of its bounds."""
    for node in nodes:
        if isinstance(node, Loop):
            yield Line("loop", f"for {node.iname}", "", tuple(_plain(kernel, node.body, places)))
        elif isinstance(node, LaunchBarrier):
            yield Line("launch", "==== launches before and after")
        else:
            statement = kernel.statement_by_id[node]
            note = _if(tuple(map(to_text, statement.predicates)), _note(kernel, statement))
            yield Line("statement", statement_text(statement), note, statement=places[node])


def _lines(
    kernel: Kernel,
    codes: Iterable[Code],
    conditions: tuple[str, ...],
    places: Mapping[str, int],
    told: Callable[[Statement], str],
) -> Iterator[Line]:
    """The lines of a nest, under ``conditions`` not yet shown; ``told`` collects combinations."""
    for code in codes:
        if isinstance(code, For):
            note = _if(conditions, "unrolled" if code.unroll else "")
            yield _loop(code.iname, code, note, tuple(_lines(kernel, code.body, (), places, told)))
        elif isinstance(code, Let):
            head = f"for {code.iname} = {to_text(code.value)}"
            yield Line("loop", head, "", tuple(_lines(kernel, code.body, conditions, places, told)))
        elif isinstance(code, If):
            more = (*conditions, to_text(code.condition))
            yield from _lines(kernel, code.body, more, places, told)
        elif isinstance(code, Barrier):
            kind = "warp barrier" if code.of_warp else "barrier"
            yield Line("barrier", f"---- {kind}: {code.reason}")
        elif isinstance(code, Leave):
            place = places[code.statement.id]
            note = _if(conditions, f"leaves {code.loop}" if code.loop else "")
            yield Line("statement", "break", note, statement=place)
        elif isinstance(code, Do):
            if code.statement.kind in TOGETHER:
                text = f"---- {code.statement.kind} {to_text(code.statement.lhs)}"
                yield Line("combine", f"{text}: {told(code.statement)}")
                continue
            statement = kernel.statement_by_id[code.statement.id]
            note = _if(conditions, _note(kernel, statement))
            place = places[statement.id]
            yield Line("statement", statement_text(statement), note, statement=place)


def _loop(iname: str, bounds: Bounds | For, note: str, inside: tuple[Line, ...]) -> Line:
    step = f" step {bounds.step}" if bounds.step != 1 else ""
    head = f"for {iname} in [{to_text(bounds.lower)}, {_ceil(bounds.upper)}){step}"
    return Line("loop", head, note, inside)


def _if(conditions: tuple[str, ...], note: str) -> str:
    condition = "if " + " and ".join(conditions) if conditions else ""
    return "   ".join(p for p in (note, condition) if p)


def _ceil(expr: Expression) -> str:
    """``(n + 15) // 16`` as ``ceil(n/16)``."""
    if isinstance(expr, prim.FloorDiv) and isinstance(expr.denominator, int):
        numerator = expr.numerator
        last = numerator.children[-1] if isinstance(numerator, prim.Sum) else None
        if last == expr.denominator - 1 and isinstance(numerator, prim.Sum):
            rest = numerator.children[:-1]
            inner = to_text(rest[0] if len(rest) == 1 else prim.Sum(rest))
            inner = f"({inner})" if len(rest) > 1 else inner
            return f"ceil({inner}/{expr.denominator})"
    return to_text(expr)
