"""Where barriers stand: kernels that a person reads, what CUDA C says, and how the work grows."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from barrier_kernels import V, at, make, plus
from loop_kernels import text
from seams import Barrier, Conflicts, Do, LocalAxis, Loop, cheapest_cover, make_nest, to_text
from seams import IrFor as For
from seams import IrIf as If
from seams import IrLet as Let

import loopkit as lk
from loopkit import IllegalTransformError, Injective, Kernel, Statement

T, I, J, K = (V(name) for name in "tijk")
THREADS = ("t", "[t] -> { : 0 <= t < 64 }")


def loop(iname: str, bounds: str = "0 <= {} < n") -> tuple[str, str]:
    """A loop of a length that only the sizes say."""
    return iname, f"[n, {iname}] -> {{ : {bounds.format(iname)} }}"


def shown(kernel: Kernel) -> str:
    """The nest: loops, statements, barriers with their reasons."""
    lines: list[str] = []

    def visit(nodes: tuple[Any, ...], pad: str) -> None:
        for node in nodes:
            if isinstance(node, For):
                lines.append(f"{pad}for {node.iname}")
                visit(node.body, pad + "    ")
            elif isinstance(node, (Let, If)):
                visit(node.body, pad)
            elif isinstance(node, Barrier):
                lines.append(f"{pad}---- {'warp' if node.of_warp else 'block'}: {node.reason}")
            elif isinstance(node, Do):
                s = node.statement
                operator = "=" if s.operation is None else "+="
                lines.append(f"{pad}{to_text(s.lhs)} {operator} {to_text(s.rhs)}")

    visit(make_nest(kernel).code, "")
    return "\n".join(lines)


def kernel(statements: list[tuple[Any, Any]], tree: Any, *loops: Any, **more: Any) -> Kernel:
    """A kernel of 64 threads; ``tree`` holds numbers of statements, and loops as pairs."""
    paths: dict[int, frozenset[str]] = {}

    def build(nodes: Any, around: frozenset[str]) -> tuple[Any, ...]:
        result: list[Any] = []
        for node in nodes:
            if isinstance(node, int):
                paths[node] = around
                result.append(f"S{node}")
            else:
                result.append(Loop(node[0], build(node[1], around | {node[0]})))
        return tuple(result)

    threads = more.pop("threads", [THREADS])
    tags = {name: LocalAxis(axis) for axis, (name, _) in enumerate(threads)}
    built = build(tree, frozenset(tags))
    made = [Statement(f"S{n}", *pair, paths[n]) for n, pair in enumerate(statements)]
    names = {s.written for s in made} | {name for s in made for name, _ in s.reads}
    shared = {name: more.pop("rank", 1) for name in sorted(names) if name in ("s", "u", "v")}
    outputs = tuple(sorted(names & {"out", "a", "p"}))
    return make(
        [*threads, *loops], made, built, tags, shared, private=("x",), outputs=outputs, **more
    )


NEXT = plus(T, 1)

# {{{ the outermost place, and no more than needed


def test_none_where_threads_keep_to_their_cells():
    k = kernel([(at("s", T), 1), (V("x"), at("s", T))], [("i", [0, 1])], loop("i"))
    assert "----" not in shown(k)


def test_none_in_a_block_of_one_thread():
    k = kernel(
        [(at("s", 0), 1), (V("x"), at("s", 0))], [0, 1], threads=[("t", "[t] -> { : t = 0 }")]
    )
    assert "----" not in shown(k)


def test_one_where_a_neighbour_reads():
    k = kernel([(at("s", T), 1), (V("x"), at("s", NEXT))], [0, 1])
    assert shown(k) == text(
        """
        s[t] = 1
        ---- block: s written above, read below
        x = s[t + 1]
        """
    )


def test_around_the_back_edge():
    k = kernel([(at("s", T), 1), (V("x"), at("s", NEXT))], [("i", [0, 1])], loop("i"))
    assert shown(k) == text(
        """
        for i
            s[t] = 1
            ---- block: s written above, read below
            x = s[t + 1]
            ---- block: s read above, written in the next i
        """
    )


def test_between_a_statement_and_itself():
    k = kernel([(at("s", plus(T, I)), 1)], [("i", [0])], loop("i"))
    assert shown(k) == text(
        """
        for i
            s[t + i] = 1
            ---- block: s written above, written in the next i
        """
    )


def test_two_buffers_need_one_barrier():
    half = prim.Product((128, prim.Remainder(I, 2)))
    k = kernel(
        [(at("s", plus(half, T)), 1), (V("x"), at("s", plus(half, NEXT)))],
        [("i", [0, 1])],
        loop("i"),
    )
    # The next but one iteration writes what was read: the barrier of the next lies between.
    assert shown(k) == text(
        """
        for i
            s[128*(i % 2) + t] = 1
            ---- block: s written above, read below
            x = s[128*(i % 2) + t + 1]
        """
    )


def test_a_barrier_in_the_middle_cuts_what_the_loop_carries():
    last = prim.Product((128, plus(I, -1)))
    now = prim.Product((128, I))
    k = kernel(
        [
            (at("s", plus(now, T)), 1),
            (at("u", plus(now, T)), 1),
            (V("x"), plus(at("u", plus(now, NEXT)), at("s", plus(last, NEXT)))),
        ],
        [("i", [0, 1, 2])],
        loop("i"),
    )
    # What this iteration writes to s is read in the next one, behind its barrier.
    assert shown(k) == text(
        """
        for i
            s[128*i + t] = 1
            u[128*i + t] = 1
            ---- block: u written above, read below
            x = u[128*i + t + 1] + s[128*(i - 1) + t + 1]
        """
    )


def test_two_where_each_of_two_arrays_is_read_and_written():
    k = kernel(
        [(at("s", T), at("u", NEXT)), (at("u", T), at("s", NEXT))], [("i", [0, 1])], loop("i")
    )
    assert shown(k) == text(
        """
        for i
            s[t] = u[t + 1]
            ---- block: s written above, read below; u read above, written below
            u[t] = s[t + 1]
            ---- block: s read above, written in the next i; u written above, read in the next i
        """
    )


def test_outside_of_inner_loops():
    k = kernel(
        [(at("s", plus(T, prim.Product((64, I)))), 1), (V("x"), at("s", plus(NEXT, J)))],
        [("i", [0]), ("j", [1])],
        loop("i"),
        loop("j"),
    )
    assert shown(k) == text(
        """
        for i
            s[t + 64*i] = 1
        ---- block: s written above, read below
        for j
            x = s[t + 1 + j]
        """
    )


def test_an_outer_loop_is_cut_inside_already():
    k = kernel(
        [(at("s", T), 1), (V("x"), at("s", NEXT))],
        [("i", [("j", [0, 1])])],
        loop("i"),
        loop("j"),
    )
    assert shown(k) == text(
        """
        for i
            for j
                s[t] = 1
                ---- block: s written above, read below
                x = s[t + 1]
                ---- block: s read above, written in the next j
        """
    )


def exchange(assume: str) -> Kernel:
    """Written before a loop of exchanges through another array, read behind it."""
    return kernel(
        [(at("s", T), 1), (at("u", T), 1), (V("x"), at("u", NEXT)), (V("x"), at("s", NEXT))],
        [0, ("i", [1, 2]), 3],
        loop("i"),
        assume=assume,
    )


def test_a_loop_that_runs_cuts_what_passes_it():
    assert shown(exchange("n >= 1")) == text(
        """
        s[t] = 1
        for i
            u[t] = 1
            ---- block: u written above, read below
            x = u[t + 1]
            ---- block: u read above, written in the next i
        x = s[t + 1]
        """
    )


def test_a_loop_that_may_not_run_does_not():
    assert shown(exchange("n >= 0")) == text(
        """
        s[t] = 1
        for i
            u[t] = 1
            ---- block: u written above, read below
            x = u[t + 1]
            ---- block: u read above, written in the next i
        ---- block: s written above, read below
        x = s[t + 1]
        """
    )


def test_at_the_beginning_of_a_loop_where_that_saves_one_before_it():
    k = kernel(
        [(at("s", T), 1), (V("x"), at("s", NEXT)), (at("s", T), V("x"))],
        [0, ("i", [1, 2])],
        loop("i"),
    )
    assert shown(k) == text(
        """
        s[t] = 1
        for i
            ---- block: s written above, read below or in the next i
            x = s[t + 1]
            ---- block: s read above, written below
            s[t] = x
        """
    )


def test_rather_outside_than_once_more_inside():
    k = kernel(
        [(at("s", T), 1), (at("u", T), at("s", NEXT)), (V("x"), at("u", NEXT))],
        [0, ("i", [1]), ("j", [2])],
        loop("i"),
        loop("j"),
    )
    assert shown(k) == text(
        """
        s[t] = 1
        ---- block: s written above, read below
        for i
            u[t] = s[t + 1]
        ---- block: u written above, read below
        for j
            x = u[t + 1]
        """
    )


def test_one_for_two_arrays():
    k = kernel(
        [(at("s", T), 1), (at("u", T), 1), (V("x"), plus(at("s", NEXT), at("u", NEXT)))],
        [0, 1, 2],
    )
    assert shown(k) == text(
        """
        s[t] = 1
        u[t] = 1
        ---- block: s, u written above, read below
        x = s[t + 1] + u[t + 1]
        """
    )


def test_one_thread_writes_what_all_read():
    domains = [THREADS]
    statements = [
        Statement("one", at("s", 0), 1, frozenset()),
        Statement("all", V("x"), at("s", 0), frozenset("t")),
    ]
    k = make(domains, statements, ("one", "all"), {"t": LocalAxis(0)}, {"s": 1}, private=("x",))
    assert shown(k) == text(
        """
        s[0] = 1
        ---- block: s written above, read below
        x = s[0]
        """
    )


def test_one_thread_alone_does_not_wait():
    statements = [
        Statement("one", at("s", 0), 1, frozenset()),
        Statement("two", at("out", 0), at("s", 0), frozenset()),
        Statement("all", at("out", plus(T, 1)), 2, frozenset("t")),
    ]
    k = make(
        [THREADS],
        statements,
        ("one", "two", "all"),
        {"t": LocalAxis(0)},
        {"s": 1},
        outputs=("out",),
    )
    assert "----" not in shown(k)


def test_global_memory_within_a_block():
    k = kernel([(at("out", T), 1), (at("a", T), at("out", NEXT))], [0, 1])
    assert "---- block: out written above, read below" in shown(k)


# }}}

# {{{ data that no set knows


def indirect(**more: Any) -> Kernel:
    cell = at("p", T)
    k = kernel([(at("s", cell), 1), (V("x"), at("s", cell))], [0, 1])
    return k.with_(**more)


def test_an_indirect_access_may_be_any_cell():
    assert "---- block: s written above, read below" in shown(indirect())


def test_an_assertion_keeps_threads_apart():
    assert "----" not in shown(indirect(assertions=(Injective("p"),)))


def test_no_barrier_where_data_decides_who_comes_there():
    domain = ("i", "[m, i] -> { : 0 <= i < m }")
    k = kernel([(at("s", T), 1), (V("x"), at("s", NEXT))], [("i", [0, 1])], domain)
    with pytest.raises(IllegalTransformError) as caught:
        make_nest(k)
    assert str(caught.value) == (
        "threads exchange 's' inside the loop over 'i', between 'S0' and 'S1', and would have to "
        "wait for each other there; but 'm', which each thread computes, decides how often it "
        "passes\n"
        "give 'i' bounds that depend on sizes and loops only, or keep what is exchanged through "
        "'s' within one thread"
    )


def rows_of_any_length() -> lk.Kernel:
    """A block for each row; its threads exchange what they read of it."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: first <= j < last }", "{ [t, u]: 0 <= t, u < 64 }"],
        """
        for i
            <int32> first = start[i]
            <int32> last = start[i + 1]
            for j
                s[t] = a[j, t]
                b[j, u] = s[63 - u]
            end
        end
        """,
        [
            lk.GlobalArg("a", "float32", shape=("m", 64)),
            lk.GlobalArg("b", "float32", shape=("m", 64)),
            lk.GlobalArg("start", "int32", shape=("n + 1",)),
            lk.TemporaryVariable("s", np.dtype("float32"), (64,), lk.AddressSpace.LOCAL),
            ...,
        ],
    )


