"""Tags of uses in a text, ``x$near[i]``, by which transforms select these."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import pymbolic.primitives as prim

from loopkit._errors import InvalidArgumentError, SourcePosition, caret_at
from loopkit._expression import map_heads, nodes_of, tagged_uses
from loopkit._kernel import Kernel
from loopkit._make.own_calls import expressions_of, with_expressions
from loopkit._nodes import TaggedVariable, head_of
from loopkit._syntax.items import RawItem, RawSubstitution


def with_names_first(items: Sequence[RawItem], declared: Collection[str]) -> list[RawItem]:
    """A text in which names come before their tags.

    Where ``x`` is ``declared``, and ``near`` is nothing but a tag, ``near$x[i]`` is ``x$near[i]``.
    """
    if not any(_found(item) for item in items):
        return [*items]
    known = {*declared, *(i.name for i in items if isinstance(i, RawSubstitution))}
    heads = [head_of(node) for i in items for e in expressions_of(i) for node in nodes_of(e)]
    taken = known.union(h.name for h in heads if type(h) is prim.Variable)

    def one(head: prim.Variable) -> prim.Variable:
        if type(head) is TaggedVariable and head.name not in taken and head.tag in known:
            return TaggedVariable(head.tag, head.name)
        return head

    return [with_expressions(item, lambda e: map_heads(e, one)) for item in items]


def _found(item: RawItem) -> set[tuple[str, str]]:
    return {use for e in expressions_of(item) for use in tagged_uses(e)}


def check_tagged_uses(
    items: Iterable[RawItem], kernel: Kernel, rules: Mapping[str, object]
) -> None:
    """Raise :class:`InvalidArgumentError` where something else than an array or a rule has a tag.

    ``rules`` are all of the text, also those that the kernel does not keep.
    """
    for item in items:
        own = item.arguments if isinstance(item, RawSubstitution) else ()
        for name, tag in sorted(_found(item)):
            if name in own or not (kernel.is_array(name) or name in rules):
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
