"""Compilation of statements, and of the meanings of user-defined functions, to Python functions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._device_functions import DeviceFunction
from loopkit._errors import (
    InvalidArgumentError,
    LaunchError,
    LoopkitError,
    MissingDependencyError,
    UninitializedReadError,
)
from loopkit._expression import is_constant, variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._make.operation import SCALAR, ReductionOperation, operands
from loopkit._make.reduction_operations import Joined, ScalarOperation, operations_of
from loopkit._nodes import Expression, TypeCast
from loopkit._promotion import COMPLEXES, DTYPES, DType, components_of, dtype_name
from loopkit._reference import scalar_functions as functions
from loopkit._reference.copy_axes import Axis, column_of
from loopkit._reference.memory import Memory, code_of
from loopkit._reference.python_source import Names, Translator
from loopkit._same import remembered
from loopkit._spelling import shown
from loopkit._tree import common_prefix, path_inames


@dataclass(frozen=True)
class Store:
    """Access to a kernel's data while it runs."""

    memories: Mapping[str, Memory]
    copies: Mapping[str, tuple[Axis, ...]]
    sizes: Mapping[str, int]
    values: Mapping[str, Any]
    dtypes: Mapping[str, DType]


@dataclass(eq=False)
class Compiled:
    """A statement ready to run: ``function`` takes a value per column.

    Columns are the loops around it, outermost first, then parallel inames by name, then
    coordinates along axes on which all threads run it though it has no iname there.
    ``rows`` are found below ``least`` loops, those around the innermost one that data end, if any;
    those of ``loaded`` bounds below ``ready`` loops, where the ``guard`` holds.
    """

    statement: Statement
    columns: tuple[str, ...]
    depth: int
    extra: tuple[tuple[str, int], ...]
    function: Callable[..., None]
    rows: list[tuple[int, ...]] = field(default_factory=list)
    position: int = 0
    loaded: tuple[str, ...] = ()
    ready: int = 0
    guard: Callable[..., bool] | None = None
    prefix: tuple[int, ...] | None = None
    least: int = -1


def compile_statement(kernel: Kernel, statement: Statement, store: Store) -> Compiled:
    """The statement as a function; ``rows`` are still to be filled in."""
    path = path_inames(kernel.paths[statement.id])
    parallel = sorted(statement.inames - set(path))  # as copies side by side are ordered
    target = store.copies.get(statement.written, ())
    missing = [a for a in target if a.outside is None and a.iname_of(statement) is None]
    read = {a.key for name, _ in kernel.reads_of(statement) for a in store.copies.get(name, ())}
    if read.isdisjoint(a.key for a in missing):  # all threads compute one value
        missing = []
    extra = {axis.key: column_of(axis) for axis in missing}
    names = Names(
        statement.inames, store.sizes, store.dtypes, lambda *access: load(*access), evaluator
    )
    translator = Translator(names)

    def coordinate(axis: Axis) -> str | None:
        iname = axis.iname_of(statement)
        if iname is not None:
            first = axis.first[iname]
            return f"{iname} - {first}" if first else iname
        return extra.get(axis.key) if axis.outside is None else str(axis.outside)

    def load(name: str, indices: Sequence[str]) -> str:
        if name in store.values:
            return translator.bind(store.values[name], "value", name)
        memory = store.memories[name]
        before = [coordinate(a) or "0" for a in store.copies.get(name, ())]
        function = translator.bind(memory.loader(), "load", name)
        return f"{function}({', '.join([*before, *indices])})"

    conditions = conditions_in_order(statement, statement.inames | store.sizes.keys())
    lines = [f"if not {translator.condition(c)}: return" for c in conditions]
    name, indices = statement.write
    memory = store.memories[name]
    before = [coordinate(a) for a in target]
    open_axes = [p for p, c in enumerate(before) if c is None]
    function = translator.bind(memory.storer(open_axes))
    value = _value(kernel, statement, translator, store.dtypes[name])
    places = [c for c in before if c is not None] + [translator.index(i) for i in indices]
    lines.append(f"{function}({', '.join([value, *places])})")
    # What a step made may carry what nobody looks at, to where nobody looks, and so may all threads
    # but the first of a statement that runs once.
    if memory.watched:
        forget, error = map(translator.bind, (memory.forgetter(open_axes), UninitializedReadError))
        may = "True" if statement.made_by else " or ".join(["False", *extra.values()])
        lines = ["try:", *(f"    {line}" for line in lines), f"except {error}:"]
        lines += [f"    if not ({may}): raise", f"    {forget}({', '.join(places)})"]
    columns = (*path, *parallel, *extra.values())
    text = "\n    ".join([f"def run({', '.join(columns)}):", *lines])
    bounds, loaded, ready = {*kernel.loaded_bounds(statement.inames)}, tuple[str, ...](), 0
    if bounds:
        # In the order in which they are loaded, those of outer loops first.
        loaded = tuple(dict.fromkeys(s.written for s in kernel.statements if s.written in bounds))
        ready, first = _at_loop(kernel, statement, store, loaded)
        said = " and ".join(map(translator.condition, first)) or "True"
        text += f"\ndef guard({'=None, '.join(columns)}=None): return {said}"
    space = dict(translator.space)
    try:
        exec(code_of(text, f"<{statement.id}>"), space)
    except (SyntaxError, RecursionError, MemoryError):  # what Python's compiler says of it
        raise LaunchError(
            f"'{statement.id}' is nested too deeply for the reference interpreter",
            instead='other executors take it: executor("host"), executor("cuda")',
        ) from None
    extents = tuple((extra[axis.key], axis.extent) for axis in missing)
    compiled = Compiled(statement, columns, len(path), extents, space["run"])
    compiled.loaded, compiled.ready, compiled.guard = loaded, ready, space.get("guard")
    return compiled


