"""Faults in the transforms of temporaries, memory, rules and sizes."""

from __future__ import annotations

import dataclasses
from typing import Any

import pymbolic.primitives as prim
from refusals.case import do
from seams import Domain, Linear, Range, Strided, replace_accesses, rewrite_paths, substitute
from seams import sets as _sets

from faults import kernels
from faults.planting import Patch, fault
from loopkit import AddressSpace


def var(name: str) -> Any:
    return prim.Variable(name)


# {{{ privatize_temporaries_with_inames

PRIVATIZE = do("privatize_temporaries_with_inames", "j", "t")


def _but_one(change: Any) -> Any:
    """One reader is changed in another way than the others."""

    def make(original: Any) -> Any:
        def privatized(kernel: Any, name: str, inames: Any) -> Any:
            right = original(kernel, name, inames)
            last = right.statements[-1]
            wrong = last.map_expressions(
                lambda e: replace_accesses(e, lambda n, i: change(n, i) if n == name else None)
            )
            return right.with_(statements=(*right.statements[:-1], wrong))

        return privatized

    return Patch("transforms.temporaries:_privatized", make)


fault(
    "privatize: one reader keeps the scalar",
    kernels.through_scalar,
    PRIVATIZE,
    _but_one(lambda name, indices: var(name)),
)
fault(
    "privatize: one reader always reads the first element",
    kernels.through_scalar,
    PRIVATIZE,
    _but_one(lambda name, indices: prim.Subscript(var(name), (0,))),
)
fault(
    "privatize: one reader uses another iname",
    kernels.through_scalar,
    PRIVATIZE,
    _but_one(lambda name, indices: prim.Subscript(var(name), (var("i"),))),
)
fault(
    "privatize: one element too few",
    kernels.through_scalar,
    PRIVATIZE,
    Patch(
        "transforms.temporaries:iname_ranges",
        lambda f: lambda *a: {n: dataclasses.replace(r, span=r.span - 1) for n, r in f(*a).items()},
    ),
)

fault(
    "privatize: begins one element too late",
    kernels.through_scalar,
    PRIVATIZE,
    Patch(
        "transforms.temporaries:iname_ranges",
        lambda f: lambda *a: {n: Range(r.lower - Linear({}, 1), r.span) for n, r in f(*a).items()},
    ),
)

# }}}

# {{{ address spaces and layouts


def _space(space: AddressSpace) -> Patch:
    return Patch("transforms.storage:parse_address_space", lambda f: lambda _: space)


ON_THREADS = (do("tag_inames", "i:l.0, j:l.0, g:g.0"),)
fault(
    "set_temporary_address_space: private instead of shared",
    kernels.staged,
    do("set_temporary_address_space", "t", "shared"),
    _space(AddressSpace.PRIVATE),
    chain=ON_THREADS,
    sizes={"n": 2},
)
fault(
    "set_temporary_address_space: global instead of shared",
    kernels.staged,
    do("set_temporary_address_space", "t", "shared"),
    _space(AddressSpace.GLOBAL),
    chain=ON_THREADS,
    sizes={"n": 2},
)
fault(
    "set_temporary_address_space: shared instead of private",
    kernels.through_scalar,
    do("set_temporary_address_space", "t", "private"),
    _space(AddressSpace.LOCAL),
    chain=(do("tag_inames", "i:l.1, j:l.0"),),
)
AXES = do("tag_array_axes", "t", "stride:4, stride:1")


def _strides(*strides: int) -> Patch:
    return Patch(
        "transforms.storage:_parse_dim_tags",
        lambda f: lambda *_: tuple(Strided(s) for s in strides),
    )


fault("tag_array_axes: rows overlap", kernels.squares, AXES, _strides(3, 1))
fault("tag_array_axes: rows lie on each other", kernels.squares, AXES, _strides(0, 1))
fault("tag_array_axes: strides meet on a diagonal", kernels.squares, AXES, _strides(1, 1))
fault(
    "add_padding: rows closer together than they are long",
    kernels.squares,
    do("add_padding", "t", 0, 32),
    Patch(
        "transforms.storage:_constant_strides",
        lambda f: lambda array: [4, 4],
    ),
)

SWIZZLED = do("swizzle_array", "t", 1, 0, 2)
fault(
    "swizzle_array: by the axis that is permuted",
    kernels.squares,
    SWIZZLED,
    Patch("transforms.storage:Swizzle", lambda f: lambda axis, by, *a: f(axis, axis, *a)),
    by_running=True,
)
fault(
    "swizzle_array: no room for places beyond the axis",
    kernels.squares,
    do("swizzle_array", "t", 1, 0, 2, base=2, pad=True),
    Patch("transforms.storage:_with_room", lambda f: lambda temporary, axis: temporary),
    by_running=True,
    sanitize=True,
)
fault(
    "swizzle_array: less room than places need",
    kernels.squares,
    do("swizzle_array", "t", 1, 0, 2, base=2, pad=True),
    Patch(
        "transforms.storage:_with_room",
        lambda f: lambda temporary, axis: dataclasses.replace(temporary, padding=(0, 4)),
    ),
    by_running=True,
    sanitize=True,
)

