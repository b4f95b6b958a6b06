"""Inference of missing types from the expressions that are assigned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import TemporaryVariable
from loopkit._errors import TypeInferenceError, caret_at
from loopkit._expression import is_no_access, names_among, nodes_of, to_text
from loopkit._kernel import Kernel, Statement
from loopkit._make.free_names import closure
from loopkit._make.reduction_operations import operations_of
from loopkit._nodes import Expression, Record
from loopkit._promotion import INT32, DType, RunTime
from loopkit._relations import grouped
from loopkit._rules import expand_rules
from loopkit._same import same
from loopkit._types import Kind, concrete, dtype_of, joined_kind, known_types


class Types:
    """What is known of the types of a kernel's names.

    ``for_calls``: arguments that only get numbers without a type of their own stay open,
    so that the arrays of a call may decide.
    """

    def __init__(self, kernel: Kernel, *, for_calls: bool = False) -> None:
        self.kernel = kernel
        self.for_calls = for_calls
        expanded = expand_rules(kernel)
        self.statements, self.readers = expanded.statements, expanded.readers
        self.operations = operations_of(kernel.reductions)
        self.known = known_types(kernel)
        data = (*kernel.args, *kernel.temporaries)
        self.unknown = dict.fromkeys(d.name for d in data if d.dtype is None)
        for name in self.unknown:
            self.known.pop(name, None)

    def of_value(self, statement: Statement) -> Kind | None:
        """The type of what a statement assigns; None where that is not known yet."""
        try:
            rhs = statement.rhs
            operation = statement.operation if statement.kind == "update" else None
            if statement.kind == "update" and operation is None:
                # A segmented reduction has the type of its terms.
                operation = self.kernel.temporary_by_name[statement.written].accumulates
                term = self.operations[operation or ""].term(statement.lhs, rhs)
                rhs = rhs.then if term is None else term
            parts = rhs.parts if isinstance(rhs, Record) else (rhs,)
            kinds = [dtype_of(part, self.known.__getitem__) for part in parts]
            if operation is not None:
                kind = self.operations[operation].result_type(*kinds)
                return self._narrowed(statement.written, kind, operation)
            return kinds[0]
        except KeyError:
            return None
        except TypeInferenceError as error:
            raise located(error, statement) from None

    def _narrowed(self, accumulator: str, kind: DType, operation: str) -> DType:
        """The type of a sum or product; not wider than the integers that it is stored as.

        The bits that a narrower integer keeps follow from those of the terms alone.
        """
        if operation not in ("sum", "product") or kind.kind not in "iu":
            return kind
        stores = [s for s in self.readers.get(accumulator, ()) if s.kind != "update"]
        if any(s.written in self.unknown for s in stores) or not all(
            same(s.rhs, prim.Variable(accumulator)) for s in stores
        ):
            return kind
        kinds = {self.known[s.written] for s in stores}
        if len(kinds) != 1:
            return kind
        (stored,) = kinds
        if not isinstance(stored, np.dtype) or stored.kind not in "iu" or stored.itemsize == 8:
            return kind
        return INT32 if stored.itemsize < 4 else stored

    def find(self) -> None:
        """Find what can be found: of each name the type that holds all that is assigned to it.

        What needs a type that only a call will say stays open.  Names that are computed from
        each other, or from themselves, grow until all their writers agree.
        """
        writers = grouped(
            (s.written, s)
            for s in self.statements
            if s.written in self.unknown and s.kind != "init"
        )
        needs = {
            name: frozenset().union(*(typed_names(s.rhs) for s in them))
            for name, them in writers.items()
        }
        open_ = closure({n for n in self.unknown if n not in needs}, needs)
        kinds = self._grown([n for n in writers if n not in open_], writers, needs)
        if self.for_calls:
            weak = {n for n, kind in kinds.items() if isinstance(kind, RunTime)}
            open_ = closure(open_ | (weak & self.kernel.arg_by_name.keys()), needs)
        for name, kind in kinds.items():
            if name in open_:
                self.known.pop(name)
            else:
                self.known[name] = concrete(kind)
                self.unknown.pop(name)

    def _grown(
        self,
        names: Sequence[str],
        writers: Mapping[str, Sequence[Statement]],
        needs: Mapping[str, frozenset[str]],
    ) -> dict[str, Kind]:
        """The joined types of all writers of each name; those of numbers stay weak."""
        kinds: dict[str, Kind] = {}
        waiting = dict.fromkeys(names)
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            before = kinds.get(name)
            joined = before
            for statement in writers[name]:
                kind = self.of_value(statement)
                if kind is not None:
                    joined = kind if joined is None else joined_kind(joined, kind)
            # A type compares equal to None where NumPy's default is that type.
            if joined is not None and (before is None or joined != before):
                kinds[name] = joined
                self.known[name] = joined
                waiting.update(dict.fromkeys(n for n in names if name in needs[n]))
        return kinds


def typed_names(expr: Expression) -> frozenset[str]:
    """The names whose types the type of ``expr`` follows from: not those in subscripts."""
    return names_among(nodes_of(expr, into=is_no_access))


def located(error: TypeInferenceError, statement: Statement) -> TypeInferenceError:
    """An error about types that says in which statement it arose."""
    caret = caret_at(statement.position)
    spelled = f"\n{caret}" if caret else f" {to_text(statement.lhs)} = {to_text(statement.rhs)}"
    where = f"in statement '{statement.id}':{spelled}"
    asked = "\n".join(p for p in (error.asked, where) if p)
    return TypeInferenceError(error.why, asked=asked, instead=error.instead)


def infer_known_types(kernel: Kernel) -> Kernel:
    """The kernel with all types that can be found; others stay open."""
    types = Types(kernel, for_calls=True)
    if types.unknown:
        types.find()
    return _with_types(kernel, types)


def infer_types(kernel: Kernel) -> Kernel:
    """The kernel with the types of all its data.

    Raises :class:`TypeInferenceError` where one cannot be found.
    """
    if all(d.dtype is not None for d in (*kernel.args, *kernel.temporaries)):
        return kernel
    types = Types(kernel)
    types.find()
    if types.unknown:
        raise _missing(kernel, types)
    return _with_types(kernel, types)


def _missing(kernel: Kernel, types: Types) -> TypeInferenceError:
    written = {s.written for s in types.statements}
    roots = [n for n in types.unknown if n not in written] or list(types.unknown)
    names = ", ".join(f"'{n}'" for n in roots)
    example = ", ".join(roots)
    dependent = [n for n in types.unknown if n not in roots]
    more = f" (and so those of {', '.join(repr(n) for n in dependent)})" if dependent else ""
    plural = "types" if len(roots) > 1 else "type"
    return TypeInferenceError(
        f"the {plural} of {names}{more} {'are' if len(roots) > 1 else 'is'} not known",
        asked=f"kernel '{kernel.name}'",
        instead=f'give make_kernel dtypes={{"{example}": "float32"}}, or call '
        f'add_dtypes(knl, {{"{example}": "float32"}})',
    )


def _with_types(kernel: Kernel, types: Types) -> Kernel:
    def typed(data: Any) -> Any:
        if data.dtype is None and data.name in types.known:
            return replace(data, dtype=types.known[data.name])
        return data

    args = tuple(typed(a) for a in kernel.args)
    temporaries = tuple(typed(t) for t in kernel.temporaries)
    started = {t.name: t for t in temporaries if t.accumulates and t.dtype is not None}
    statements = tuple(_with_start(s, started, types) for s in kernel.statements)
    return kernel.with_(args=args, temporaries=temporaries, statements=statements)


def _with_start(
    statement: Statement, accumulators: dict[str, TemporaryVariable], types: Types
) -> Statement:
    """An ``init`` with the neutral element of its accumulator's type."""
    if statement.kind != "init" or statement.written not in accumulators:
        return statement
    accumulator = accumulators[statement.written]
    assert accumulator.accumulates is not None and accumulator.dtype is not None
    start = types.operations[accumulator.accumulates].start(accumulator.dtype)
    return statement if same(start, statement.rhs) else replace(statement, rhs=start)