def _at_loop(
    kernel: Kernel, statement: Statement, store: Store, loaded: Collection[str]
) -> tuple[int, list[Expression]]:
    """How many loops around a statement its bounds are loaded in, and who comes to the next one.

    The conditions are of threads, and of inames and data that nothing in that loop changes.
    """
    paths, own = kernel.paths, kernel.paths[statement.id]
    loads = (w.id for name in loaded for w in kernel.writers[name])
    depth = max(len(common_prefix([own, paths[id_]])) for id_ in loads)
    inside = (s for s in kernel.statements if paths[s.id][: depth + 1] == own[: depth + 1])
    threads = {a.key: a for name in loaded for a in store.copies.get(name, ())}
    known = {*path_inames(own[:depth]), *(i for a in threads.values() for i in a.first)}
    unknown = {s.written for s in inside} | (statement.inames - known)
    unknown |= {n for n, axes in store.copies.items() if {a.key for a in axes} - threads.keys()}
    conditions = conditions_in_order(statement, statement.inames)
    return depth, [c for c in conditions if unknown.isdisjoint(variable_names(c))]


def conditions_in_order(statement: Statement, known: Collection[str]) -> list[Expression]:
    """The conditions of a statement in the order in which they are looked at.

    All hold or none counts: data is looked at where ``known`` inames and sizes let it be.
    """
    return sorted(statement.predicates, key=lambda p: not variable_names(p) <= {*known})


def _value(kernel: Kernel, statement: Statement, translator: Translator, dtype: DType) -> str:
    if statement.operation is None:
        return translator.stored(statement.rhs, dtype)
    operation = operations_of(kernel.reductions)[statement.operation]
    target = translator.value(statement.lhs).source
    if operation.components:
        joined = _joined(operation, dtype)
        return translator.apply(joined, target, translator.stored(statement.rhs, dtype))
    assert isinstance(operation, ScalarOperation)
    if operation.name in ("any", "all"):
        word = "|" if operation.name == "any" else "&"  # both sides are computed
        return f"(bool({target}) {word} bool({translator.condition(statement.rhs)}))"
    if operation.reference is not None:
        value = translator.stored(statement.rhs, dtype)
        return translator.apply(operation.reference, target, value)
    is_own = not isinstance(operation.combine, Joined)
    term = statement.rhs if is_own else TypeCast(dtype, statement.rhs)
    return translator.stored(operation.combine(statement.lhs, term), dtype)