@pytest.mark.host
def test_a_barrier_in_a_loop_that_the_whole_block_runs_alike():
    knl = rows_of_any_length().tag_inames("i:g.0, t:l.0, u:l.0", unchecked=True)
    inside = [line for line in knl.cuda().splitlines() if "__syncthreads();" in line]
    assert [len(line) - len(line.lstrip()) for line in inside] == [8, 8]
    start = np.array([0, 3, 3, 8], np.int32)
    a = np.random.default_rng(2).random((8, 64), dtype=np.float32)
    for order in ("ascending", "descending", "random"):
        b = knl.executor("host", order=order, seed=5)(a=a, start=start)
        np.testing.assert_array_equal(b, a[:, ::-1])


# }}}

# {{{ warps


def rows(x: int, y: int, read: Any) -> Kernel:
    """A block of ``x`` times ``y`` threads; each reads what another one wrote."""
    threads = [("x", f"[x] -> {{ : 0 <= x < {x} }}"), ("y", f"[y] -> {{ : 0 <= y < {y} }}")]
    return make(
        threads,
        [
            Statement("put", at("s", V("y"), V("x")), 1, frozenset("xy")),
            Statement("get", V("p"), at("s", *read), frozenset("xy")),
        ],
        ("put", "get"),
        {"x": LocalAxis(0), "y": LocalAxis(1)},
        {"s": 2},
        private=("p",),
    )


