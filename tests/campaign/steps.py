"""Transforms with arguments drawn at random for a kernel as it stands.

One drawer for each transform; a drawer returns the call's arguments, or None
where the kernel offers nothing to draw from.  Arguments are mostly sensible and
sometimes not: both must end in a legal kernel or a clear refusal.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pymbolic.primitives as prim
from seams import LaunchBarrier, entries_of, longest_run, tagged_uses, to_text
from seams import registered_transforms as transforms

import loopkit as lk
from loopkit import Kernel, Statement

from . import argument_steps, array_steps, statement_steps
from .variations import TABLES, chosen_of

Arguments = dict[str, Any] | None


@dataclass(frozen=True)
class Call:
    """A transform and its arguments, as plain data."""

    transform: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def apply(self, kernel: Kernel, *, unchecked: bool = False) -> Kernel:
        """The transformed kernel; raises what the transform raises."""
        return transforms[self.transform](kernel, unchecked=unchecked, **self.arguments)

    def __str__(self) -> str:
        return f".{self.transform}({', '.join(f'{n}={v!r}' for n, v in self.arguments.items())})"


def script(calls: Sequence[Call]) -> str:
    """Python source that applies ``calls``."""
    return "\n".join(["knl = (knl", *(f"    {c}" for c in calls)]) + ")" if calls else ""


# {{{ what there is to draw from


def _plain(knl: Kernel) -> list[str]:
    return [i for i in knl.all_inames if i not in knl.iname_tags]


def _used(knl: Kernel) -> set[str]:
    return {str(tag) for tag in knl.iname_tags.values()}


def _loops(knl: Kernel) -> list[str]:
    return sorted({name for path in knl.paths.values() for name, _ in path})


def _arrays(knl: Kernel) -> list[str]:
    return [a.name for a in knl.args if isinstance(a, lk.ArrayArg)]


def _some(r: random.Random, names: Sequence[str], most: int) -> list[str]:
    """One to ``most`` of ``names``."""
    return r.sample(list(names), r.randint(1, min(most, len(names)))) if names else []


def _statement(r: random.Random, knl: Kernel) -> Statement:
    return r.choice(knl.statements)


def _within(r: random.Random, knl: Kernel, probability: float) -> dict[str, Any]:
    """Sometimes: only around one or two statements."""
    if r.random() >= probability:
        return {}
    ids = [s.id for s in r.sample(knl.statements, min(len(knl.statements), r.choice([1, 1, 2])))]
    return {"within": " or ".join(f"id:{id_}" for id_ in ids)}


def _tag(r: random.Random, knl: Kernel, kinds: str = "gluis") -> str | None:
    """A tag, rarely one whose axis another iname of the same statements has."""
    used = _used(knl)
    kind = r.choice(kinds)
    if kind in "gl":
        axes = [f"{kind}.{axis}" for axis in (0, 1, 2)]
        free = [a for a in axes if a not in used]
        return r.choice(axes) if r.random() < 0.15 or not free else free[0]
    return {"u": "unr", "i": "ilp", "s": None}[kind]


def _fresh(r: random.Random, knl: Kernel) -> str:
    return knl.fresh_name(r.choice(["ii", "jj", "kk", "w", "_x", "next"]))


def _length(r: random.Random) -> int:
    return r.choice([2, 2, 3, 4, 4, 5, 8, 1, 16, r.choice([32, 33, 40, 64])])


# }}}
# {{{ loops


def split_iname(r: random.Random, knl: Kernel) -> Arguments:
    if not (names := _plain(knl)):
        return None
    found: dict[str, Any] = {"split_iname": r.choice(names), "inner_length": _length(r)}
    kind = r.random()
    if kind < 0.3:
        axis = r.choice("01")
        found |= {"outer_tag": f"g.{axis}", "inner_tag": f"l.{axis}"}
    elif kind < 0.6:
        found |= {"inner_tag": _tag(r, knl, "llui")}
        if r.random() < 0.3:
            found |= {"outer_tag": _tag(r, knl, "gl")}
    if r.random() < 0.12:
        found["slabs"] = r.choice([(0, 1), (1, 0), (1, 1)])
    return found | _within(r, knl, 0.12)


def chunk_iname(r: random.Random, knl: Kernel) -> Arguments:
    names = _plain(knl)
    if not names:
        return None
    found: dict[str, Any] = {"split_iname": r.choice(names), "num_chunks": r.choice([2, 3, 4])}
    if r.random() < 0.4:
        found["outer_tag"] = _tag(r, knl, "gl")
    if r.random() < 0.3:
        found["inner_tag"] = _tag(r, knl, "ui")
    return found


def _has_constant_domain(knl: Kernel, iname: str) -> bool:
    return not knl.domains[knl.home_domain[iname]].parameters


def join_inames(r: random.Random, knl: Kernel) -> Arguments:
    names = _plain(knl)
    if len(names) < 2:
        return None
    together = [[i for i in names if i in s.inames] for s in knl.statements]
    together = [t for t in together if len(t) > 1] or [names]
    chosen = r.sample(t := r.choice(together), min(len(t), r.choice([2, 2, 3])))
    if r.random() < 0.4:  # the ones of constant length behind
        chosen.sort(key=lambda i: _has_constant_domain(knl, i))
    found: dict[str, Any] = {"inames": chosen}
    if r.random() < 0.3:
        found["tag"] = _tag(r, knl)
    return found | _within(r, knl, 0.1)


def rename_iname(r: random.Random, knl: Kernel) -> Arguments:
    found: dict[str, Any] = {"old_iname": r.choice(knl.all_inames)}
    if r.random() < 0.5:
        found |= {"new_iname": r.choice(knl.all_inames), "existing_ok": True}
    else:
        found |= {"new_iname": _fresh(r, knl)}
    if r.random() < 0.2:
        found["preserve_tags"] = False
    return found | _within(r, knl, 0.3)


def rename_inames(r: random.Random, knl: Kernel) -> Arguments:
    found: dict[str, Any] = {"old_inames": _some(r, knl.all_inames, 2)}
    if r.random() < 0.4:
        found |= {"new_iname": r.choice(knl.all_inames), "existing_ok": True}
    else:
        found |= {"new_iname": _fresh(r, knl)}
    return found | _within(r, knl, 0.2)


def rename_inames_in_batch(r: random.Random, knl: Kernel) -> Arguments:
    names = [i for i in knl.all_inames if r.random() < 0.8]
    r.shuffle(names)
    cut = r.randint(0, len(names))
    groups = [group for group in (names[:cut], names[cut:]) if group]
    if not groups:
        return None
    new = dict.fromkeys(r.choice([g[0], knl.fresh_name(f"one_{g[0]}")]) for g in groups)
    return {"batches": dict(zip(new, groups, strict=True))}


def fission(r: random.Random, knl: Kernel) -> Arguments:
    inames = _loops(knl)
    if not inames:
        return None
    return {"inames": _some(r, inames, 2), "within": f"id:{_statement(r, knl).id}"}


def unroll(r: random.Random, knl: Kernel) -> Arguments:
    short = [i for i in _loops(knl) if 1 <= (longest_run(knl, i) or 0) <= 6]
    return {"iname": r.choice(short)} if short else None


def fuse_loops(r: random.Random, knl: Kernel) -> Arguments:
    entries = [key for path in knl.paths.values() for key in path]
    several = [i for i in _loops(knl) if len({key for key in entries if key[0] == i}) > 1]
    if not several:
        return None
    return {"inames": _some(r, several, 2)} | _within(r, knl, 0.1)


def duplicate_inames(r: random.Random, knl: Kernel) -> Arguments:
    statement = _statement(r, knl)
    inames = [i for i in knl.all_inames if i in statement.inames]
    if not inames:
        return None
    ids = [statement.id]
    if r.random() < 0.3:
        ids.append(_statement(r, knl).id)
    found: dict[str, Any] = {
        "inames": _some(r, inames, 2),
        "within": " or ".join(f"id:{id_}" for id_ in dict.fromkeys(ids)),
    }
    if r.random() < 0.2:
        found["tags"] = {found["inames"][0]: _tag(r, knl)}
    return found


def tag_inames(r: random.Random, knl: Kernel) -> Arguments:
    names = _plain(knl) if r.random() < 0.95 else list(knl.all_inames)
    if not names:
        return None
    chosen = _some(r, names, 2)
    found: dict[str, Any] = {"iname_to_tag": {i: _tag(r, knl, "gglllui") for i in chosen}}
    if r.random() < 0.1:
        found["force"] = True
    return found


def untag_inames(r: random.Random, knl: Kernel) -> Arguments:
    return {"iname_to_untag": _some(r, sorted(knl.iname_tags), 2)} if knl.tags else None


def prioritize_loops(r: random.Random, knl: Kernel) -> Arguments:
    paths = [[name for name, _ in path] for path in knl.paths.values()]
    deep = [p for p in paths if len(p) > 1]
    names = r.choice(deep) if deep and r.random() < 0.85 else _loops(knl)
    return {"loop_priority": r.sample(names, min(len(names), 3))} if len(names) > 1 else None


def map_domain(r: random.Random, knl: Kernel) -> Arguments:
    statement = _statement(r, knl)
    names = [i for i in _plain(knl) if i in statement.inames]
    if not names:
        return None
    one = r.choice(names)
    new = _fresh(r, knl)
    forms = [
        f"{{ [{one}] -> [{new}]: {new} = -{one} }}",
        f"{{ [{one}] -> [{new}]: {new} = {one} + {r.choice([1, 3, -2])} }}",
        f"{{ [{one}] -> [{new}]: {new} = {r.choice([2, 3])}*{one} }}",
        f"{{ [{one}] -> [{new}0, {new}1]: {new}0 = {one} // 3 and {new}1 = {one} % 3 }}",
    ]
    if len(names) > 1:
        a, b = r.sample(names, 2)
        forms += [
            f"{{ [{a}, {b}] -> [{new}, {b}']: {new} = {a} + {b} and {b}' = {b} }}",
            f"{{ [{a}, {b}] -> [{a}', {new}]: {new} = {b} - {a} and {a}' = {a} }}",
            f"{{ [{a}, {b}] -> [{b}', {a}']: {b}' = {b} and {a}' = {a} }}",
            f"{{ [{a}, {b}] -> [{new}, {b}']: {new} = {a} + 2*{b} and {b}' = {b} }}",
            f"{{ [{a}, {b}] -> [{new}, {b}']: {new} = {a} - {b} and {b}' = -{b} }}",
        ]
    return {"transform_map": r.choice(forms)} | _within(r, knl, 0.1)


def affine_map_inames(r: random.Random, knl: Kernel) -> Arguments:
    statement = _statement(r, knl)
    names = [i for i in _plain(knl) if i in statement.inames]
    if not names:
        return None
    new = _fresh(r, knl)
    if len(names) == 1 or r.random() < 0.4:
        one = r.choice(names)
        equation = r.choice([f"{new} = -{one}", f"{new} = {one} + 2", f"{new} = 3 - {one}"])
        return {"old_inames": [one], "new_inames": [new], "equations": [equation]}
    a, b = r.sample(names, 2)
    other = knl.fresh_name(f"{new}2", [new])
    second = r.choice([f"{other} = {b}", f"{other} = {a} - {b}", f"{other} = {a}"])
    return {
        "old_inames": [a, b],
        "new_inames": [new, other],
        "equations": [f"{new} = {a} + {b}", second],
    }


def peel_iname(r: random.Random, knl: Kernel) -> Arguments:
    first, last = r.choice([(1, 0), (0, 1), (1, 1), (2, 0), (0, 2)])
    iname = r.choice(knl.all_inames)
    if r.random() < 0.3:
        others = [
            i for s in knl.statements if iname in s.inames for i in sorted(s.inames - {iname})
        ]
        start = r.choice([*others, *knl.sizes, "4"]) if knl.sizes else "4"
        return {"iname": iname, "at": r.choice([start, f"{start} + 1", f"2*{start}"])}
    return {"iname": iname, "first": first, "last": last}


def remove_unused_inames(r: random.Random, knl: Kernel) -> Arguments:
    return {} if r.random() < 0.5 else {"inames": _some(r, knl.all_inames, 2)}


# }}}
# {{{ data


def _fetch(r: random.Random, knl: Kernel) -> dict[str, Any]:
    options: list[dict[str, Any]] = [
        {},
        {},
        {"default_tag": None},
        {"default_tag": "unr"},
    ]
    found = dict(r.choice(options))
    if r.random() < 0.15:
        found["fetch_bounding_box"] = True
    return found | _within(r, knl, 0.12)


def _read_arrays(knl: Kernel) -> list[str]:
    names = [*_arrays(knl), *(t.name for t in knl.temporaries if t.shape)]
    return [n for n in names if n in knl.readers]


def _swept(r: random.Random, knl: Kernel, using: Sequence[Statement]) -> list[str]:
    inames = sorted({i for s in using for i in s.inames}) or list(knl.all_inames)
    if r.random() < 0.1:
        return []
    # What can be swept has a constant length.
    inner = [i for i in inames if "inner" in i or _has_constant_domain(knl, i)]
    return _some(r, inner if inner and r.random() < 0.9 else inames, 3)


def _meant(r: random.Random, knl: Kernel, name: str) -> str:
    """An array or a rule, or its uses with a tag."""
    uses = {use for s in knl.statements for use in s.tagged}
    uses.update(use for rule in knl.substitutions for use in tagged_uses(rule.expression))
    tags = sorted(tag for of, tag in uses if of == name)
    return f"{name}${r.choice(tags)}" if tags and r.random() < 0.6 else name


def add_prefetch(r: random.Random, knl: Kernel) -> Arguments:
    names = _read_arrays(knl)
    if not names:
        return None
    name = r.choice(names)
    found: dict[str, Any] = {"var_name": _meant(r, knl, name)}
    found |= {"sweep_inames": _swept(r, knl, knl.readers[name])} | _fetch(r, knl)
    if r.random() < 0.25:
        found["temporary_address_space"] = r.choice(["private", "shared", "global"])
    if r.random() < 0.1:
        found["fetch_outer_inames"] = _some(r, knl.all_inames, 2)
    rank = len(knl.array(name).shape or ())
    if rank and r.random() < 0.1:
        ends = [":", "0:4", "2:8", *knl.all_inames]
        found["var_name"] += f"[{', '.join(r.choice(ends) for _ in range(rank))}]"
    return found


def precompute(r: random.Random, knl: Kernel) -> Arguments:
    if not knl.substitutions:
        return None
    name = r.choice([rule.name for rule in knl.substitutions])
    found: dict[str, Any] = {"subst_use": _meant(r, knl, name)}
    found |= {"sweep_inames": _swept(r, knl, knl.statements)} | _fetch(r, knl)
    if r.random() < 0.25:
        found["temporary_address_space"] = r.choice(["private", "shared", "global"])
    if r.random() < 0.1:
        found["precompute_outer_inames"] = _some(r, knl.all_inames, 2)
    arguments = knl.rule_by_name[name].arguments
    if arguments and r.random() < 0.15:
        found["precompute_inames"] = [r.choice(knl.all_inames) for _ in arguments]
    if arguments and r.random() < 0.1:
        ends = ["0:4", "2:8", *knl.all_inames]
        found["subst_use"] += f"({', '.join(r.choice(ends) for _ in arguments)})"
    return found


def buffer_array(r: random.Random, knl: Kernel) -> Arguments:
    names = [n for n in knl.writers if knl.is_array(n)]
    if not names:
        return None
    name = r.choice(names)
    using = [*knl.writers[name], *knl.readers.get(name, ())]
    found: dict[str, Any] = {"var_name": _meant(r, knl, name)}
    found |= {"buffer_inames": _swept(r, knl, using)} | _fetch(r, knl)
    if any(s.operation is not None for s in knl.writers[name]) and r.random() < 0.8:
        return {**found, "partial": True}
    if r.random() < 0.25:
        found["temporary_scope"] = r.choice(["private", "shared", "global"])
    if r.random() < 0.2:
        found |= r.choice(
            [
                {"init_expression": "base"},
                {"store_expression": "buffer"},
                {"init_expression": "0", "store_expression": "base + buffer"},
            ]
        )
    return found


def privatize_temporaries_with_inames(r: random.Random, knl: Kernel) -> Arguments:
    if not knl.temporaries:
        return None
    name = r.choice(knl.temporaries).name
    inames = sorted({i for s in knl.writers.get(name, ()) for i in s.inames})
    if not inames:
        return None
    found: dict[str, Any] = {"privatizing_inames": _some(r, inames, 2)}
    return found | ({"only_var_names": [name]} if r.random() < 0.7 else {})


def set_temporary_address_space(r: random.Random, knl: Kernel) -> Arguments:
    if not knl.temporaries:
        return None
    space = r.choice(["private", "shared", "global"])
    return {"temp_var_names": r.choice(knl.temporaries).name, "address_space": space}


def realize_reduction(r: random.Random, knl: Kernel) -> Arguments:
    if not any(t.accumulates for t in knl.temporaries):
        return None
    if r.random() < 0.5:
        return {"force_scan": True}
    updates = [s for s in knl.statements if s.kind == "update"]
    if updates and r.random() < 0.4:
        inames = knl.reduced_inames(r.choice(updates))
        return {"by": "atomic", "inames": _some(r, list(inames), 2)} if inames else None
    return {"by": r.choice(["shuffle", "shared", "atomic"])}


def _of_reductions(r: random.Random, knl: Kernel) -> Arguments:
    """Some of the inames that a reduction runs over."""
    updates = [s for s in knl.statements if s.kind == "update" and s.operation is not None]
    inames = knl.reduced_inames(r.choice(updates)) if updates else ()
    return {"inames": _some(r, list(inames), 2)} if inames else None


split_reduction_inward = split_reduction_outward = _of_reductions


def make_reduction_inames_unique(r: random.Random, knl: Kernel) -> Arguments:
    if not any(s.operation for s in knl.statements):
        return None
    return {"inames": _some(r, knl.all_inames, 2)} if r.random() < 0.5 else {}


reduction_arg_to_subst_rule = _of_reductions


def tag_array_axes(r: random.Random, knl: Kernel) -> Arguments:
    arrays = [a for a in (*knl.args, *knl.temporaries) if getattr(a, "shape", ())]
    if not arrays:
        return None
    array = r.choice(arrays)
    rank = len(array.shape or ())  # type: ignore[union-attr]
    levels = [f"N{level}" for level in range(rank)]
    r.shuffle(levels)
    strides = [f"stride:{r.choice([1, 2, 7, 64, 1000])}" for _ in range(rank)]
    tags = r.choice(["f", "c", ",".join(levels), ",".join(levels), ",".join(strides)])
    return {"ary_names": array.name, "dim_tags": tags}


def pad_temporary(r: random.Random, knl: Kernel) -> Arguments:
    shaped = [t for t in knl.temporaries if t.shape]
    if not shaped:
        return None
    chosen = r.choice(shaped)
    axis = r.randrange(len(chosen.shape))
    return {"name": chosen.name, "axis": axis, "elements": r.choice([1, 3])}


def swizzle_array(r: random.Random, knl: Kernel) -> Arguments:
    shaped = [t for t in knl.temporaries if t.shape]
    if not shaped:
        return None
    chosen = r.choice(shaped)
    axes = range(len(chosen.shape))
    found: dict[str, Any] = {"array": chosen.name, "axis": r.choice(axes)}
    if r.random() < 0.5:
        found |= {"by": r.choice(axes), "bits": r.randint(1, 3)}
    if r.random() < 0.5:
        found |= {"base": r.randint(0, 2), "skip": r.randint(0, 2)}
    return found | {"pad": r.random() < 0.7}


def alias_temporaries(r: random.Random, knl: Kernel) -> Arguments:
    names = [t.name for t in knl.temporaries if t.shape]
    if len(names) < 2:
        return None
    return {"names": r.sample(names, r.randint(2, min(3, len(names))))}


def add_padding(r: random.Random, knl: Kernel) -> Arguments:
    shaped = [t for t in knl.temporaries if len(t.shape) > 1]
    if not shaped:
        return None
    chosen = r.choice(shaped)
    axis = r.randrange(len(chosen.shape))
    return {"variable": chosen.name, "axis": axis, "align_bytes": r.choice([16, 32])}


def fix_parameters(r: random.Random, knl: Kernel) -> Arguments:
    return {r.choice(knl.sizes): r.choice([1, 4, 5, 8, 13])} if knl.sizes else None


def assume(r: random.Random, knl: Kernel) -> Arguments:
    if not knl.sizes:
        return None
    one, two = r.choice(knl.sizes), r.choice(knl.sizes)
    forms = [f"{one} >= 1", f"{one} >= 4", f"{one} mod 4 = 0", f"{one} mod 2 = 0", f"{one} <= 64"]
    if one != two:
        forms += [f"{one} >= {two}", f"{one} = {two}"]
    return {"assumptions": r.choice(forms)}


def _index_array(knl: Kernel, name: str) -> bool:
    return name in knl.arg_by_name


def assume_injective(r: random.Random, knl: Kernel) -> Arguments:
    return {"array": "perm"} if _index_array(knl, "perm") else None


def assume_increasing(r: random.Random, knl: Kernel) -> Arguments:
    return {"array": "ptr"} if _index_array(knl, "ptr") else None


def assume_within(r: random.Random, knl: Kernel) -> Arguments:
    """True bounds: every index array stays inside of every table that is indexed by one."""
    tables = [n for n in TABLES if n in knl.arg_by_name]
    arrays = [n for n in ("perm", "col") if n in knl.arg_by_name]
    if not tables or not arrays:
        return None
    extent = chosen_of(knl.arg_by_name[r.choice(tables)])
    return {"array": r.choice(arrays), "lower": 0, "upper": to_text(extent)}


# }}}
# {{{ rules


def assignment_to_subst(r: random.Random, knl: Kernel) -> Arguments:
    single = [n for n, writers in knl.writers.items() if len(writers) == 1 and n in knl.readers]
    if not single:
        return None
    found: dict[str, Any] = {"lhs_name": r.choice(single)}
    if r.random() < 0.15:
        found["extra_arguments"] = _some(r, knl.all_inames, 1)
    return found | _within(r, knl, 0.15)


def extract_subst(r: random.Random, knl: Kernel) -> Arguments:
    """A rule for a piece of some right-hand side; its inames, or some of them, are parameters."""
    statement = _statement(r, knl)
    piece = _piece(r, statement.rhs)
    inames = sorted(statement.inames)
    parameters = inames if r.random() < 0.7 else _some(r, inames, 2)
    text = to_text(piece)
    parameters = [p for p in parameters if p in text]
    found = {"subst_name": knl.fresh_name("rule"), "template": text, "parameters": parameters}
    return found | _within(r, knl, 0.15)


def _piece(r: random.Random, expression: Any) -> Any:
    """``expression`` or something inside it."""
    children: tuple[Any, ...] = ()
    if isinstance(expression, (prim.Sum, prim.Product, prim.Max, prim.Min)):
        children = expression.children
    children = tuple(c for c in children if isinstance(c, prim.ExpressionNode))
    if children and r.random() < 0.7:
        return _piece(r, r.choice(children))
    return expression


def expand_subst(r: random.Random, knl: Kernel) -> Arguments:
    return _within(r, knl, 0.2) if knl.substitutions else None


# }}}
# {{{ launches


def add_barrier(r: random.Random, knl: Kernel) -> Arguments:
    if len(knl.statements) < 2:
        return None
    at = r.randrange(len(knl.statements) - 1)
    found: dict[str, Any] = {"insn_before": f"id:{knl.statements[at].id}"}
    kind = r.random()
    if kind < 0.7:
        found["insn_after"] = f"id:{knl.statements[at + 1].id}"
    if kind > 0.5:
        path = [iname for iname, _ in knl.paths[knl.statements[at].id]]
        found["within_inames"] = path[: r.randint(0, min(1, len(path)))]
    return found


def save_and_reload_temporaries(r: random.Random, knl: Kernel) -> Arguments:
    return {} if r.random() < 0.2 else add_barrier(r, knl)


def remove_barrier(r: random.Random, knl: Kernel) -> Arguments:
    ids = [leaf.id for leaf, _ in entries_of(knl.tree) if isinstance(leaf, LaunchBarrier)]
    return {"barrier": r.choice(ids)} if ids else None


# }}}

Drawer = Callable[[random.Random, Kernel], Arguments]

# Every transform, and how often it is drawn.
DRAWERS: dict[str, tuple[Drawer, int]] = {
    "split_iname": (split_iname, 22),
    "tag_inames": (tag_inames, 14),
    "prioritize_loops": (prioritize_loops, 12),
    "add_prefetch": (add_prefetch, 12),
    "duplicate_inames": (duplicate_inames, 7),
    "map_domain": (map_domain, 7),
    "join_inames": (join_inames, 5),
    "buffer_array": (buffer_array, 6),
    "precompute": (precompute, 8),
    "extract_subst": (extract_subst, 4),
    "assignment_to_subst": (assignment_to_subst, 4),
    "expand_subst": (expand_subst, 1),
    "chunk_iname": (chunk_iname, 4),
    "rename_iname": (rename_iname, 4),
    "rename_inames": (rename_inames, 2),
    "rename_inames_in_batch": (rename_inames_in_batch, 2),
    "fission": (fission, 5),
    "unroll": (unroll, 4),
    "fuse_loops": (fuse_loops, 6),
    "affine_map_inames": (affine_map_inames, 3),
    "peel_iname": (peel_iname, 4),
    "privatize_temporaries_with_inames": (privatize_temporaries_with_inames, 5),
    "set_temporary_address_space": (set_temporary_address_space, 5),
    "add_barrier": (add_barrier, 5),
    "remove_barrier": (remove_barrier, 1),
    "save_and_reload_temporaries": (save_and_reload_temporaries, 3),
    "realize_reduction": (realize_reduction, 3),
    "split_reduction_inward": (split_reduction_inward, 3),
    "split_reduction_outward": (split_reduction_outward, 3),
    "reduction_arg_to_subst_rule": (reduction_arg_to_subst_rule, 2),
    "make_reduction_inames_unique": (make_reduction_inames_unique, 2),
    "tag_array_axes": (tag_array_axes, 3),
    "untag_inames": (untag_inames, 2),
    "pad_temporary": (pad_temporary, 2),
    "swizzle_array": (swizzle_array, 3),
    "alias_temporaries": (alias_temporaries, 3),
    "add_padding": (add_padding, 1),
    "fix_parameters": (fix_parameters, 2),
    "assume": (assume, 3),
    "assume_injective": (assume_injective, 5),
    "assume_increasing": (assume_increasing, 4),
    "assume_within": (assume_within, 1),
    "remove_unused_inames": (remove_unused_inames, 1),
    "set_array_axis_names": (array_steps.set_array_axis_names, 1),
    "split_array_dim": (array_steps.split_array_dim, 2),
    "concatenate_arrays": (array_steps.concatenate_arrays, 2),
    "unprivatize_temporaries_with_inames": (array_steps.unprivatize_temporaries_with_inames, 2),
    "tag_instructions": (statement_steps.tag_instructions, 1),
    "inline_callable_kernel": (statement_steps.inline_callable_kernel, 1),
    "remove_instructions": (statement_steps.remove_instructions, 2),
    "replace_instruction_ids": (statement_steps.replace_instruction_ids, 1),
    "add_dependency": (statement_steps.add_dependency, 3),
    "add_inames_to_insn": (statement_steps.add_inames_to_insn, 4),
    "remove_inames_from_insn": (statement_steps.remove_inames_from_insn, 2),
    "collect_common_factors_on_increment": (
        statement_steps.collect_common_factors_on_increment,
        2,
    ),
    "add_inames_for_unused_hw_axes": (statement_steps.add_inames_for_unused_hw_axes, 3),
    "rename_argument": (argument_steps.rename_argument, 1),
    "set_argument_order": (argument_steps.set_argument_order, 1),
    "remove_unused_arguments": (argument_steps.remove_unused_arguments, 1),
}
NOT_DRAWN = {
    "add_dtypes": "types of drawn kernels are all given",
    "add_and_infer_dtypes": "types of drawn kernels are all given",
    "assume_disjoint": "no two index arrays of drawn kernels are disjoint",
}
"""What is never drawn, and why."""


_TOGETHER = (
    "alias_temporaries",
    "add_barrier",
    "remove_barrier",
    "split_iname",
    "tag_inames",
    "realize_reduction",
    "split_reduction_outward",
    "swizzle_array",
    "rename_iname",
)
# What sequences are about: the first steps, and what is drawn more often after them.
_THEMES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("buffer_array", "add_inames_to_insn"), ("add_inames_to_insn", "add_prefetch", "precompute")),
    ((), ()),
    (("parallel",), ("tag_inames", "split_iname", "prioritize_loops", "peel_iname")),
    (("parallel", "parallel"), ("add_prefetch", "buffer_array", "tag_inames", "split_iname")),
    (("parallel", "split_iname"), ("add_prefetch", "buffer_array", "swizzle_array")),
    (("add_barrier",), ("tag_inames", "split_iname", "add_barrier", "add_prefetch")),
    (("split_iname",), ("add_prefetch", "buffer_array", "privatize_temporaries_with_inames")),
    (("extract_subst", "split_iname"), ("precompute", "add_prefetch", "tag_inames")),
    (("precompute", "precompute"), ("precompute", "add_prefetch", "split_iname")),
    (("split_iname", "assignment_to_subst"), ("precompute", "expand_subst", "join_inames")),
    (("assume_injective", "assume_increasing"), ("split_iname", "tag_inames", "prioritize_loops")),
)
_OF_THREADS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("shared", "threads"), _TOGETHER),
    (("shared", "threads", "realize_reduction"), _TOGETHER),
    (("add_barrier", "shared", "threads"), _TOGETHER),
    (("shared", "alias_temporaries", "threads"), _TOGETHER),
    (("scan", "shared", "threads"), (*_TOGETHER, "realize_reduction")),
    (("scan", "scanned"), ("realize_reduction", "add_prefetch", "split_iname", "tag_inames")),
    (("lookback", "scanned"), ("realize_reduction", "add_prefetch", "buffer_array", "add_barrier")),
    (("shared", "scan", "alias_temporaries", "threads"), (*_TOGETHER, "add_inames_to_insn")),
    (("shared", "threads", "alias_temporaries"), ("add_inames_to_insn", "add_prefetch")),
    (("add_barrier", "save_and_reload_temporaries", "shared", "alias_temporaries"), _TOGETHER),
)


def _parallel_split(r: random.Random, knl: Kernel) -> Arguments:
    """A loop over blocks and threads, or over one of them; often of several statements."""
    names = [i for i in _plain(knl) if any(i in s.inames for s in knl.statements)]
    if not names:
        return None
    used = _used(knl)
    axis = r.choice([a for a in "012" if not {f"g.{a}", f"l.{a}"} & used] or ["0"])
    found = {"split_iname": r.choice(names), "inner_length": _length(r), "inner_tag": f"l.{axis}"}
    return found | ({"outer_tag": f"g.{axis}"} if r.random() < 0.7 else {})


def _all_threads(r: random.Random, knl: Kernel) -> Arguments:
    """Rows to blocks or threads, what is in them to the threads of one axis; some are left."""
    plain = [i for i in _plain(knl) if any(i in s.inames for s in knl.statements)]
    around = sorted({path[0][0] for path in knl.paths.values() if path})
    row = r.choice(["g.0", "g.0", "g.0", "l.1", None])
    chosen = {i: row for i in plain if i in around and row is not None and r.random() < 0.9}
    left = r.choice([0.0, 0.0, 0.0, 0.25])
    for iname in r.sample(plain, len(plain)):
        with_it = [s.inames for s in knl.statements if iname in s.inames]
        # A statement has one iname on an axis.
        taken = any(chosen.get(i) == "l.0" for inames in with_it for i in inames)
        if iname not in chosen and iname not in around and not taken and r.random() >= left:
            chosen[iname] = "l.0"
    return {"iname_to_tag": chosen} if chosen else None


def _scanned(r: random.Random, knl: Kernel) -> Arguments:
    """A loop of a running reduction, whose iterations threads, and blocks, are to run together."""
    running = {t.name for t in knl.temporaries if t.is_running}
    loops = [i for s in knl.statements if s.written in running for i in knl.reduced_inames(s)]
    plain = [i for i in dict.fromkeys(loops) if i in _plain(knl)]
    if not plain:
        return None
    split: dict[str, Any] = {"split_iname": r.choice(plain), "inner_length": _length(r)}
    split["inner_tag"] = "l.0"
    looks_back = any(t.combined_by == "lookback" for t in knl.temporaries)
    if not looks_back and r.random() < 0.25:
        split["slabs"] = r.choice([(0, 1), (1, 0), (1, 1)])
    rows = {str(tag) for tag in knl.iname_tags.values()}
    return split | ({"outer_tag": "g.1" if "g.0" in rows else "g.0"} if looks_back else {})


def _shared(r: random.Random, knl: Kernel) -> Arguments:
    """The temporaries of rows in the memory of a block."""
    names = [t.name for t in knl.temporaries if t.shape and not t.accumulates]
    return {"temp_var_names": ", ".join(names), "address_space": "shared"} if names else None


class Theme:
    """What a sequence is about; ``together``: mostly what threads do together."""

    def __init__(self, r: random.Random, together: bool = False) -> None:
        self.r = r
        is_of_threads = r.random() < (0.75 if together else 0.2)
        first, often = r.choice(_OF_THREADS if is_of_threads else _THEMES)
        self.first = list(first)
        self.names = list(DRAWERS)
        self.weights = [DRAWERS[n][1] * (5 if n in often else 1) for n in self.names]

    def draw(self, kernel: Kernel) -> Call | None:
        """A call for ``kernel``; None where what was drawn has nothing to work on."""
        r = self.r
        name = self.first.pop(0) if self.first else r.choices(self.names, self.weights)[0]
        if name == "parallel":
            name, arguments = "split_iname", _parallel_split(r, kernel)
        elif name == "threads":
            name, arguments = "tag_inames", _all_threads(r, kernel)
        elif name == "scan":
            is_reduced = any(t.accumulates for t in kernel.temporaries)
            name, arguments = "realize_reduction", {"force_scan": True} if is_reduced else None
        elif name == "lookback":
            is_reduced = any(t.accumulates for t in kernel.temporaries)
            how = {"force_scan": True, "by": "lookback"}
            name, arguments = "realize_reduction", how if is_reduced else None
        elif name == "scanned":
            name, arguments = "split_iname", _scanned(r, kernel)
        elif name == "shared":
            name, arguments = "set_temporary_address_space", _shared(r, kernel)
        else:
            arguments = DRAWERS[name][0](r, kernel)
        return None if arguments is None else Call(name, arguments)