def _joined(operation: ReductionOperation, dtype: DType) -> Callable[[Any, Any], Any]:
    """What joins two records of values, each a tuple."""
    kinds = components_of(dtype).values()
    if operation.has_values:

        def join(a: Any, b: Any) -> Any:
            found = zip(operation.on_values(a, b), kinds, strict=True)
            return tuple(functions.converter(None, kind)(value) for value, kind in found)

        return join
    return joining(operation, dtype)


def joining(operation: ReductionOperation, dtype: DType) -> Callable[[Any, Any], Any]:
    """What the expressions of an operation make of two values or records, each a tuple."""
    kinds = [*components_of(dtype).values()] or [dtype]
    types, sources = {}, {}
    for side, variables in zip("ab", operands(operation.components or SCALAR), strict=True):
        for place, (variable, kind) in enumerate(zip(variables, kinds, strict=True)):
            types[variable.name], sources[variable.name] = kind, f"{side}[{place}]"
    translator = Translator(Names(frozenset(), {}, types, lambda name, _: sources[name]))
    parts = zip(operation.joined(dtype), kinds, strict=True)
    listed = ", ".join(translator.stored(part, kind) for part, kind in parts)
    space = dict(translator.space)
    exec(code_of(f"def join(a, b):\n    return ({listed},)", f"<{operation.name}>"), space)
    found: Callable[[Any, Any], Any] = space["join"]
    return found


@remembered(1 << 8)
def evaluator(function: DeviceFunction) -> Callable[..., Any]:
    """The function, of scalars of its declared types: its meaning, or else what its text computes.

    Raises :class:`MissingDependencyError` where it has no meaning and nothing compiles its text.
    """
    if function.meaning is None:
        return _of_text(function)
    if is_constant(function.meaning) or isinstance(function.meaning, prim.ExpressionNode):
        return _of_expression(function)
    return _of_python(function)


def _of_text(function: DeviceFunction) -> Callable[..., Any]:
    from loopkit._host.device_functions import on_scalars  # a compiler, which few need here

    try:
        return on_scalars(function)
    except MissingDependencyError as error:
        raise MissingDependencyError(
            f"the reference executor does not know what '{function.name}' means, and cannot "
            f"compile its text: {error}",
            instead="register_callable(..., meaning=...) says it in Python",
        ) from None


def _of_python(function: DeviceFunction) -> Callable[..., Any]:
    name, meaning, result = function.name, function.meaning, function.result
    kinds = [*components_of(result).values()]

    def call(*given: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                found = meaning(*given)
        except LoopkitError:
            raise
        except Exception as error:
            listed = ", ".join(map(str, given))
            raise InvalidArgumentError(
                f"the meaning of '{name}' raised {type(error).__name__} for ({listed}): {error}"
            ) from error
        if not kinds:
            return _as_type(found, result, name)
        if not isinstance(found, (tuple, list)) or len(found) != len(kinds):
            raise InvalidArgumentError(
                f"the meaning of '{name}' gives {shown(found)}, and no tuple of "
                f"{len(kinds)} numbers"
            )
        return tuple(_as_type(x, kind, name) for x, kind in zip(found, kinds, strict=True))

    return call


def _as_type(found: Any, dtype: DType, name: str) -> Any:
    """What a user's function gave, as a value of a type."""
    if isinstance(found, np.ndarray) and found.ndim == 0:
        found = found[()]
    source = getattr(found, "dtype", None)
    if np.iscomplexobj(found) and dtype not in COMPLEXES:
        raise InvalidArgumentError(
            f"the meaning of '{name}' gives {shown(found)}, and its result is {dtype_name(dtype)}"
        )
    if isinstance(source, np.dtype) and source in DTYPES.values() and np.ndim(found) == 0:
        return found if source == dtype else functions.converter(source, dtype)(found)
    if isinstance(found, (bool, int, float, complex)):
        return functions.converter(None, dtype)(found)
    raise InvalidArgumentError(f"the meaning of '{name}' gives {shown(found)}, and no number")


def _of_expression(function: DeviceFunction) -> Callable[..., Any]:
    types = dict(function.arguments)
    translator = Translator(Names(frozenset(), {}, types, lambda name, _: name))
    source = translator.stored(function.meaning, function.result)
    space = dict(translator.space)
    text = f"def call({', '.join(types)}):\n    return {source}"
    exec(code_of(text, f"<{function.name}>"), space)
    found: Callable[..., Any] = space["call"]
    return found
