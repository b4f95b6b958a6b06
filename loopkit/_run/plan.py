"""The calling convention of a program, prepared once, and checked at every call.

A plan takes the arguments of a call, by name or by position.  It returns the sizes, scalars and
arrays of the program, or raises an error with the argument's name, the expected and the actual
value.  All executors use it.
"""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._cached import cached_property
from loopkit._errors import AssumptionError, InvalidArgumentError, UnknownNameError, counted
from loopkit._expression import to_text, variable_names
from loopkit._frozen import dataclass
from loopkit._program import ArrayParam, Check, Program, ValueParam
from loopkit._promotion import dtype_name
from loopkit._run import overlap
from loopkit._run.arrays import HOST, NUMPY, ArrayInfo, ArrayKind, Layout, Location, numpy_empty
from loopkit._run.inferred_sizes import Known, SizeSolver, whole_value
from loopkit._run.kinds import info_of
from loopkit._run.launch_sequence import grid_of
from loopkit._run.scalars import check_scalar, is_integer


@dataclass
class Resolved:
    """The arguments of one call, checked.

    ``values`` holds every size and scalar, ``arrays`` what was passed, ``layouts``
    what the program wants of each array, passed or not.  ``strided`` names the arrays
    whose strides differ from that: they need the program's strided variant.
    ``location`` is where the arrays are, ``kind`` what an output is made as.
    """

    plan: ArgumentPlan
    values: dict[str, Any]
    arrays: dict[str, ArrayInfo]
    layouts: dict[str, Layout]
    strided: frozenset[str]
    location: Location
    kind: ArrayKind
    _numpy: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @property
    def stream_ordered(self) -> bool:
        """Whether all libraries involved order their work after ours."""
        return all(info.kind.stream_ordered for info in self.arrays.values())

    @cached_property
    def grid(self) -> tuple[int, int, int]:
        """How many blocks run along x, y and z; no extent is negative."""
        return grid_of(self.plan.program, self.values)

    def value(self, param: ValueParam, *, copied: bool = False) -> Any:
        """The value of a parameter of the program or of one of its strided variants.

        ``copied``: arrays are not as they were passed, but have the program's own layouts.
        """
        if param.role == "stride":
            assert param.array is not None and param.axis is not None
            passed = None if copied else self.arrays.get(param.array)
            array = passed or self.layouts[param.array]
            origin = f"the stride of {param.array}"
            return check_scalar(param.name, array.strides[param.axis], param.dtype, origin)
        return self.values[param.name]

    def numpy_arrays(self) -> dict[str, np.ndarray[Any, Any]]:
        """All arrays of the program as NumPy arrays over the caller's memory.

        Outputs that were not passed are allocated, and so are scratch arrays; arrays
        that cannot be written are copied first.  `result` hands out what this made.
        """
        if self.location != HOST:
            where = next(n for n, info in self.arrays.items() if info.location != HOST)
            raise InvalidArgumentError(
                f"{where} is on {self.location}, but this executor takes arrays in host memory",
                instead="copy it to the host, or run the kernel with the cuda executor",
            )
        for param in self.plan.array_params:
            if param.name in self._numpy:
                continue
            info = self.arrays.get(param.name)
            if info is None:
                array = numpy_empty(self.layouts[param.name], param.dtype)
            else:
                array = info.kind.as_numpy(info.object)
                if param.is_written and info.kind.immutable:
                    array = array.copy()
            self._numpy[param.name] = array
        return self._numpy

    def result(self) -> Any:
        """What the call returns, with the outputs among `numpy_arrays`."""
        arrays, outputs = self.numpy_arrays(), []
        for name in self.plan.outputs:
            info = self.arrays.get(name)
            if info is None or info.kind.immutable:
                kind = self.kind if info is None else info.kind
                outputs.append(kind.from_numpy(arrays[name]))
            else:
                outputs.append(info.object)
        return self.plan.pack_outputs(outputs)


def no_streams(name: str) -> InvalidArgumentError:
    """The error for a stream where there is none."""
    return InvalidArgumentError(
        f"{name} runs on the CPU here, which has no streams",
        instead="leave out stream=, or run the kernel with the cuda executor",
    )


