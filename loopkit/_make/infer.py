"""Types of what has none: from the expressions that are assigned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from loopkit._arrays import ArrayArg, TemporaryVariable, ValueArg
from loopkit._errors import TypeInferenceError
from loopkit._expression import to_text, variable_names
from loopkit._kernel import Kernel, Statement
from loopkit._make.operations import operations_of
from loopkit._nodes import Expression
from loopkit._rules import expand_rules
from loopkit._types import INT32, WeakType, concrete, dtype_of, promote

DType = np.dtype[Any]
_SAMPLES = {WeakType.INT: 0, WeakType.FLOAT: 0.0, WeakType.COMPLEX: 0j}
_RANK = (WeakType.INT, WeakType.FLOAT, WeakType.COMPLEX)


class _Unknown(Exception):
    """The type of a name is not known yet."""


class Types:
    """What is known of the types of a kernel's names."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.statements = expand_rules(kernel).statements
        self.operations = operations_of(kernel.reductions)
        self.known: dict[str, DType] = dict.fromkeys(kernel.all_inames, INT32)
        self.unknown: dict[str, None] = {}
        for data in (*kernel.args, *kernel.temporaries):
            if data.dtype is not None:
                self.known[data.name] = data.dtype
            else:
                self.unknown[data.name] = None

    def of_name(self, name: str) -> DType:
        found = self.known.get(name)
        if found is None:
            raise _Unknown(name)
        return found

    def of_value(self, statement: Statement) -> DType | WeakType | None:
        """The type of what a statement assigns; None where that is not known yet."""
        try:
            kind = dtype_of(statement.rhs, self.of_name)
        except _Unknown:
            return None
        except TypeInferenceError as error:
            raise _located(error, statement) from None
        if statement.kind == "update" and statement.operation is not None:
            return self.operations[statement.operation].result_type(kind)
        return kind

    def find(self) -> None:
        """Find what can be found, in the order of execution until nothing changes."""
        writers: dict[str, list[Statement]] = {}
        for statement in self.statements:
            if statement.written in self.unknown and statement.kind != "init":
                writers.setdefault(statement.written, []).append(statement)
        readers: dict[str, list[str]] = {}
        for name, them in writers.items():
            for statement in them:
                for used in statement.names:
                    if used in writers and used != name:
                        readers.setdefault(used, []).append(name)
        waiting = dict.fromkeys(writers)
        late: set[str] = set()
        while waiting:
            name = next(iter(waiting))
            del waiting[name]
            if name in self.known:
                continue
            found = self._joined(writers[name], name, partial=name in late)
            if found is not None:
                self.known[name] = found
                self.unknown.pop(name)
                waiting.update(dict.fromkeys(readers.get(name, ())))
            if not waiting:
                # Variables that are computed from each other start from what is known of one.
                left = [n for n in writers if n not in self.known and n not in late]
                if left:
                    late.add(left[0])
                    waiting[left[0]] = None

    def _joined(self, writers: Sequence[Statement], name: str, *, partial: bool) -> DType | None:
        """The type that holds all that is assigned to ``name``.

        An update such as ``t = t + a[i]`` says nothing by itself about ``t``, but
        what it adds does: it is looked at again with what the others say.
        """
        own = [s for s in writers if name in _read_names(s)]
        others = [s for s in writers if name not in _read_names(s)]
        joined: DType | WeakType | None = None
        for statement in others:
            kind = self.of_value(statement)
            if kind is None:
                if partial:
                    continue
                return None
            joined = kind if joined is None else join(joined, kind)
        if joined is None and own and not others:
            return None
        for _ in range(4):
            if joined is None:
                return None
            before = joined
            for statement in own:
                kind = self._of_own(statement, name, joined)
                if kind is None:
                    if partial:
                        continue
                    return None
                joined = join(joined, kind)
            if joined == before:
                break
        return None if joined is None else concrete(joined)

    def _of_own(
        self, statement: Statement, name: str, own: DType | WeakType
    ) -> DType | WeakType | None:
        if isinstance(own, WeakType):
            # A constant is weak: the variable takes the type of what it meets.
            sample = _SAMPLES[own]

            from loopkit._expression import replace_accesses

            def weak(used: str, indices: tuple[Expression, ...]) -> Expression | None:
                return sample if used == name else None

            try:
                return dtype_of(replace_accesses(statement.rhs, weak), self.of_name)
            except _Unknown:
                return None
            except TypeInferenceError:
                own = concrete(own)
        self.known[name] = own
        try:
            return self.of_value(statement)
        finally:
            del self.known[name]


def _read_names(statement: Statement) -> frozenset[str]:
    return variable_names(statement.rhs)


def join(a: DType | WeakType, b: DType | WeakType) -> DType | WeakType:
    """The type of a variable that holds values of both types."""
    if isinstance(a, WeakType) and isinstance(b, WeakType):
        return max(a, b, key=_RANK.index)
    if isinstance(a, WeakType):
        a, b = b, a
    assert isinstance(a, np.dtype)
    return promote(a, _SAMPLES[b] if isinstance(b, WeakType) else b)


def _located(error: TypeInferenceError, statement: Statement) -> TypeInferenceError:
    where = f"in statement '{statement.id}': {to_text(statement.lhs)} = {to_text(statement.rhs)}"
    asked = "\n".join(p for p in (error.asked, where) if p)
    return TypeInferenceError(error.why, asked=asked, instead=error.instead)


def infer_known_types(kernel: Kernel) -> Kernel:
    """The kernel with all types that can be found; others stay open."""
    types = Types(kernel)
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
    neutral = types.operations[accumulator.accumulates].neutral(accumulator.dtype)
    if type(neutral) is type(statement.rhs) and neutral == statement.rhs:
        return statement
    return replace(statement, rhs=neutral)


def add_types(kernel: Kernel, dtypes: dict[str, DType]) -> Kernel:
    """The kernel with the given types, and with those that follow from them."""

    def typed(data: ArrayArg | ValueArg | TemporaryVariable) -> Any:
        dtype = dtypes.get(data.name)
        return data if dtype is None else replace(data, dtype=dtype)

    kernel = kernel.with_(
        args=tuple(typed(a) for a in kernel.args),
        temporaries=tuple(typed(t) for t in kernel.temporaries),
    )
    return infer_known_types(kernel)
