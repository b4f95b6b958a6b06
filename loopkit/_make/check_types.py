"""Type errors in a finished kernel, and warnings about surprising types."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection

import numpy as np
import pymbolic.primitives as prim

from loopkit import _promotion
from loopkit._called import frames_inside
from loopkit._errors import LoopkitWarning, TypeInferenceError, caret_at
from loopkit._expression import NUMBERS, is_constant, parts_of, to_text
from loopkit._kernel import Kernel, Statement
from loopkit._make.atomic_updates import check_update
from loopkit._make.type_inference import located
from loopkit._nodes import Expression
from loopkit._rules import expand_rules
from loopkit._types import Typer, asked_of, known_types, not_an_index

_ARITHMETIC = (prim.Sum, prim.Product, prim.Quotient, prim.Power, prim.FloorDiv, prim.Remainder)
_MEETINGS = (*_ARITHMETIC, prim.Comparison, prim.Min, prim.Max, prim.If)
_DOUBLE = (_promotion.RunTime(float), _promotion.RunTime(complex))


def check_types(
    kernel: Kernel,
    declared: Collection[str],
    news: Collection[str] | None = None,
    *,
    literals: bool = True,
) -> None:
    """Look at every expression of a kernel whose types are known.

    Raises :class:`TypeInferenceError` for what has no type.  Gives one
    :class:`LoopkitWarning` for all literals of a statement that their type does not hold, and one
    each for what is ``declared`` wider than it is computed, and for double precision among floats.
    With ``news`` only statements that use one of these names are looked at.  Without ``literals``
    integers need not be what somebody wrote, and none is refused.
    """
    said: dict[str, None] = {}
    kernel = expand_rules(kernel)
    known = known_types(kernel)
    holds_floats = _computes_floats(kernel)
    for statement in kernel.statements:
        if news is not None and not statement.names & frozenset(news):
            continue
        watch = _Watch(known, double_is_news=holds_floats)
        watch.checks_literals = literals
        try:
            watch.statement(statement, declared)
        except KeyError:
            continue  # a type that only a call will say
        except TypeInferenceError as error:
            raise located(error, statement) from None
        where = caret_at(statement.position)
        for text in (*watch.literal_texts(), *watch.said):
            said[f"in '{statement.id}': {text}" + (f"\n{where}" if where else "")] = None
    for text in said:
        warnings.warn(LoopkitWarning(text), stacklevel=frames_inside())


def _computes_floats(kernel: Kernel) -> bool:
    """Whether a kernel holds floats, and nothing that is declared in double precision."""
    kinds = {d.dtype for d in (*kernel.args, *kernel.temporaries) if d.dtype is not None}
    read = {a.dtype for a in kernel.args if a.name in kernel.readers or a.name in kernel.sizes}
    return (
        bool(kinds & (_promotion.FLOATS | _promotion.COMPLEXES) - _promotion.DOUBLES)
        and not read & _promotion.DOUBLES
    )


def _check_index(index: Expression, watch: Typer) -> None:
    """An index is an integer; raises where its type says otherwise."""
    if isinstance(index, int):
        return
    typer = Typer(watch.env)
    typer.checks_literals = watch.checks_literals
    kind = typer(index)
    if isinstance(kind, np.dtype):
        if kind.kind in "iub":
            return
        name = _promotion.dtype_name(kind)
    elif isinstance(kind, (float, complex)) or kind in _DOUBLE:
        name = "floating-point"
    else:
        return
    raise not_an_index(index, name)


class _Watch(Typer):
    """Types expressions, and says what happens to literals and where doubles arise."""

    def __init__(self, known: dict[str, _promotion.Typed], *, double_is_news: bool) -> None:
        super().__init__(known.__getitem__)
        self.double_is_news = double_is_news
        self.said: list[str] = []
        self.literals: dict[str, None] = {}
        self.kinds: dict[int, tuple[Expression, _promotion.Typed]] = {}

    def statement(self, statement: Statement, declared: Collection[str]) -> None:
        """Look at a statement's right side, conditions, indices, and what it is stored in."""
        name, _ = statement.write
        for _, indices in statement.accesses:
            for index in indices:
                _check_index(index, self)
        for predicate in statement.predicates:
            self(predicate)
        value, target = self(statement.rhs), self.env(name)
        if not isinstance(target, np.dtype) or statement.kind == "init":
            return
        if statement.is_atomic:
            check_update(statement, self, target)
        if isinstance(value, np.dtype):
            if (
                value in _promotion.COMPLEXES
                and target not in _promotion.COMPLEXES
                and statement.operation not in ("any", "all")
            ):
                raise TypeInferenceError(
                    f"a value of type {_promotion.dtype_name(value)} would lose its imaginary part "
                    f"in '{name}', which is {_promotion.dtype_name(target)}",
                    instead="write real(...)",
                )
            computed = _computes(statement.rhs) and statement.operation is None
            if name in declared and computed and _is_wider(target, value):
                wider = _promotion.dtype_name(target)
                self.said.append(
                    f"'{to_text(statement.rhs)}' is computed in {_promotion.dtype_name(value)}, "
                    f"though '{name}' is {wider}: {wider}(...) around an "
                    "operand computes it in the wider type"
                )
        elif statement.operation is None:
            if self.checks_literals:
                _promotion.check_constant(value, target, asked_of(statement.rhs))
            if is_constant(statement.rhs):
                self.literal(value, target)

    def __call__(self, expr: Expression) -> _promotion.Typed:
        known = self.kinds.get(id(expr))
        if known is not None:
            return known[1]
        found = super().__call__(expr)
        self.kinds[id(expr)] = (expr, found)  # which keeps the number its own
        if isinstance(expr, _MEETINGS):
            self.meeting(expr, found)
        return found

    def meeting(self, expr: Expression, found: _promotion.Typed) -> None:
        """An operation: its literals take its type, and it may be the first in double precision."""
        parts = _parts(expr)
        kinds = [self(part) for part in parts]
        typed = [k for k in kinds if isinstance(k, np.dtype)]
        if typed:
            common = typed[0]
            for kind in kinds:
                common = _promotion.promote(common, kind)
            for part, kind in zip(parts, kinds, strict=True):
                if is_constant(part):
                    self.literal(kind, common)
            if isinstance(expr, prim.Quotient) and isinstance(found, np.dtype):
                common = found
            doubles = common in _promotion.DOUBLES and not any(
                k in _promotion.DOUBLES for k in typed
            )
        else:
            doubles = found in _DOUBLE
        late = [kind for kind in kinds if isinstance(kind, _promotion.RunTime)]
        if self.double_is_news and doubles and not any(kind in _DOUBLE for kind in late):
            self.said.append(
                f"'{to_text(expr)}' is computed in double precision, in a kernel of floats: "
                "float32(...) around an operand avoids it"
            )

    def literal_texts(self) -> list[str]:
        """What is said of literals: one text for all of a statement."""
        first, more = [*self.literals][:3], len(self.literals) - 3
        if not first:
            return []
        text = f"the literal{'s' * (len(first) > 1)} {', '.join(first)}"
        return [f"{text}, and {more} more" if more > 0 else text]

    def literal(self, value: _promotion.Typed, dtype: _promotion.DType) -> None:
        """A literal beside what has a type: whether the type holds it."""
        if type(value) not in (int, float) or dtype in _promotion.INTEGERS or dtype.kind == "b":
            return
        part = _promotion.real_of(dtype)
        with np.errstate(all="ignore"):
            kept = np.asarray(value).astype(part)[()]
        if not math.isfinite(value):  # type: ignore[arg-type]
            return
        held = kept.item()
        if math.isfinite(float(kept)) and (value == 0 or held != 0):
            held = int(held) if type(value) is int else float(str(kept))
        if held != value and value not in NUMBERS.values():
            text = held if type(held) is int else kept
            self.literals[f"{value!r} is {text!s} in {_promotion.dtype_name(part)}"] = None


def _parts(expr: Expression) -> list[Expression]:
    """The operands of an operation that meet in one type; a sign is no operand."""
    return parts_of(expr)[1:] if isinstance(expr, prim.If) else parts_of(expr)


def _computes(expr: Expression) -> bool:
    """Whether an expression rounds or may overflow, rather than pick a value."""
    if isinstance(expr, prim.Product) and len(expr.children) == 2 and expr.children[0] == -1:
        return _computes(expr.children[1])
    return isinstance(expr, _ARITHMETIC)


def _is_wider(target: _promotion.DType, value: _promotion.DType) -> bool:
    """Whether one type holds what is computed in another, and more of its kind."""
    groups = (_promotion.INTEGERS, _promotion.FLOATS, _promotion.COMPLEXES)
    return target.itemsize > value.itemsize and any(target in g and value in g for g in groups)