class ArgumentPlan:
    """What calls of one program take and return.

    Parameters
    ----------
    program:
        Only its signature is looked at: ``name``, ``params``, ``arguments``, ``grid``
        and ``checks``.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self.name = program.name
        self.array_params: tuple[ArrayParam, ...] = tuple(
            p for p in program.params if isinstance(p, ArrayParam)
        )
        self.arrays = {p.name: p for p in self.array_params if p.role == "argument"}
        self.scalars: dict[str, ValueParam] = {
            p.name: p for p in program.params if isinstance(p, ValueParam) and p.role == "argument"
        }
        self.stride_params = tuple(
            p for p in program.params if isinstance(p, ValueParam) and p.role == "stride"
        )
        declared = [*self.arrays, *self.scalars]
        order = program.arguments or tuple(declared)
        # A declared argument that the code never uses has no parameter; it may be passed.
        self.names: tuple[str, ...] = (*order, *(n for n in declared if n not in order))
        self.outputs = tuple(
            n for n in self.names if n in self.arrays and self.arrays[n].is_written
        )
        self.solver = SizeSolver(self)

    @cached_property
    def checks(self) -> tuple[tuple[Check, frozenset[str]], ...]:
        """The conditions on the sizes, each with the names that it is about."""
        return tuple((c, variable_names(c.condition)) for c in self.program.checks)

    @cached_property
    def free_scalars(self) -> frozenset[str]:
        """Scalars that decide neither a shape, nor a stride, nor the grid."""
        sizes = [e for p in self.array_params for e in (*p.shape, *p.strides)]
        decided = (variable_names(e) for e in (*sizes, *self.program.extents))
        return frozenset(self.scalars) - frozenset().union(*decided)

    def signature(self) -> str:
        """``matmul(n, m, l; a[n, l], b[l, m]) -> c[n, m]``, for messages."""
        scalars = ", ".join(n for n in self.names if n in self.scalars)
        reads = ", ".join(
            self.declaration(n) for n in self.names if n in self.arrays and n not in self.outputs
        )
        writes = ", ".join(self.declaration(n) for n in self.outputs)
        inside = "; ".join(part for part in (scalars, reads) if part)
        return f"{self.name}({inside}) -> {writes}" if writes else f"{self.name}({inside})"

    def declaration(self, name: str) -> str:
        """``a[n, l]``"""
        return f"{name}[{', '.join(to_text(e) for e in self.arrays[name].shape)}]"

    @cached_property
    def tuple_type(self) -> Any:
        """The named tuple of several outputs."""
        return collections.namedtuple(
            f"{self.name}_result", self.outputs, rename=True, module=__name__
        )

    def pack_outputs(self, outputs: Sequence[Any]) -> Any:
        """One output as itself, several as a named tuple, none as None."""
        if len(outputs) == 1:
            return outputs[0]
        return self.tuple_type(*outputs) if outputs else None

    # -- a call, step by step

    def resolve(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Resolved:
        """Check the arguments of one call."""
        given = self.given(args, kwargs)
        try:
            known = self.passed(given)
        except InvalidArgumentError as error:
            if args and not error.asked:
                error.asked = f"in a call of {self.name} by position: {', '.join(self.names)}"
            raise
        arrays, values = self.describe(given), known.values
        self.solver.infer(known, arrays)
        self.complete(values)
        self.solver.check_shapes(known, arrays)
        for name, param in self.scalars.items():
            if is_integer(param.dtype):
                origin = known.origins.get(name, "")
                values[name] = check_scalar(name, values[name], param.dtype, origin)
        self.check(known)
        layouts = self.solver.layouts(known, arrays)
        location, kind = self._place(arrays)
        overlap.check(self, arrays, layouts)
        strided = frozenset(n for n, info in arrays.items() if not layouts[n].has(info.strides))
        return Resolved(self, values, arrays, layouts, strided, location, kind)

    def given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call by name, without those that are None."""
        if len(args) > len(self.names):
            raise InvalidArgumentError(
                f"{self.name} takes at most {counted(len(self.names), 'argument')} "
                f"({', '.join(self.names)}), but {len(args)} were given by position"
            )
        given = dict(zip(self.names, args, strict=False))
        for name, value in kwargs.items():
            if name in given:
                raise InvalidArgumentError(
                    f"{name} was given twice, by position and by name, in a call of {self.name}"
                )
            if name == "stream" and name not in self.names:
                if value is None:
                    continue
                raise no_streams(self.name)
            if name not in self.names:
                raise UnknownNameError(
                    "argument", name, self.names, asked=f"in a call of {self.signature()}"
                )
            given[name] = value
        return {name: value for name, value in given.items() if value is not None}

    def passed(self, given: Mapping[str, Any]) -> Known:
        """The sizes and scalars among the arguments of a call, each checked by itself."""
        values = {
            name: check_scalar(name, given[name], param.dtype)
            for name, param in self.scalars.items()
            if name in given
        }
        for name in given.keys() - self.arrays.keys() - self.scalars.keys():
            if isinstance(given[name], int | np.integer):  # an unused size
                values[name] = int(given[name])
        return Known(values, dict.fromkeys(values, "as passed"))

    def describe(self, given: Mapping[str, Any], *, partly: bool = False) -> dict[str, ArrayInfo]:
        """The arrays among the arguments of a call, in order, each checked by itself.

        Those that are read must be there, unless these are ``partly`` the arguments.
        """
        missing = [n for n in self.names if n in self.arrays and n not in given and not partly]
        missing = [n for n in missing if self.arrays[n].is_read]
        if missing:
            what = [f"{self.declaration(n)} of {dtype_name(self.arrays[n].dtype)}" for n in missing]
            verb = "are" if len(what) > 1 else "is"
            raise InvalidArgumentError(
                f"{', '.join(what)} {verb} missing: {self.name} reads "
                f"{'them' if len(what) > 1 else 'it'}",
                asked=f"in a call of {self.signature()}",
                instead=f"pass {', '.join(f'{n}=...' for n in missing)}",
            )
        infos = {}
        for name in self.names:
            param = self.arrays.get(name)
            if param is None or name not in given:
                continue
            infos[name] = info = info_of(name, given[name], param.dtype)
            if info.dtype != param.dtype:
                remedy = f"convert it, or make the kernel for {name} of another type"
                if info.dtype.newbyteorder("=") == param.dtype:
                    remedy = "convert it to this machine's byte order"
                # NumPy says what the parts of its records are called.
                came = str(info.dtype) if info.dtype.names else dtype_name(info.dtype)
                raise InvalidArgumentError(
                    f"{name}: dtype should be {dtype_name(param.dtype)}, but is {came}",
                    instead=remedy,
                )
            if len(info.shape) != len(param.shape):
                axes = counted(len(param.shape), "axis", "axes")
                raise InvalidArgumentError(
                    f"{name}: should have {axes}, as {self.declaration(name)} "
                    f"has, but its shape is {tuple(info.shape)}"
                )
        return infos

    def complete(self, values: dict[str, Any]) -> None:
        """Add the defaults of scalars; those that still have no value are an error."""
        for name, param in self.scalars.items():
            if name not in values and param.default is not None:
                default = param.default
                if isinstance(default, prim.ExpressionNode):
                    if not variable_names(default) <= values.keys():
                        continue
                    default = whole_value(default, values)
                values[name] = check_scalar(name, default, param.dtype)
        missing = [n for n in self.names if n in self.scalars and n not in values]
        if not missing:
            return
        name, dtype = missing[0], self.scalars[missing[0]].dtype
        why = f"{name} ({dtype_name(dtype)}) is missing"
        if is_integer(dtype):
            shapes = {n: self.arrays[n].shape for n in self.names if n in self.arrays}
            where = [n for n in shapes if any(name in variable_names(e) for e in shapes[n])]
            shown, why = ", ".join(map(self.declaration, where)), "no array has it in its shape"
            why = f"what was passed does not determine it ({shown})" if where else why
            why = f"the value of {name} is not known: {why}"
        raise InvalidArgumentError(
            why, asked=f"in a call of {self.signature()}", instead=f"pass {name}=..."
        )

    def check_sizes(self, sizes: Mapping[str, Any]) -> dict[str, int]:
        """Some sizes as integers that the program can have, as far as they alone decide it."""
        unused = np.dtype(np.int64)
        dtypes = {n: self.scalars[n].dtype if n in self.scalars else unused for n in sizes}
        values = {name: check_scalar(name, sizes[name], dtypes[name]) for name in sizes}
        self.check(Known(values, {}))
        return values

    def check(self, known: Known) -> None:
        """Refuse what breaks an assumption about the sizes, as far as what is known decides it."""
        for check, names in self.checks:
            if names <= known.values.keys() and not whole_value(check.condition, known.values):
                raise AssumptionError(
                    f"{self.name} was made under the assumption {check.text}, "
                    f"but {known.described(sorted(names))}"
                )

    def _place(self, arrays: Mapping[str, ArrayInfo]) -> tuple[Location, ArrayKind]:
        """Where all arrays are, and the kind of the first."""
        if not arrays:
            return HOST, NUMPY
        [(first_name, first), *others] = arrays.items()
        for name, info in others:
            if info.location != first.location:
                pair = ((name, info), (first_name, first))
                (one, a), (other, b) = sorted(pair, key=lambda item: item[1].location != HOST)
                on_host = f"in host memory (an array of {a.kind.name})"
                raise InvalidArgumentError(
                    f"{one} is {on_host if a.location == HOST else f'on {a.location}'}, "
                    f"but {other} is on {b.location}",
                    instead="copy one of them to where the other is",
                )
        return first.location, first.kind