# }}}

# {{{ substitution rules


def _swapped_call(original: Any) -> Any:
    """A rule's arguments are put in the wrong places."""

    def expand(expr: Any, rules: Any) -> Any:
        wrong = {
            name: dataclasses.replace(rule, arguments=tuple(reversed(rule.arguments)))
            for name, rule in rules.items()
        }
        return original(expr, wrong)

    return expand


fault(
    "expand_subst: arguments exchanged",
    kernels.rules,
    do("expand_subst"),
    Patch("transforms.subst:expand_in", _swapped_call),
    sizes={"n": 3},
)


def _forgetful(original: Any) -> Any:
    """A use of the rule gets the arguments of the first use."""

    def use(name: str, arguments: Any) -> Any:
        return original(name, tuple(prim.Sum((a, 1)) for a in arguments))

    return use


fault(
    "extract_subst: uses the rule for the next argument",
    kernels.handed_on,
    do("extract_subst", "f", "2*a[x]", "x"),
    Patch("transforms.subst:use_of", _forgetful),
    sizes={"n": 3},
)


def _other_rule(original: Any) -> Any:
    """The rule says less than what it replaced."""

    def make(name: str, arguments: Any, expression: Any) -> Any:
        return original(name, arguments, prim.Sum((expression, expression)))

    return make


fault(
    "extract_subst: the rule says something else",
    kernels.handed_on,
    do("extract_subst", "f", "2*a[x]", "x"),
    Patch("transforms.subst:SubstitutionRule", _other_rule),
    sizes={"n": 3},
)
fault(
    "assignment_to_subst: the value of another element",
    kernels.through_array,
    do("assignment_to_subst", "t"),
    Patch("transforms.subst:SubstitutionRule", lambda f: _next_element(f)),
    sizes={"n": 3},
)


def _next_element(original: Any) -> Any:
    def make(name: str, arguments: Any, expression: Any) -> Any:
        later = {a: prim.Sum((var(a), 1)) for a in arguments}
        return original(name, arguments, substitute(expression, later))

    return make


# }}}

# {{{ sizes and inames


def _one_more(values: Any) -> Any:
    return {name: value + 1 for name, value in values.items()}


def _wrong_domain(original: Any) -> Any:
    """The bounds of loops get another number than the assumptions."""

    def fixed(domain: Any, values: Any) -> Any:
        has_inames = any(n in ("i", "j", "k") for n in _sets.names_of(domain))
        return original(domain, _one_more(values) if has_inames else values)

    return fixed


FIX = do("fix_parameters", n=5)
fault(
    "fix_parameters: another number in a bound",
    kernels.added,
    FIX,
    Patch("transforms.declarations:at_values", _wrong_domain),
    sizes={"n": 5},
)
fault(
    "fix_parameters: a smaller number in a bound",
    kernels.added,
    FIX,
    Patch(
        "transforms.declarations:at_values",
        lambda f: (
            lambda domain, values: f(
                domain,
                {n: v - 1 for n, v in values.items()} if "i" in _sets.names_of(domain) else values,
            )
        ),
    ),
    sizes={"n": 5},
)


def _wrong_values(original: Any) -> Any:
    """Expressions get another number than bounds."""

    class Wrong(original):  # type: ignore[misc]
        def substituted(self, expr: Any, values: Any) -> Any:
            return super().substituted(expr, _one_more(values))

    return Wrong


fault(
    "fix_parameters: another number in an expression",
    kernels.scaled_by_size,
    FIX,
    Patch("transforms.declarations:ValueTypes", _wrong_values),
    sizes={"n": 5},
)


def _used_removed(original: Any) -> Any:
    """A loop goes although a statement is inside it."""

    def without(kernel: Any, inames: Any) -> Any:
        gone = {*inames, "r"}
        found = original(kernel, gone)
        return found.with_(
            statements=tuple(
                dataclasses.replace(s, inames=s.inames - gone) for s in found.statements
            ),
            tree=rewrite_paths(
                found.tree, lambda _, path: tuple(k for k in path if k[0] not in gone)
            ),
        )

    return without


fault(
    "remove_unused_inames: removes one that is used",
    kernels.repeated,
    do("remove_unused_inames", "spare"),
    Patch("transforms.rename:without_inames", _used_removed),
    sizes={"n": 2},
)


def _bounds_with_it(original: Any) -> Any:
    """With an unused iname goes what its bounds say of others."""

    def without(kernel: Any, inames: Any) -> Any:
        found = original(kernel, inames)
        wide = _sets.condition_set(
            prim.LogicalAnd(
                (
                    prim.Comparison(var("r"), ">=", 0),
                    prim.Comparison(var("r"), "<=", 3),
                )
            )
        )
        return found.with_(
            domains=tuple(
                Domain(d.inames, _sets.project_out(d.set, ["r"]) & wide) if "r" in d.inames else d
                for d in found.domains
            )
        )

    return without


fault(
    "remove_unused_inames: other bounds change",
    kernels.repeated,
    do("remove_unused_inames", "spare"),
    Patch("transforms.rename:without_inames", _bounds_with_it),
    sizes={"n": 2},
)

# }}}