X, Y = V("x"), V("y")
OTHER_OF_TWO = plus(
    1, prim.Product((2, prim.FloorDiv(Y, 2))), prim.Product((-1, prim.Remainder(Y, 2)))
)
WARPS: dict[str, tuple[Kernel, str]] = {
    "a row of 32": (rows(32, 4, (Y, plus(31, prim.Product((-1, X))))), "warp"),
    "a column": (rows(32, 4, (plus(3, prim.Product((-1, Y))), X)), "block"),
    "a block of one warp": (rows(16, 2, (plus(1, prim.Product((-1, Y))), X)), "warp"),
    "two rows of 16 each": (rows(16, 4, (OTHER_OF_TWO, X)), "warp"),
    "four rows of 16": (rows(16, 4, (plus(3, prim.Product((-1, Y))), X)), "block"),
    "a row of 33": (rows(33, 2, (Y, plus(32, prim.Product((-1, X))))), "block"),
    "a row of 24": (rows(24, 2, (Y, plus(23, prim.Product((-1, X))))), "block"),
    "a row of 24, near": (rows(24, 1, (0, plus(23, prim.Product((-1, X))))), "warp"),
    "a row of 64": (rows(64, 1, (0, plus(63, prim.Product((-1, X))))), "block"),
    "halves of a row of 64": (
        rows(64, 1, (0, plus(31, prim.Product((64, prim.FloorDiv(X, 32))), prim.Product((-1, X))))),
        "warp",
    ),
}


