"""From a kernel to a program: a fixed sequence of passes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import partial
from math import prod

import islpy as isl
import pymbolic.primitives as prim

from loopkit._arrays import (
    Argument,
    ArrayArg,
    GivenStride,
    Strided,
    ValueArg,
    last_fastest,
    strides_of,
)
from loopkit._budget import in_turn
from loopkit._cached import memoised
from loopkit._errors import CompileError, IllegalTransformError, LoopkitError
from loopkit._expression import to_text
from loopkit._guarded import conjuncts_of
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._make.check_bounds import check_settled
from loopkit._open_lengths import open_lengths
from loopkit._program import (
    ArrayParam,
    Check,
    Launches,
    Program,
    ProgramIf,
    ProgramLoop,
    SourceLine,
    ValueParam,
    cleared_in,
)
from loopkit._slabs import settled
from loopkit._tree import build, flatten, nodes_in
from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.printer import printed
from loopkit.codegen.c.spec import check
from loopkit.codegen.c.tree import Assign, Break, Combine, Function, statements
from loopkit.codegen.combinations import scratch_bytes
from loopkit.codegen.functions import (
    BodyLowering,
    exchanged_arrays,
    parameters,
    signature,
    tables_of,
)
from loopkit.codegen.joined import joined
from loopkit.codegen.joins import joins_of
from loopkit.codegen.launches import Part, PartIf, Parts, parts_of, with_spaces
from loopkit.codegen.merged_loads import mistaken_arrays
from loopkit.codegen.nest import Nest, in_time, nest_of
from loopkit.codegen.own_functions import declared_in, lines_above
from loopkit.codegen.preamble import preamble
from loopkit.codegen.prepare import prepare
from loopkit.codegen.storage import ALIGNMENT, global_temporaries, lay_out
from loopkit.codegen.widths import INT32, INT64, Ranges, largest_size, observe_ranges


def program_of(kernel: Kernel, strided: frozenset[str] = frozenset()) -> Program:
    """The program of a kernel: what :func:`lower` makes (memoised)."""
    return _program_of(kernel, strided, *unproven(kernel))


@memoised
def _program_of(kernel: Kernel, strided: frozenset[str], *notes: str) -> Program:
    return lower(kernel, strided)


@in_turn
def lower(kernel: Kernel, strided: frozenset[str] = frozenset()) -> Program:
    """CUDA C for a kernel, and its signature.

    ``strided`` names array arguments whose strides become parameters, for arrays that are not
    contiguous. Raises the errors of the passes: missing types, schedules that no block can
    execute, sizes that are not constant where they must be; :class:`~loopkit.UndecidedError` if
    isl exceeds its budget for bounds, guards and barriers.
    """
    notes = unproven(kernel)
    check_settled(kernel)
    try:
        made = settled(kernel)
        return (_lowered if is_one_launch(made) else _sequence)(made, strided, notes)
    except LoopkitError as error:
        # What is owed is said of the loops of the schedule, not of what they are peeled into.
        raise next(open_lengths(kernel), error) from None


def _lowered(kernel: Kernel, strided: frozenset[str], notes: Iterable[str] = ()) -> Program:
    """The program of one launch."""
    kernel = prepare(kernel)
    nest = nest_of(kernel)
    return in_time(kernel, partial(_made, kernel, nest, strided, notes))


def _made(kernel: Kernel, nest: Nest, strided: frozenset[str], notes: Iterable[str]) -> Program:
    kernel, strides = _with_strides(kernel, strided)
    storage = lay_out(kernel, scratch_bytes(kernel, nest.hardware.block))
    scratch = global_temporaries(kernel)
    ranges = Ranges(kernel, nest.hardware)
    observe_ranges(ranges, nest.code)
    lowering = BodyLowering(kernel, nest, storage, ranges)
    body = lowering.body()
    params: list[ValueParam | ArrayParam] = [*parameters(kernel, scratch), *strides]
    exchanged = exchanged_arrays(kernel, nest)
    if lowering.tiles is not None:
        params += lowering.tiles.parameters(kernel)
        exchanged |= {p.name for p in lowering.tiles.parameters(kernel)}
    exchanged |= mistaken_arrays(body, params)
    cleared = " and ".join(cleared_in(params))
    if cleared:
        notes = [*notes, f"// {cleared} hold zeros when a launch begins."]
    function, source = _completed(
        Function(
            name=kernel.name,
            parameters=signature(params, exchanged),
            body=body,
            tables=tables_of(kernel),
            threads=prod(nest.hardware.block),
            alignment=ALIGNMENT if storage.dynamic_shared else None,
            joins=joins_of(kernel),
            own=declared_in(kernel),
        ),
        notes,
        lines_above(kernel),
    )
    return Program(
        name=kernel.name,
        source=source,
        params=tuple(params),
        grid=nest.hardware.grid,
        block=nest.hardware.block,
        static_shared=storage.static_shared,
        dynamic_shared=storage.dynamic_shared,
        checks=(*checks(kernel.assumptions.set), *size_checks(kernel)),
        arguments=tuple(a.name for a in kernel.passed),
        options=("--use_fast_math",) if kernel.options.fast_math else (),
        tree=function,
        lines=_origins(kernel, function, source.count("\n")),
    )


def _sequence(kernel: Kernel, strided: frozenset[str], notes: Iterable[str]) -> Program:
    """One program for all launches of a kernel."""
    parts = in_time(kernel, partial(parts_of, kernel))
    if not parts:  # loops around all launches that never run: nothing has to wait in there
        return _lowered(kernel.with_(tree=build(flatten(kernel.tree))), strided, notes)
    launches = _launches(parts, strided)
    whole, strides = _with_strides(prepare(with_spaces(kernel)), strided)
    params: list[ValueParam | ArrayParam] = parameters(whole, global_temporaries(whole))
    params += _tile_states(launches, {p.name for p in params}).values()
    made = Program(
        name=kernel.name,
        source="",
        params=(*params, *strides),
        grid=(1, 1, 1),
        block=(1, 1, 1),
        checks=(*checks(kernel.assumptions.set), *size_checks(whole)),
        arguments=tuple(a.name for a in kernel.passed),
        options=("--use_fast_math",) if kernel.options.fast_math else (),
        launches=launches,
    )
    source, lines = joined(made, notes, lines_above(whole))
    return replace(made, source=source, lines=lines)


def _launches(parts: Parts, strided: frozenset[str]) -> Launches:
    """The programs of some launches, and the loops that a call runs around them."""
    found: list[Program | ProgramLoop | ProgramIf] = []
    for part in parts:
        if isinstance(part, Part):
            own = strided & part.kernel.arg_by_name.keys()
            found.append(_lowered(part.kernel, own))
            continue
        body = _launches(part.body, strided)
        if isinstance(part, PartIf):
            found.append(ProgramIf(part.condition, body))
            continue
        bounds = part.bounds
        ends = bounds.lower, bounds.upper
        found.append(ProgramLoop(part.iname, part.dtype, *ends, bounds.step, body))
    return tuple(found)


def _tile_states(launches: Launches, taken: Set[str]) -> Mapping[str, ArrayParam]:
    """The global arrays of the launches' tiles, by name, each with its largest size over launches.

    Each launch finds them cleared, or reads only what it has written; ``taken`` are names in use.
    """
    found: dict[str, ArrayParam] = {}
    programs = (one for one in nodes_in(launches, Program) if isinstance(one, Program))
    arrays = (p for one in programs for p in one.params if isinstance(p, ArrayParam))
    for param in (array for array in arrays if array.is_state):
        if param.name in taken:
            raise IllegalTransformError(
                f"'{param.name}' is what blocks leave for each other, and something else elsewhere",
                instead="another name for the array, or for the accumulator",
            )
        shapes = {found.get(param.name, param).shape, param.shape}
        most = (prim.Max(tuple(count for (count,) in shapes)),)
        found[param.name] = replace(param, shape=most if len(shapes) > 1 else param.shape)
    return found


def _completed(
    function: Function, notes: Iterable[str], own: Iterable[str]
) -> tuple[Function, str]:
    """The validated function and its text below the definitions that it needs; ``notes`` on top.

    ``own`` are the user's definitions; of loopkit's they may use only the types of complex
    numbers.
    """
    try:
        needs = check(function)
    except ReadError as error:
        raise CompileError(
            f"what was generated is no CUDA C: {error.what}", source=printed(function)[1]
        ) from None
    definitions = preamble(needs).split("\n") if needs else ()
    return printed(replace(function, above=(*notes, *definitions, *own)))


def _origins(kernel: Kernel, function: Function, count: int) -> tuple[SourceLine, ...]:
    """Which statement each line executes, and the step that made it."""
    found = [SourceLine(None, None)] * count
    for node in statements(function.body):
        if isinstance(node, (Assign, Break, Combine)) and node.statement is not None:
            made_by = kernel.statement_by_id[node.statement].made_by
            found[node.line - 1] = SourceLine(node.statement, made_by)
    return tuple(found)


def unproven(kernel: Kernel) -> list[str]:
    """Comments that name the steps whose legality was not proven."""
    steps = [s.call()[1:] for s in kernel.history if s.verdict == "unchecked"]
    return [f"// not proven to keep the kernel's meaning: {step}" for step in steps]


def _with_strides(kernel: Kernel, strided: frozenset[str]) -> tuple[Kernel, list[ValueParam]]:
    """The kernel with stride parameters for the arrays given, and for those declared with them."""
    parameters_: list[ValueParam] = []
    args = []
    for argument in kernel.args:
        axes = _given_axes(argument, strided)
        if isinstance(argument, ArrayArg) and axes:
            tags = list(argument.dim_tags or last_fastest(len(argument.shape or ())))
            packed = strides_of(argument)
            for axis in axes:
                taken = [p.name for p in parameters_]
                name = kernel.fresh_name(f"{argument.name}_stride{axis}", taken)
                tags[axis] = Strided(prim.Variable(name))
                own = ValueParam(name, INT64, "stride", argument.name, axis, packed[axis])
                parameters_.append(own)
            argument = replace(argument, dim_tags=tuple(tags))
        args.append(argument)
    return kernel.with_(args=tuple(args)), parameters_


def _given_axes(argument: Argument, strided: frozenset[str]) -> list[int]:
    """The axes of an array whose strides are parameters."""
    if not isinstance(argument, ArrayArg):
        return []
    if argument.name in strided:
        return list(range(len(argument.shape or ())))
    tags = enumerate(argument.dim_tags or ())
    return [axis for axis, tag in tags if isinstance(tag, GivenStride)]


def size_checks(kernel: Kernel) -> tuple[Check, ...]:
    """32-bit sizes stay below where index arithmetic that rounds them up would overflow."""
    result = [*computed_checks(kernel)]
    for argument in kernel.args:
        if isinstance(argument, ValueArg) and argument.name in kernel.sizes:
            limit = largest_size(argument.dtype or INT32)
            if limit < 2**32:
                text = f"{argument.name} <= {limit} (declare '{argument.name}' int64 for more)"
                condition = prim.Comparison(prim.Variable(argument.name), "<=", limit)
                result.append(Check(condition, text))
    return tuple(result)


def computed_checks(kernel: Kernel) -> Iterator[Check]:
    """Checks that sizes which are computed from others have these values if a call passes them."""
    for name, value in kernel.computed_sizes.items():
        yield Check(prim.Comparison(prim.Variable(name), "==", value), f"{name} = {to_text(value)}")


def checks(assumptions: isl.Set) -> tuple[Check, ...]:
    """The assumptions as conditions that every call tests."""
    return tuple(Check(part, to_text(part)) for part in conjuncts_of(assumptions))
