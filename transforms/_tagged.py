"""Uses that a tag selects: while a transform copies them they are of a name of their own."""

from __future__ import annotations

from dataclasses import replace

import pymbolic.primitives as prim

from loopkit._arrays import ArrayArg
from loopkit._errors import IllegalTransformError
from loopkit._expression import map_heads, tagged_uses
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._match import name_first
from loopkit._nodes import Expression, TaggedVariable
from loopkit.transforms._common import map_reads


@dataclass(frozen=True, eq=False)
class Selected:
    """Uses of the array or rule ``of`` that ``given`` means: in ``kernel`` they are of ``name``.

    Without a tag these are all, and ``name`` is the array's or rule's own.
    """

    kernel: Kernel
    given: str
    name: str
    of: str
    tag: str | None = None

    def users(self, kernel: Kernel) -> list[str]:
        """The statements that have such uses, in a kernel before they had a name of their own."""
        if self.tag is None:
            return [s.id for s in kernel.readers.get(self.of, ())]
        return [s.id for s in kernel.statements if (self.of, self.tag) in s.tagged]

    def restored(self, new: Kernel) -> Kernel:
        """A kernel in which uses that are left have their tag again, and new statements none."""
        if self.tag is None:
            return new
        tagged, plain = TaggedVariable(self.of, self.tag), prim.Variable(self.of)
        before = self.kernel.statement_by_id

        def one(statement: Statement) -> Statement:
            own = tagged if statement.id in before else plain
            return statement.map_expressions(lambda e: self._called(e, own))

        mine = self.kernel.rule_by_name.get(self.name)
        left = new.rule_by_name.get(self.name)
        if mine is not None and left is not None and left.arguments != mine.arguments:
            return new  # which inames its value depends on, other uses of it say, too
        rules = (r for r in new.substitutions if r.name != self.name)
        return new.with_(
            statements=tuple(map(one, new.statements)),
            substitutions=tuple(
                replace(r, expression=self._called(r.expression, tagged)) for r in rules
            ),
            args=tuple(a for a in new.args if a.name != self.name),
            temporaries=tuple(t for t in new.temporaries if t.name != self.name),
        )

    def _called(self, expr: Expression, head: prim.Variable) -> Expression:
        return map_heads(expr, lambda h: head if h.name == self.name else h)


def uses_of_array(kernel: Kernel, given: str, *, writes: bool = False) -> Selected:
    """The accesses that ``"x"`` or ``"x$near"`` means; what is written only with ``writes``.

    Raises :class:`IllegalTransformError` where none has the tag.
    """
    of, _, tag = name_first(kernel, given).partition("$")
    array = kernel.array(of)
    if not tag:
        return Selected(kernel, given, of, of)
    selected = _renamed(kernel, given, of, tag, writes=writes)
    own = replace(array, name=selected.name)
    declared = (
        selected.kernel.with_(args=(*kernel.args, own))
        if isinstance(own, ArrayArg)
        else selected.kernel.with_(temporaries=(*kernel.temporaries, own))
    )
    return replace(selected, kernel=declared)


def uses_of_rule(kernel: Kernel, given: str) -> Selected:
    """The uses of a rule that ``"f"`` or ``"f$near"`` means.

    Raises :class:`IllegalTransformError` where none has the tag.
    """
    of, _, tag = given.partition("$")
    if not tag:
        return Selected(kernel, given, of, of)
    selected = _renamed(kernel, given, of, tag)
    own = replace(kernel.rule_by_name[of], name=selected.name)
    rules = (*selected.kernel.substitutions, own)
    return replace(selected, kernel=selected.kernel.with_(substitutions=rules))


def _renamed(kernel: Kernel, given: str, of: str, tag: str, *, writes: bool = False) -> Selected:
    """The kernel in which tagged uses are of another name, which nothing declares yet."""
    bound = {a for rule in kernel.substitutions for a in rule.arguments}
    selected = Selected(kernel, given, kernel.fresh_name(f"{of}_{tag}", bound), of, tag)
    head, wanted = prim.Variable(selected.name), TaggedVariable(of, tag)
    count = 0

    def chosen(found: prim.Variable) -> prim.Variable:
        nonlocal count
        count += found == wanted
        return head if found == wanted else found

    def one(expr: Expression) -> Expression:
        return map_heads(expr, chosen)

    statements = tuple(
        s.map_expressions(one) if writes else map_reads(s, one) for s in kernel.statements
    )
    rules = tuple(replace(r, expression=one(r.expression)) for r in kernel.substitutions)
    if not count:
        raise _no_such_tag(kernel, of, tag)
    return replace(selected, kernel=kernel.with_(statements=statements, substitutions=rules))


def _no_such_tag(kernel: Kernel, of: str, tag: str) -> IllegalTransformError:
    found = frozenset().union(*(s.tagged for s in kernel.statements))
    found = found.union(*(tagged_uses(rule.expression) for rule in kernel.substitutions))
    tags = sorted(t for name, t in found if name == of)
    return IllegalTransformError(
        f"no use of '{of}' that could be meant has the tag '{tag}'",
        instead=f"tagged uses are {', '.join(f'{of}${t}' for t in tags)}"
        if tags
        else f"a use is tagged in the text: {of}${tag}[...]",
    )