@pytest.mark.parametrize("case", WARPS)
def test_a_warp_waits_alone_where_it_can(case):
    k, expected = WARPS[case]
    assert f"---- {expected}: s written above, read below" in shown(k)


def test_the_block_waits_where_one_of_two_arrays_crosses_warps():
    turned = plus(31, prim.Product((64, prim.FloorDiv(T, 32))), prim.Product((-1, T)))
    k = kernel(
        [(at("s", T), 1), (at("u", T), 1), (V("x"), at("s", turned)), (V("x"), at("u", NEXT))],
        [0, 1, 2, 3],
    )
    assert shown(k) == text(
        """
        s[t] = 1
        u[t] = 1
        ---- block: s, u written above, read below
        x = s[31 + 64*(t // 32) - t]
        x = u[t + 1]
        """
    )


def test_barriers_of_the_block_only_where_warps_meet():
    turned = plus(31, prim.Product((64, prim.FloorDiv(T, 32))), prim.Product((-1, T)))
    k = kernel(
        [(at("s", T), 1), (at("u", T), at("s", turned)), (V("x"), at("u", NEXT))],
        [0, ("i", [1]), 2],
        loop("i"),
    )
    assert shown(k) == text(
        """
        s[t] = 1
        ---- warp: s written above, read below
        for i
            u[t] = s[31 + 64*(t // 32) - t]
        ---- block: u written above, read below
        x = u[t + 1]
        """
    )


