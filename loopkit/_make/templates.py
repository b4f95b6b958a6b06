"""Templates: expressions that name what expressions of a kernel's text are to look like."""

from __future__ import annotations

from collections.abc import Sequence

import pymbolic.primitives as prim

from loopkit._device_functions import by_name
from loopkit._expression import map_heads
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._make.numpy_names import in_own_words
from loopkit._make.own_calls import with_own_calls
from loopkit._make.reduction_operations import operations_of
from loopkit._match import name_first
from loopkit._nodes import Expression, TaggedVariable


def as_in_text(kernel: Kernel, template: Expression, arguments: Sequence[str]) -> Expression:
    """A template of ``arguments`` whose functions mean what they mean in the kernel's text."""
    functions = by_name(kernel.functions)
    own = {*operations_of(kernel.reductions), *functions, *kernel.rule_by_name}
    declared = {a.name for a in (*kernel.args, *kernel.temporaries)}

    def one(head: prim.Variable) -> prim.Variable:
        if type(head) is not TaggedVariable:
            return head
        return TaggedVariable(*name_first(kernel, f"{head.name}${head.tag}").split("$"))

    template = map_heads(template, one)
    given = SubstitutionRule(kernel.fresh_name("template"), tuple(arguments), template)
    _, (rule,) = in_own_words((), (given,), own, declared)
    return with_own_calls(rule, functions).expression
