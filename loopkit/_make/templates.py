"""Templates: expressions that name what expressions of a kernel's text are to look like."""

from __future__ import annotations

from collections.abc import Sequence

from loopkit._device_functions import by_name
from loopkit._kernel import Kernel, SubstitutionRule
from loopkit._make.numpy_names import in_own_words
from loopkit._make.own_calls import with_own_calls
from loopkit._make.reduction_operations import operations_of
from loopkit._nodes import Expression


def as_in_text(kernel: Kernel, template: Expression, arguments: Sequence[str]) -> Expression:
    """A template of ``arguments`` whose functions mean what they mean in the kernel's text."""
    functions = by_name(kernel.functions)
    own = {*operations_of(kernel.reductions), *functions, *kernel.rule_by_name}
    declared = {a.name for a in (*kernel.args, *kernel.temporaries)}
    given = SubstitutionRule(kernel.fresh_name("template"), tuple(arguments), template)
    _, (rule,) = in_own_words((), (given,), own, declared)
    return with_own_calls(rule, functions).expression