def mirrored() -> lk.Kernel:
    return (
        lk.make_kernel(
            "{ [i, j]: 0 <= i < n and 0 <= j < 32 }",
            "b[i, j] = a[i, 31 - j] + a[i, j]",
            dtypes={"a, b": "float32"},
            assumptions="n >= 1",
        )
        .split_iname("i", 4, outer_tag="g.0", inner_tag="l.1")
        .tag_inames("j:l.0")
        .add_prefetch("a", ["i_inner", "j"], default_tag="l.auto")
    )


def test_the_source_says_that_a_warp_waits():
    (line,) = (line for line in mirrored().cuda().splitlines() if "__sync" in line)
    assert line.split("  ")[2] == "__syncwarp();"
    assert line.endswith("// a_s written above, read below, within a warp")
    assert "---- warp barrier: a_s written above, read below\n" in str(mirrored())


@pytest.mark.host
def test_a_warp_that_waits_has_its_data():
    a = np.random.default_rng(1).random((7, 32), dtype=np.float32)
    for order in ("ascending", "descending", "random"):
        b = mirrored().executor("host", order=order, seed=3)(a=a)
        np.testing.assert_array_equal(b, a[:, ::-1] + a)


@pytest.mark.host
def test_without_the_barrier_of_the_warp_it_has_not():
    from dataclasses import replace

    from seams import compile_host

    program = mirrored().program()
    module = compile_host(replace(program, source=program.source.replace("__syncwarp();", "")))
    a = np.random.default_rng(1).random((4, 32), dtype=np.float32)
    wrong = 0
    for order in ("ascending", "descending", "random"):
        b = np.zeros_like(a)
        given = {"n": 4, "a": a, "b": b}
        module.launch([given[p.name] for p in program.params], (1, 1, 1), order=order, seed=3)
        wrong += not np.array_equal(b, a[:, ::-1] + a)
    assert wrong == 3


# }}}

# {{{ choosing


@pytest.mark.parametrize("seed", range(60))
def test_the_cheapest_choice(seed):
    r = random.Random(seed)
    places = r.randint(1, 6)
    needs = [(r.randint(1, 2**places - 1), r.random() < 0.5) for _ in range(r.randint(1, 8))]
    depth = [r.choice((1, 10, 100)) for _ in range(places)]

    def price(place: int, strong: bool) -> int:
        return 10 * depth[place] + strong

    def serves(chosen: dict[int, bool]) -> bool:
        return all(
            any(mask >> place & 1 and have >= strong for place, have in chosen.items())
            for mask, strong in needs
        )

    least = min(
        sum(price(place, kind) for place, kind in chosen.items())
        for kinds in itertools.product((None, False, True), repeat=places)
        if serves(chosen := {p: kind for p, kind in enumerate(kinds) if kind is not None})
    )
    found = cheapest_cover(needs, price)
    assert serves(found)
    assert sum(price(place, kind) for place, kind in found.items()) == least


def chain(count: int, arrays: int) -> Kernel:
    """Loops one behind the other, each with an exchange inside and one to the next."""
    names = [f"s{number}" for number in range(arrays)]
    statements, tree, domains = [], [], [THREADS]
    for number in range(count):
        one, two = names[number % arrays], names[(number + 1) % arrays]
        iname = f"i{number}"
        inames = frozenset(["t", iname])
        statements.append(Statement(f"A{number}", at(two, T), at(one, NEXT), inames))
        statements.append(Statement(f"B{number}", at(one, T), at(two, NEXT), inames))
        tree.append(Loop(iname, (f"A{number}", f"B{number}")))
        domains.append(loop(iname))
    return make(domains, statements, tuple(tree), {"t": LocalAxis(0)}, dict.fromkeys(names, 1))


@pytest.mark.parametrize("arrays", [2, 30])
def test_the_work_grows_with_the_length_of_the_kernel(arrays, monkeypatch):
    asked = 0
    plain = Conflicts._find_reach

    def counting(*args: Any) -> Any:
        nonlocal asked
        asked += 1
        return plain(*args)

    monkeypatch.setattr(Conflicts, "_find_reach", counting)
    make_nest(chain(8, min(arrays, 8)))
    few, asked = asked, 0
    make_nest(chain(24, min(arrays, 24)))
    assert asked <= 4 * few


# }}}
