"""Steps that rename, reorder or remove arguments and change nothing else.

The previous kernel is rewritten with the new names here, and the step's result must equal it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import expressions_of, with_expressions
from loopkit._assertions.assertion_values import in_order
from loopkit._assertions.assertion_values import renamed as with_names
from loopkit._check.instance_maps import Image, Lineage, with_values
from loopkit._errors import IllegalTransformError
from loopkit._expression import substitute, variable_names
from loopkit._kernel import Domain, Kernel

if TYPE_CHECKING:
    from loopkit._change import Change


def descend_with_names(lineage: Lineage, before: Kernel, change: Change) -> Lineage:
    """The lineage of a kernel whose arguments ``change`` renames, with its text renamed as well.

    Raises :class:`~loopkit.IllegalTransformError` if anything else changed, or an argument that is
    needed was removed.
    """
    assert change.arguments is not None
    wanted = with_arguments(before, change.arguments)
    if wanted != change.kernel:
        raise IllegalTransformError("more would be others than the names and order of arguments")
    root = lineage.root
    fixed = {name: name for name, _ in lineage.fixed}
    text = wanted if root is before else with_arguments(root, {**change.arguments, **fixed})
    values = {o: prim.Variable(n) for o, n in change.arguments.items() if o != n}
    images = tuple(
        Image(i.statement, i.origin, tuple((n, substitute(e, values)) for n, e in i.values))
        for i in lineage.images
    )
    return Lineage(text, images, lineage.fixed, with_values(lineage.earlier, values))


def with_arguments(kernel: Kernel, names: Mapping[str, str]) -> Kernel:
    """The kernel with renamed arguments, in the order of ``names``; all others are removed.

    Raises :class:`~loopkit.IllegalTransformError` if the kernel needs an argument that is removed,
    or if two would have the same name.
    """
    gone = kernel.arg_by_name.keys() - names.keys()
    needed = gone & names_needed(kernel, gone)
    if needed:
        raise IllegalTransformError(f"argument '{min(needed)}' is needed")
    changed = {o: n for o, n in names.items() if o != n and o in kernel.arg_by_name}
    others = kernel.all_names - changed.keys()
    others |= {a for rule in kernel.substitutions for a in rule.arguments}
    clash = sorted({n for n in changed.values() if n in others})
    if clash or len(set(changed.values())) < len(changed):
        raise IllegalTransformError(f"the name '{(clash or [*changed.values()])[0]}' is taken")
    variables = {old: prim.Variable(new) for old, new in changed.items()}

    def declared(data: Any) -> Any:
        data = with_expressions(data, lambda e: substitute(e, variables))
        return replace(data, name=changed.get(data.name, data.name))

    by_name = kernel.arg_by_name
    return kernel.with_(
        args=tuple(declared(by_name[old]) for old in names if old in by_name),
        temporaries=tuple(map(declared, kernel.temporaries)),
        domains=tuple(Domain(d.inames, _sets.rename(d.set, changed)) for d in kernel.domains),
        statements=tuple(
            s.map_expressions(lambda e: substitute(e, variables)) for s in kernel.statements
        ),
        assumptions=Domain((), _sets.rename(kernel.assumptions.set, changed)),
        assertions=in_order(tuple(with_names(a, changed) for a in kernel.assertions)),
        substitutions=tuple(
            replace(r, expression=substitute(r.expression, _without(variables, r.arguments)))
            for r in kernel.substitutions
        ),
    )


def _without(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def names_needed(kernel: Kernel, gone: Collection[str] = ()) -> frozenset[str]:
    """The names that anything in a kernel uses, the extents of its arrays but ``gone`` included."""
    found = set(kernel.assumptions.parameters)
    for domain in kernel.domains:
        found |= domain.parameters
    for statement in kernel.statements:
        found |= statement.names
    for rule in kernel.substitutions:
        found |= variable_names(rule.expression) - set(rule.arguments)
    for assertion in kernel.assertions:
        found |= {*assertion.arrays, *getattr(assertion, "sizes", ())}
    for data in (*kernel.args, *kernel.temporaries):
        if data.name not in gone:
            found |= variable_names(tuple(expressions_of(data)))
    return frozenset(found)
