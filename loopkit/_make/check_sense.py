"""Checks of the text for meaningless parts, made when a kernel is created."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress

import pymbolic.primitives as prim

from loopkit import _expression
from loopkit._device_functions import OwnFunction, names_of
from loopkit._errors import (
    InvalidArgumentError,
    ParseError,
    SourcePosition,
    TypeInferenceError,
    caret_at,
)
from loopkit._functions import FUNCTIONS, check_call, unknown_function
from loopkit._kernel import Kernel, Statement
from loopkit._launches import broken_launches
from loopkit._linear import NotAffineError, linear
from loopkit._make.making import Making, Nop
from loopkit._make.text_names import tagged_in
from loopkit._make.type_inference import located
from loopkit._nodes import Expression
from loopkit._promotion import Typed
from loopkit._same import remembered
from loopkit._syntax.condition_parser import LARGEST
from loopkit._syntax.items import RawSubstitution
from loopkit._tree import LaunchBarrier, entries_of
from loopkit._types import asked_of, dtype_of

_NO_TYPES: Mapping[str, Typed] = {}
_LARGE = 10**6
"""Numbers from here on could have products larger than any index."""


def _check_sides(expr: prim.Comparison) -> None:
    """Raise if linear forms of names are compared that hold a number which no index can be."""
    try:
        difference = linear(prim.Sum((expr.left, prim.Product((-1, expr.right)))))
    except NotAffineError:
        return
    numbers = [abs(difference.constant), *(abs(c) for c in difference.terms.values())]
    if difference.terms and max(numbers) > LARGEST:
        raise InvalidArgumentError(
            f"the number {max(numbers)} in '{_expression.to_text(expr)}' is larger than any index",
            instead="indices have 64 bits; compare with a floating-point number",
        )


def _check_divisor(expr: prim.Quotient | prim.FloorDiv | prim.Remainder) -> None:
    """Raise if a number is divided by a zero that is written there; data may be."""
    is_zero = _expression.is_constant(expr.denominator) and expr.denominator == 0
    nodes = _expression.nodes_of(expr.numerator) if is_zero else ()
    if is_zero and not any(isinstance(n, prim.Subscript) for n in nodes):
        raise TypeInferenceError("this is a division by zero", asked=asked_of(expr)())


def _largest(expr: Expression) -> int:
    """The largest of the integers in an expression."""
    return max(
        (abs(node) for node in _expression.nodes_of(expr) if isinstance(node, int)), default=0
    )


@remembered(1 << 12)
def _check(expr: Expression) -> None:
    """Raise where a call has no meaning, or a number none that any type or index could hold."""
    for node in _expression.nodes_of(expr):
        match node:
            case prim.Call() if isinstance(node.function, OwnFunction):
                node.function.check_count(len(node.parameters), asked_of(node))
            case prim.Call():
                check_call(node.function.name, len(node.parameters), asked_of(node))
            case prim.Power() | prim.LeftShift():
                with suppress(KeyError):  # a name stands in it
                    dtype_of(node, _NO_TYPES.__getitem__)
            case prim.Quotient() | prim.FloorDiv() | prim.Remainder():
                _check_divisor(node)
            case prim.Comparison() if _largest(node) > _LARGE:
                _check_sides(node)
            case prim.Subscript() if _largest(node.index) > LARGEST:
                why = f"{_largest(node.index)} is larger than any index"
                raise InvalidArgumentError(why, instead="indices have 64 bits")


def _called_wrongly(
    error: TypeInferenceError, statement: Statement, own: Collection[str], data: Collection[str]
) -> TypeInferenceError:
    """The error of a call, with what else it may have meant: all that the kernel itself has."""
    for expr in statement.expressions:
        for node in () if _expression.is_constant(expr) else _expression.nodes_of(expr):
            if not isinstance(node, prim.Call) or isinstance(node.function, OwnFunction):
                continue
            if (name := node.function.name) in FUNCTIONS:
                continue
            found = unknown_function(name, asked_of(node)(), own)
            if name in data:
                found.instead = f"'{name}' is no function: {name}[...] is an element of an array"
            return found
    return error


def check_text(making: Making) -> None:
    """Check that statements have a meaning, and that rules are used with their arguments.

    Nothing is nested too deeply, functions exist, constants and indices are not too large.
    """
    statements, rules = making.expanded.statements, making.book.rules
    inames, own, data = making.inames.order, making.callable.union(rules), making.declared
    due = {name: r.arguments for name, r in rules.items() if r.arguments}
    for statement in statements if due else ():
        for name in sorted(due.keys() & statement.names):
            raise ParseError(
                f"'{name}' is a substitution rule, and is used without arguments",
                position=statement.position,
                instead=f"{name}({', '.join(due[name])}) uses the rule; rename anything else "
                f"called '{name}'",
            )
    for statement in statements:
        depth = max(map(_expression.nesting, statement.expressions))
        if depth > _expression.MOST_NESTED:
            raise ParseError(
                f"'{statement.id}' nests {depth} operations, rules written out: "
                f"{_expression.TOO_DEEP}",
                position=statement.position,
                instead=_expression.INSTEAD,
            )
        for name, indices in statement.accesses:
            if indices and name in inames:
                raise InvalidArgumentError(
                    f"'{name}' is an iname and has no elements",
                    asked=caret_at(statement.position),
                    instead="another name is free for an array",
                )
        try:
            for expr in (*statement.predicates, statement.lhs, statement.rhs):
                if not _expression.is_constant(expr):
                    _check(expr)
        except TypeInferenceError as error:
            raise located(_called_wrongly(error, statement, own, data), statement) from None
        except InvalidArgumentError as error:
            where = caret_at(statement.position) or error.asked
            raise InvalidArgumentError(error.why, asked=where, instead=error.instead) from None


def check_names(making: Making) -> None:
    """Check the names of functions, what has tags, and where launches end."""
    _check_function_names(making.kernel)
    _check_tagged_uses(making)
    _check_launch_conditions(making)
    if broken := broken_launches(making.kernel):
        raise InvalidArgumentError(broken, instead="end the loop above '... gbarrier'")


def _check_function_names(kernel: Kernel) -> None:
    """Raise where a name of a function is that of something else, too."""
    own = names_of(kernel.functions)
    if not own:
        return
    others = {r.name: "a substitution rule" for r in kernel.substitutions}
    others |= {r.name: "a reduction" for r in kernel.reductions}
    others |= dict.fromkeys(kernel.all_inames, "an iname")
    others |= {a.name: "an argument" for a in kernel.args}
    others |= {t.name: "a temporary" for t in kernel.temporaries}
    others[kernel.name] = "the name of the kernel"
    taken = sorted(own & others.keys())
    if taken:
        raise InvalidArgumentError(
            f"'{taken[0]}' is {others[taken[0]]} and a function, which C calls by that name",
            instead="one of them can have another name",
        )


def _check_tagged_uses(making: Making) -> None:
    """Nothing else than an array or a rule has a tag; rules that the kernel does not keep do."""
    kernel = making.kernel
    for item in making.items:
        own = item.arguments if isinstance(item, RawSubstitution) else ()
        for name, tag in sorted(tagged_in(item)):
            if name in own or not (kernel.is_array(name) or name in making.book.rules):
                _refuse(name, tag, own, kernel, item.position)


def _refuse(
    name: str, tag: str, own: Collection[str], kernel: Kernel, position: SourcePosition
) -> None:
    known = {**dict.fromkeys(kernel.all_inames, "an iname"), **dict.fromkeys(own, "an argument")}
    what = known.get(name, "a number" if name in kernel.arg_by_name else "a function")
    raise InvalidArgumentError(
        f"'{name}${tag}' is no use that a transform could select: '{name}' is {what}",
        asked=caret_at(position),
        instead="uses of arrays and of substitution rules have tags: x$near[i]",
    )


def _check_launch_conditions(making: Making) -> None:
    """Refuse a barrier for all blocks whose condition the call cannot test.

    What is around a barrier in an 'if' block has the condition itself; where it does not hold,
    nothing of the launches before and after runs, and it does not matter where they end.
    """
    around = {
        leaf.id: [iname for iname, _ in path]
        for leaf, path in entries_of(making.kernel.tree)
        if isinstance(leaf, LaunchBarrier)
    }
    for draft in making.drafts:
        if not (isinstance(draft, Nop) and draft.ends_launch):
            continue
        known = {*making.kernel.sizes, *around[draft.id]}
        for condition in draft.item.predicates:
            for name in sorted(_expression.variable_names(condition) - known):
                raise ParseError(
                    f"a launch ends where {_expression.to_text(condition)}, which the call tests: "
                    f"it cannot know '{name}', which is neither a size nor a loop around the "
                    "launches",
                    position=draft.item.position,
                    instead="put '... gbarrier' outside of this 'if' block: everything inside it "
                    "is conditional",
                )
