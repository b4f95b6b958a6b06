"""Faults in the passes from a kernel to its source."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pymbolic.primitives as prim
from refusals.case import do

import loopkit as lk
from faults import kernels
from faults.planting import Patch, fault
from loopkit._arrays import AddressSpace
from loopkit._expression import evaluate
from loopkit.codegen.barriers import BarrierNode, GuardedLoop
from loopkit.codegen.ir import Barrier, For, If

Nodes = tuple[Any, ...]

# {{{ barriers


def placed(change: Callable[[Nodes], Nodes]) -> Patch:
    """Barriers end up elsewhere than the pass decided."""
    return Patch("codegen.nest:place_barriers", lambda f: lambda *a: change(f(*a)))


def within(iname: str, change: Callable[[Nodes], Nodes]) -> Callable[[Nodes], Nodes]:
    """The change made in the body of a loop."""

    def apply(nodes: Nodes) -> Nodes:
        return tuple(
            dataclasses.replace(n, body=change(n.body) if n.iname == iname else apply(n.body))
            if isinstance(n, GuardedLoop)
            else n
            for n in nodes
        )

    return apply


def _position(nodes: Nodes, number: int) -> int:
    return [i for i, n in enumerate(nodes) if isinstance(n, BarrierNode)][number]


def dropped(number: int) -> Callable[[Nodes], Nodes]:
    def change(nodes: Nodes) -> Nodes:
        at = _position(nodes, number)
        return (*nodes[:at], *nodes[at + 1 :])

    return change


def weak(number: int) -> Callable[[Nodes], Nodes]:
    """Only the threads of each warp wait."""

    def change(nodes: Nodes) -> Nodes:
        at = _position(nodes, number)
        return (*nodes[:at], dataclasses.replace(nodes[at], of_warp=True), *nodes[at + 1 :])

    return change


def earlier(number: int, by: int) -> Callable[[Nodes], Nodes]:
    def change(nodes: Nodes) -> Nodes:
        at = _position(nodes, number)
        rest = [*nodes[:at], *nodes[at + 1 :]]
        rest.insert(at - by, nodes[at])
        return tuple(rest)

    return change


def into(number: int, iname: str, *, at_end: bool) -> Callable[[Nodes], Nodes]:
    """A barrier moves into a loop beside it."""

    def change(nodes: Nodes) -> Nodes:
        barrier = nodes[_position(nodes, number)]
        return tuple(
            dataclasses.replace(n, body=(*n.body, barrier) if at_end else (barrier, *n.body))
            if isinstance(n, GuardedLoop) and n.iname == iname
            else n
            for n in nodes
            if n is not barrier
        )

    return change


def out_of(iname: str, number: int, *, before: bool) -> Callable[[Nodes], Nodes]:
    """A barrier moves out of the loop that it stands in."""

    def change(nodes: Nodes) -> Nodes:
        result: list[Any] = []
        for node in nodes:
            if not isinstance(node, GuardedLoop) or node.iname != iname:
                result.append(node)
                continue
            barrier = node.body[_position(node.body, number)]
            loop = dataclasses.replace(node, body=dropped(number)(node.body))
            result += [barrier, loop] if before else [loop, barrier]
        return tuple(result)

    return change


TILED = (
    do("split_iname", "i", 8, outer_tag="g.1", inner_tag="l.1"),
    do("split_iname", "j", 8, outer_tag="g.0", inner_tag="l.0"),
    do("split_iname", "k", 8),
    do("add_prefetch", "a", ["i_inner", "k_inner"]),
    do("add_prefetch", "b", ["k_inner", "j_inner"]),
)
ODD = {"n": 9, "m": 10, "l": 21}
IN_PRODUCT: dict[str, Callable[[Nodes], Nodes]] = {
    "the one after the fetches is dropped": within("k_outer", dropped(0)),
    "the one before the next fetches is dropped": within("k_outer", dropped(1)),
    "the one after the fetches is of a warp": within("k_outer", weak(0)),
    "the one before the next fetches is of a warp": within("k_outer", weak(1)),
    "the one after the fetches stands between them": within("k_outer", earlier(0, 1)),
    "the one after the fetches stands before them": within("k_outer", earlier(0, 2)),
    "the one before the next fetches stands before the use": within("k_outer", earlier(1, 1)),
    "the one after the fetches moves out in front": out_of("k_outer", 0, before=True),
    "the one before the next fetches moves out behind": out_of("k_outer", 1, before=False),
    "the one after the fetches moves in, behind the use": within(
        "k_outer", into(0, "k_inner", at_end=True)
    ),
    "the one before the next fetches moves in, before the use": within(
        "k_outer", into(1, "k_inner", at_end=False)
    ),
}
for name, change in IN_PRODUCT.items():
    fault(f"barriers: {name}", kernels.product, None, placed(change), chain=TILED, sizes=ODD)

ROLLING = (
    do("tag_inames", "i:l.0, j:l.0"),
    do("set_temporary_address_space", "s", "shared"),
)
for number, name in enumerate(("before it is read", "before it is filled again")):
    fault(
        f"barriers: none {name}",
        kernels.rolling,
        None,
        placed(within("t", dropped(number))),
        chain=ROLLING,
        sizes={"T": 3},
    )
fault(
    "barriers: one for all iterations",
    kernels.rolling,
    None,
    placed(out_of("t", 0, before=True)),
    chain=ROLLING,
    sizes={"T": 3},
)
CROSSWISE = (
    do("tag_inames", "i:l.0, j:l.0, k:l.0"),
    do("set_temporary_address_space", "s, r", "shared"),
)
for number in (0, 1):
    fault(
        f"barriers: number {number} of a sequence is dropped",
        kernels.crosswise,
        None,
        placed(dropped(number)),
        chain=CROSSWISE,
    )
fault(
    "barriers: none between the threads of a warp",
    kernels.stencil,
    None,
    placed(dropped(0)),
    chain=(
        do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"),
        do("add_prefetch", "a", "i_inner"),
    ),
    sizes={"n": 21},
)


def code(change: Callable[[Nodes], Nodes]) -> Patch:
    """The program tree comes out changed."""

    def make(original: Any) -> Any:
        def nest(kernel: Any) -> Any:
            found = original(kernel)
            return dataclasses.replace(found, code=change(found.code))

        return nest

    return Patch("codegen.lower:make_nest", make)


def _under_guard(nodes: Nodes) -> Nodes:
    """A barrier behind a guarded statement comes under the guard."""
    result: list[Any] = []
    for node in nodes:
        if isinstance(node, For):
            node = dataclasses.replace(node, body=_under_guard(node.body))
        if isinstance(node, Barrier) and result and isinstance(result[-1], If):
            result[-1] = If(result[-1].condition, (*result[-1].body, node))
        else:
            result.append(node)
    return tuple(result)


fault(
    "barriers: one comes under a guard",
    kernels.product,
    None,
    code(_under_guard),
    chain=TILED,
    sizes=ODD,
)
fault(
    "barriers: one comes under the guard of fewer and fewer threads",
    kernels.shared_triangle,
    None,
    code(_under_guard),
    chain=ROLLING,
)

# }}}

# {{{ guards

GUARDED = (do("split_iname", "i", 64, outer_tag="g.0", inner_tag="l.0"),)


def guards(change: Callable[[Any], Any]) -> Patch:
    """Guards of statements test something else."""
    return Patch("codegen.nest:guard_with_quotients", lambda f: lambda *a: change(f(*a)))


def _looser(condition: Any) -> Any:
    if isinstance(condition, prim.Comparison):
        operator = {"<": "<=", ">": ">="}.get(condition.operator, condition.operator)
        return prim.Comparison(condition.left, operator, condition.right)
    if isinstance(condition, prim.LogicalAnd):
        return prim.LogicalAnd(tuple(map(_looser, condition.children)))
    return condition


def _tighter(condition: Any) -> Any:
    if isinstance(condition, prim.Comparison):
        operator = {"<=": "<", ">=": ">"}.get(condition.operator, condition.operator)
        left = prim.Sum((condition.left, 1)) if operator == condition.operator else condition.left
        return prim.Comparison(left, operator, condition.right)
    if isinstance(condition, prim.LogicalAnd):
        return prim.LogicalAnd(tuple(map(_tighter, condition.children)))
    return condition


def _first_only(condition: Any) -> Any:
    return condition.children[0] if isinstance(condition, prim.LogicalAnd) else condition


fault(
    "guards: dropped",
    kernels.added,
    None,
    guards(lambda condition: True),
    chain=GUARDED,
    sizes={"n": 70},
    sanitize=True,
)
fault(
    "guards: < becomes <=",
    kernels.added,
    None,
    guards(_looser),
    chain=GUARDED,
    sizes={"n": 70},
    sanitize=True,
)
fault(
    "guards: one too tight", kernels.added, None, guards(_tighter), chain=GUARDED, sizes={"n": 70}
)
fault(
    "guards: half of one is dropped",
    kernels.product,
    None,
    guards(_first_only),
    chain=TILED,
    sizes=ODD,
    sanitize=True,
)
fault(
    "guards: no thread is chosen where all would do the same",
    kernels.one_for_all,
    None,
    Patch("codegen.nest:_Walker.chosen_thread", lambda f: lambda self, statement: []),
    chain=GUARDED,
    sizes={"n": 70},
)
fault(
    "guards: a thread is chosen, but in every block",
    kernels.one_for_all,
    None,
    Patch(
        "codegen.nest:_Walker.chosen_thread",
        lambda f: (
            lambda self, statement: [c for c in f(self, statement) if "thread" in c.left.name]
        ),
    ),
    chain=GUARDED,
    sizes={"n": 70},
)
fault(
    "guards: a condition of the text is dropped",
    kernels.conditional_on_data,
    None,
    Patch(
        "codegen.nest:split_predicates",
        lambda f: lambda kernel, statement: (f(kernel, statement)[0], ()),
    ),
    chain=GUARDED,
    sizes={"n": 70},
    values=lambda sizes: {"a": [float(i % 16) for i in range(sizes["n"])]},
)

# }}}

# {{{ loops


def bounds(**changes: Callable[[Any], Any]) -> Patch:
    """Loops have other bounds."""

    def make(original: Any) -> Any:
        def find(*arguments: Any) -> Any:
            found = original(*arguments)
            return dataclasses.replace(
                found, **{name: change(getattr(found, name)) for name, change in changes.items()}
            )

        return find

    return Patch("codegen.nest:loop_bounds", make)


def more(expr: Any) -> Any:
    return prim.Sum((expr, 1))


def less(expr: Any) -> Any:
    return prim.Sum((expr, -1))


PLAIN = {"n": 7}
fault(
    "loops: one iteration too many",
    kernels.added,
    None,
    bounds(upper=more),
    sizes=PLAIN,
    sanitize=True,
)
fault("loops: one iteration too few", kernels.added, None, bounds(upper=less), sizes=PLAIN)
fault("loops: begin one too late", kernels.added, None, bounds(lower=more), sizes=PLAIN)
fault(
    "loops: begin one too early",
    kernels.added,
    None,
    bounds(lower=less),
    sizes=PLAIN,
    sanitize=True,
)
fault(
    "loops: a stride is forgotten",
    kernels.every_third,
    None,
    bounds(step=lambda step: 1),
    sizes={"n": 11},
)
fault(
    "loops: a strided loop begins elsewhere",
    kernels.every_third,
    None,
    bounds(lower=lambda lower: lower + 1),
    sizes={"n": 11},
)
fault(
    "loops: minimum and maximum of bounds exchanged",
    kernels.corner,
    None,
    Patch(
        "codegen.bounds:_extreme",
        lambda f: lambda parts, kind: f(parts, prim.Max if kind is prim.Min else prim.Min),
    ),
    sizes={"n": 9, "m": 8},
    sanitize=True,
)
fault(
    "loops: only one of two bounds",
    kernels.corner,
    None,
    Patch("codegen.bounds:_extreme", lambda f: lambda parts, kind: parts[-1]),
    sizes={"n": 9, "m": 8},
    sanitize=True,
)
fault(
    "loops: bounds around a barrier follow the thread",
    kernels.overwritten,
    None,
    Patch("codegen.nest:has_barrier", lambda f: lambda node: False),
    chain=ROLLING,
)
fault(
    "loops: the value of a loop that runs once",
    kernels.added,
    None,
    Patch(
        "codegen.nest:loop_bounds",
        lambda f: (
            lambda *a: (
                b if (b := f(*a)).value is None else dataclasses.replace(b, value=more(b.value))
            )
        ),
    ),
    chain=(do("peel_iname", "i", last=1),),
    sizes=PLAIN,
    sanitize=True,
)
fault(
    "loops: statements in reverse order",
    kernels.handed_on,
    None,
    Patch(
        "codegen.nest:_Walker.sequence",
        lambda f: (
            lambda self, nodes, context, known: f(self, tuple(reversed(nodes)), context, known)
        ),
    ),
    sizes=PLAIN,
)
fault(
    "loops: an unrolled loop is too short",
    kernels.added_ten,
    None,
    Patch(
        "codegen.nest:_Walker.bounds",
        lambda f: (
            lambda self, *a: dataclasses.replace(
                b := f(self, *a), upper=b.upper - 1 if isinstance(b.upper, int) else b.upper
            )
        ),
    ),
    chain=(do("tag_inames", "i:unr"),),
)

# }}}

# {{{ blocks and threads


def hardware(change: Callable[[Any], Any]) -> Patch:
    return Patch("codegen.nest:find_hardware", lambda f: lambda kernel: change(f(kernel)))


fault(
    "launch: one block too few",
    kernels.added,
    None,
    hardware(lambda h: dataclasses.replace(h, grid=(prim.Sum((h.grid[0], -1)), *h.grid[1:]))),
    chain=GUARDED,
    sizes={"n": 150},
)
fault(
    "launch: one thread too few",
    kernels.added,
    None,
    hardware(lambda h: dataclasses.replace(h, block=(h.block[0] - 1, *h.block[1:]))),
    chain=GUARDED,
    sizes={"n": 150},
)
fault(
    "launch: thread indices begin at zero",
    kernels.late,
    None,
    hardware(
        lambda h: dataclasses.replace(
            h, coordinates=tuple(dataclasses.replace(c, lower=0) for c in h.coordinates)
        )
    ),
    chain=(do("tag_inames", "i:l.0"),),
)
fault(
    "launch: axes of the grid exchanged",
    kernels.product,
    None,
    hardware(lambda h: dataclasses.replace(h, grid=(h.grid[1], h.grid[0], h.grid[2]))),
    chain=TILED,
    sizes={"n": 17, "m": 5, "l": 4},
    sanitize=True,
)
fault(
    "launch: axes of the block exchanged",
    kernels.oblong,
    None,
    hardware(lambda h: dataclasses.replace(h, block=(h.block[1], h.block[0], h.block[2]))),
    chain=(
        do("tag_inames", "i:l.1, j:l.0, k:l.1, l:l.0"),
        do("set_temporary_address_space", "s", "shared"),
    ),
    sanitize=True,
)

# }}}

# {{{ memory


def _pitch(original: Any) -> Any:
    """Rows lie one element further apart."""

    def access(self: Any, name: str, indices: Any) -> str:
        if len(indices) == 2:
            indices = (indices[0], prim.Sum((indices[1], indices[0])))
        return str(original(self, name, indices))

    return access


fault(
    "memory: rows lie one element further apart",
    kernels.moved,
    None,
    Patch("codegen.source:BodyWriter.access", _pitch),
    sizes={"n": 3},
    sanitize=True,
)
fault(
    "memory: indices in reverse order",
    kernels.moved,
    None,
    Patch(
        "codegen.source:BodyWriter.access",
        lambda f: (
            lambda self, name, indices: f(
                self, name, tuple(reversed(indices)) if name == "a" else indices
            )
        ),
    ),
    sizes={"n": 4},
)


def declared(change: Callable[[Any], Any], name: str = "s") -> Patch:
    """A temporary is declared in another way."""
    return Patch(
        "codegen.storage:_declare",
        lambda f: lambda t: change(f(t)) if t.name == name else f(t),
    )


OBLONG = (
    do("tag_inames", "i:l.1, j:l.0, k:l.1, l:l.0"),
    do("set_temporary_address_space", "s", "shared"),
)
fault(
    "memory: a shared array is one row short",
    kernels.oblong,
    None,
    declared(lambda d: dataclasses.replace(d, dimensions=(d.dimensions[0] - 1, *d.dimensions[1:]))),
    chain=OBLONG,
    sanitize=True,
)
fault(
    "memory: a shared array is one column short",
    kernels.oblong,
    None,
    declared(
        lambda d: dataclasses.replace(d, dimensions=(*d.dimensions[:-1], d.dimensions[-1] - 1))
    ),
    chain=OBLONG,
    sanitize=True,
)
fault(
    "memory: axes of a shared array exchanged",
    kernels.oblong,
    None,
    declared(lambda d: dataclasses.replace(d, order=tuple(reversed(d.order)))),
    chain=OBLONG,
    sanitize=True,
)
fault(
    "memory: a private array is one element short",
    kernels.row_sums,
    None,
    declared(lambda d: dataclasses.replace(d, dimensions=(d.dimensions[0] - 1,)), "acc"),
    chain=(do("fix_parameters", n=6), do("prioritize_loops", "k, i")),
    sizes={"n": 6},
    sanitize=True,
)


def _at_zero(original: Any) -> Any:
    """All shared arrays begin at the same place."""

    def lay_out(kernel: Any) -> Any:
        found = original(kernel)
        return dataclasses.replace(
            found,
            declared={
                name: d if d.offset is None else dataclasses.replace(d, offset=0)
                for name, d in found.declared.items()
            },
        )

    return lay_out


LARGE = (
    do("split_iname", "i", 8, inner_tag="l.1"),
    do("split_iname", "j", 16, inner_tag="l.0"),
    do("split_iname", "k", 8, inner_tag="l.1"),
    do("split_iname", "l", 16, inner_tag="l.0"),
    do("set_temporary_address_space", "s, r", "shared"),
)
fault(
    "memory: two shared arrays laid over each other",
    kernels.large_tiles,
    None,
    Patch("codegen.lower:lay_out", _at_zero),
    chain=LARGE,
)


def _overlapping(original: Any) -> Any:
    """The second array begins before the first one ends."""

    def lay_out(kernel: Any) -> Any:
        found = original(kernel)
        return dataclasses.replace(
            found,
            declared={
                name: dataclasses.replace(d, offset=d.offset - 16) if d.offset else d
                for name, d in found.declared.items()
            },
        )

    return lay_out


fault(
    "memory: two shared arrays overlap by a little",
    kernels.large_tiles,
    None,
    Patch("codegen.lower:lay_out", _overlapping),
    chain=LARGE,
)
fault(
    "memory: less shared memory asked for than used",
    kernels.large_tiles,
    None,
    Patch(
        "codegen.lower:lay_out",
        lambda f: (
            lambda kernel: dataclasses.replace(
                s := f(kernel), dynamic_shared=s.dynamic_shared - 512
            )
        ),
    ),
    chain=LARGE,
    sanitize=True,
)

# }}}

# {{{ arithmetic


def _wraps(kernel: Any) -> str | None:
    """The index of a cell that exists, in the arithmetic that the source spells."""
    found = re.search(r"= 2\.0f \* a\[(.*)\];", kernel.cuda())
    assert found is not None
    text = found[1].replace("(long long)", "1*long*")
    i, j, m = 50_000, 50_000, 60_000

    class Int(int):
        """A 32-bit integer."""

        def __mul__(self, other: Any) -> Any:
            return _wrapped(self, other, int(self) * int(other))

        def __add__(self, other: Any) -> Any:
            return _wrapped(self, other, int(self) + int(other))

    class Long(int):
        """A 64-bit integer."""

        def __mul__(self, other: Any) -> Any:
            return Long(int(self) * int(other))

        def __add__(self, other: Any) -> Any:
            return Long(int(self) + int(other))

    def _wrapped(a: Any, b: Any, value: int) -> Any:
        if isinstance(b, Long):
            return Long(value)
        return Int((value + 2**31) % 2**32 - 2**31)

    text = text.replace("1*long*", "long*")
    got = int(eval(text, {"i": Int(i), "j": Int(j), "m": Int(m), "long": Long(1)}))
    return None if got == i * m + j else f"a[{i}, {j}] of {m} columns is looked for at {got}"


fault(
    "arithmetic: 32 bits where 64 are needed",
    kernels.wide,
    None,
    Patch(
        "codegen.source:BodyWriter.access",
        lambda f: lambda self, *a: f(self, *a).replace("(long long)", ""),
    ),
    sizes={"n": 2, "m": 3},
    evidence=_wraps,
)


def _overflows(kernel: Any) -> str | None:
    """The bound of a loop for the largest size that calls admit."""
    n = 2**31 - 1
    if "(n + 3) / 4" in kernel.cuda() and all(
        evaluate(check.condition, {"n": n}) for check in kernel.program().checks
    ):
        return f"for n = {n}, n + 3 is no 32-bit integer"
    return None


fault(
    "arithmetic: sizes may be as large as integers get",
    kernels.added,
    None,
    Patch("codegen.lower:size_checks", lambda f: lambda kernel: ()),
    chain=(do("split_iname", "i", 4),),
    sizes={"n": 7},
    evidence=_overflows,
)
fault(
    "arithmetic: division of negative numbers rounds towards zero",
    kernels.below_zero,
    None,
    Patch("codegen.widths:Ranges.is_nonnegative", lambda f: lambda self, expr: True),
)

# }}}

# {{{ values


def text(pattern: str, replacement: str) -> Patch:
    """A statement is printed in another way."""

    def make(original: Any) -> Any:
        return lambda self, statement: re.sub(
            pattern, replacement, original(self, statement), count=1
        )

    return Patch("codegen.values:ValuePrinter.assignment", make)


fault(
    "values: an update is printed as an assignment",
    kernels.row_sums,
    None,
    text(r"\+=", "="),
    sizes={"n": 3},
)
fault(
    "values: a sum is printed as a difference",
    kernels.added,
    None,
    text(r" \+ ", " - "),
    sizes={"n": 3},
)
fault(
    "values: a constant is printed with another value",
    kernels.stencil,
    None,
    text(r"2\.0f", "2.5f"),
    sizes={"n": 5},
)
fault(
    "values: a sum starts from one",
    kernels.row_sums,
    None,
    text(r"0\.0f", "1.0f"),
    sizes={"n": 3},
)
fault(
    "values: an access is printed twice, another not at all",
    kernels.stencil,
    None,
    text(r"a\[i \+ 1\]", "a[i - 1]"),
    sizes={"n": 5},
)
fault(
    "values: parentheses are lost",
    kernels.distributed,
    None,
    text(r"\((a\[i\] \+ 1\.0f)\)", r"\1"),
    sizes={"n": 5},
)
fault(
    "values: copies for each value of an ilp iname are not made",
    kernels.through_scalar,
    None,
    Patch("codegen.prepare:_expand_private", lambda f: lambda kernel, iname: kernel),
    chain=(do("tag_inames", "j:ilp"),),
)

# }}}

# {{{ calls


def _narrowed(original: Any) -> Any:
    """Temporaries get a narrower type."""

    def infer(kernel: Any) -> Any:
        found = original(kernel)
        return found.with_(
            temporaries=tuple(
                dataclasses.replace(t, dtype=np.dtype("int8")) for t in found.temporaries
            )
        )

    return infer


fault(
    "values: temporaries are declared too narrow",
    kernels.through_scalar,
    None,
    Patch("codegen.prepare:infer_types", _narrowed),
)
fault(
    "values: a rule's arguments are exchanged",
    kernels.rules,
    None,
    Patch(
        "codegen.prepare:expand_rules",
        lambda f: (
            lambda kernel: f(
                kernel.with_(
                    substitutions=tuple(
                        dataclasses.replace(r, arguments=tuple(reversed(r.arguments)))
                        for r in kernel.substitutions
                    )
                )
            )
        ),
    ),
    sizes={"n": 4},
)
fault(
    "memory: private where threads exchange values",
    kernels.staged_anywhere,
    None,
    Patch(
        "codegen.prepare:decide_address_spaces",
        lambda f: (
            lambda kernel: kernel.with_(
                temporaries=tuple(
                    dataclasses.replace(t, address_space=AddressSpace.PRIVATE)
                    for t in kernel.temporaries
                )
            )
        ),
    ),
    chain=(do("tag_inames", "i:l.0, j:l.0"),),
)
fault(
    "memory: shared where each thread has its own value",
    kernels.through_scalar,
    None,
    Patch(
        "codegen.prepare:decide_address_spaces",
        lambda f: (
            lambda kernel: kernel.with_(
                temporaries=tuple(
                    dataclasses.replace(t, address_space=AddressSpace.LOCAL)
                    for t in kernel.temporaries
                )
            )
        ),
    ),
    chain=(do("tag_inames", "i:l.1, j:l.0"),),
)


def _swapped_parameters(original: Any) -> Any:
    """The text names two pointers in another order than a launch passes them."""

    def signature(kernel: Any, params: Any, threads: int) -> Any:
        names = [p.name for p in params]
        a, b = names.index("a"), names.index("b")
        params = list(params)
        params[a], params[b] = params[b], params[a]
        return original(kernel, params, threads)

    return signature


fault(
    "calls: pointers in another order than the text has them",
    kernels.handed_on,
    None,
    Patch("codegen.lower:signature", _swapped_parameters),
    sizes={"n": 4},
)
fault(
    "calls: assumptions are not checked",
    kernels.fours,
    None,
    Patch("codegen.lower:checks", lambda f: lambda assumptions: ()),
    chain=(do("split_iname", "i", 4),),
    sizes={"n": 8},
    evidence=lambda kernel: _runs_for(kernel, 6),
)


def _runs_for(kernel: Any, n: int) -> str | None:
    """A call with a size that the assumptions exclude."""
    a, b = np.ones(n, "f4"), np.ones(n, "f4")
    try:
        kernel.executor("host", sanitize=True)(a=a, b=b)
    except lk.AssumptionError:
        return None
    except lk.LoopkitError as error:
        return f"{type(error).__name__}: {error}"
    return f"it runs for n = {n}"


def _short_scratch(original: Any) -> Any:
    """Less memory is allocated for a global temporary than it needs."""

    def parameter(kernel: Any, array: Any, role: str) -> Any:
        found = original(kernel, array, role)
        if role != "scratch":
            return found
        return dataclasses.replace(found, shape=(found.shape[0] - 4, *found.shape[1:]))

    return parameter


fault(
    "calls: too little memory for a global temporary",
    kernels.through_global,
    None,
    Patch("codegen.source:_array_parameter", _short_scratch),
    sanitize=True,
)


def _crossed_strides(original: Any) -> Any:
    """Strides of an array that does not lie contiguously belong to the wrong axes."""

    def with_strides(kernel: Any, strided: Any) -> Any:
        found, params = original(kernel, strided)
        axes = [p.axis for p in params]
        return found, [
            dataclasses.replace(p, axis=axis)
            for p, axis in zip(params, reversed(axes), strict=True)
        ]

    return with_strides


fault(
    "calls: strides of axes exchanged",
    kernels.moved,
    None,
    Patch("codegen.lower:_with_strides", _crossed_strides),
    sizes={"n": 6},
    strided="a",
    values=lambda sizes: {"a": np.asfortranarray(np.arange(24.0, dtype="f4").reshape(6, 4))},
)

# }}}

# {{{ more barriers


def _sometimes(nodes: Nodes) -> Nodes:
    """Threads wait in every second iteration only."""
    even = prim.Comparison(prim.Remainder(prim.Variable("t"), 2), "==", 0)
    return tuple(
        If(even, (n,))
        if isinstance(n, Barrier)
        else dataclasses.replace(n, body=_sometimes(n.body))
        if isinstance(n, For)
        else n
        for n in nodes
    )


fault(
    "barriers: in every second iteration",
    kernels.rolling,
    None,
    code(_sometimes),
    chain=ROLLING,
    sizes={"T": 3},
)
fault(
    "barriers: one moves into a loop that may be empty",
    kernels.between,
    None,
    placed(into(0, "q", at_end=False)),
    chain=(
        do("tag_inames", "i:l.0, j:l.0"),
        do("set_temporary_address_space", "s", "shared"),
    ),
    sizes={"m": 0},
)
fault(
    "barriers: one moves into a loop, behind what reads",
    kernels.between,
    None,
    placed(into(0, "q", at_end=True)),
    chain=(
        do("tag_inames", "i:l.0, j:l.0"),
        do("set_temporary_address_space", "s", "shared"),
    ),
    sizes={"m": 2},
)

# }}}
