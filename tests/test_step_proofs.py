"""Steps proven by comparison with the previous kernel, and why each condition of that is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pymbolic.primitives as prim
import pytest
from campaign.shortcuts import Seen, compare, compared
from seams import (
    Change,
    Differences,
    Domain,
    InstanceMap,
    KeptValues,
    Loop,
    StepOrder,
    StepProof,
    condition_set,
    examine,
)

import loopkit as lk


def matmul() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )


def scaled() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }", "x[i, j] = 2*x[i, j]", dtypes={"x": "float32"}
    )


def tiled() -> lk.Kernel:
    return (
        matmul()
        .split_iname("i", 16, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", 16, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", 16)
    )


def running() -> lk.Kernel:
    return lk.make_kernel("{ [i]: 1 <= i < n }", "x[i] = x[i - 1] + 1", dtypes={"x": "float32"})


def skewed() -> lk.Kernel:
    """Each cell is of the one before, in the next column of the row above."""
    return lk.make_kernel(
        "{ [i, j]: 1 <= i < n and 0 <= j < n - 1 }",
        "x[i, j] = x[i - 1, j + 1] + 1",
        dtypes={"x": "float32"},
    )


def carried() -> lk.Kernel:
    """Each iteration reads what the one before left in ``t``."""
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = 0 {if=i == 0}
            y[i] = t
            t = x[i]
        end
        """,
        dtypes={"x, y": "float32"},
    )


def two_nests() -> lk.Kernel:
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"],
        "x[i] = a[i]\ny[j] = x[n - 1 - j]",
        dtypes={"a, x, y": "float32"},
    )


def how(kernel: lk.Kernel, *call: object, **arguments: object) -> str:
    """Whether a step is proven in ``"short"``, ``"in part"`` or as a ``"whole"``."""
    seen = Seen()
    with compared(seen):
        getattr(kernel, str(call[0]))(*call[1:], **arguments)
    assert not seen.differ
    (found,) = (name for name in ("short", "in part", "whole") if seen.counts[name])
    return found


@pytest.mark.parametrize(
    ("make", "call", "arguments"),
    [
        (matmul, ("split_iname", "i", 16), {"outer_tag": "g.0", "inner_tag": "l.0"}),
        (matmul, ("split_iname", "k", 16), {}),
        (matmul, ("rename_iname", "i", "row"), {}),
        (matmul, ("tag_inames", {"i": "g.0", "j": "g.1"}), {}),
        (matmul, ("assume", "n >= 4"), {}),
        (matmul, ("prioritize_loops", "k,i,j"), {}),
        (scaled, ("map_domain", "{ [i, j] -> [d, i2]: d = i + j and i2 = i }"), {}),
        (tiled, ("tag_inames", {"k_inner": "unr"}), {}),
        (running, ("split_iname", "i", 8), {}),
        (carried, ("split_iname", "i", 8), {}),
        (carried, ("fix_parameters",), {"n": 7}),
    ],
)
def test_in_short(
    make: Callable[[], lk.Kernel], call: tuple[object, ...], arguments: dict[str, object]
) -> None:
    assert how(make(), *call, **arguments) == "short"


def test_no_write_counts_that_its_condition_rules_out() -> None:
    """Where the conditions are of the same data, ``y`` is written or read, and never both."""
    knl = lk.make_kernel(
        ["{ [i, j]: 0 <= i < n and 0 <= j < 5 }", "{ [k]: 0 <= k and k + i < n }"],
        """
        for i, k, j
            if d[j + 1, k] > 3
                y[j, i] = y[j, i] + d[i, k] + k
            else
                x[i, j] = y[k, j] - x[i, j] + k
            end
        end
        """,
        dtypes={"d": "int8", "x": "float64", "y": "float32"},
        assumptions="n >= 1",
    )
    assert how(knl, "split_iname", "j", 2) == "short"


@pytest.mark.parametrize("array", ["a", "b"])
def test_in_part(array: str) -> None:
    inames = ["i_inner", "k_inner"] if array == "a" else ["k_inner", "j_inner"]
    assert how(tiled(), "add_prefetch", array, inames, default_tag="l.auto") == "in part"


def test_as_a_whole() -> None:
    rows = matmul().split_iname("i", 16).privatize_temporaries_with_inames("i_inner")
    assert how(rows, "unprivatize_temporaries_with_inames", "i_inner") == "whole"


def cut_short(kernel: lk.Kernel) -> Change:
    """The last iteration is gone."""
    (domain,) = kernel.domains
    last = condition_set(prim.Comparison(prim.Variable("i"), "<", prim.Variable("n") - 1))
    return Change(kernel.with_(domains=(Domain(domain.inames, domain.set & last),)))


def other_sum(kernel: lk.Kernel) -> Change:
    """One statement computes something else."""
    changed = tuple(
        replace(s, rhs=s.rhs.children[0]) if s.id == "insn" else s for s in kernel.statements
    )
    return Change(kernel.with_(statements=changed))


@pytest.mark.parametrize(
    ("condition", "value", "make", "call"),
    [
        ("keeps_all", True, running, ("map_domain", "{ [i] -> [r]: r = n - i }")),
        ("keeps_all", True, two_nests, ("tag_inames", {"i": "g.0", "j": "g.0"})),
        ("is_untouched", True, running, ("map_domain", "{ [i] -> [r]: r = n - i }")),
        ("is_untouched", True, skewed, ("prioritize_loops", "j,i")),
        ("are_kept", True, carried, ("tag_inames", {"i": "g.0"})),
        ("changes", Differences(), running, other_sum),
        ("same_instances", True, running, cut_short),
    ],
)
def test_each_condition_is_needed(
    monkeypatch: pytest.MonkeyPatch,
    condition: str,
    value: object,
    make: Callable[[], lk.Kernel],
    call: object,
) -> None:
    """Without it, a step would pass that the whole proof refuses."""
    kernel = make()

    def step() -> None:
        if callable(call):
            _, found = examine(kernel, call(kernel))
            if found:
                raise lk.IllegalTransformError("found")
        else:
            getattr(kernel, call[0])(*call[1:])

    with pytest.raises(lk.LoopkitError):
        step()
    owner = next(o for o in (StepOrder, KeptValues, StepProof) if hasattr(o, condition))
    monkeypatch.setattr(owner, condition, lambda self, *args: value)
    seen = Seen()
    with compared(seen):
        step()
    assert seen.differ


# {{{ steps that are no transform's


def along_i(arrays: str, text: str) -> Callable[[], lk.Kernel]:
    """Makes a kernel of one loop."""
    return lambda: lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={arrays: "float32"})


def split(kernel: lk.Kernel, iname: str = "i", length: int = 4) -> Change:
    """What ``split_iname`` hands over."""
    made = lk.split_iname.__wrapped__(kernel, iname, length)  # type: ignore[attr-defined]
    assert isinstance(made, Change)
    return made


def with_rhs(kernel: lk.Kernel, **rhs: object) -> lk.Kernel:
    """Some statements compute something else."""
    changed = (replace(s, rhs=rhs.get(s.id, s.rhs)) for s in kernel.statements)
    return kernel.with_(statements=tuple(changed))


def inner_apart(kernel: lk.Kernel) -> Change:
    """A split whose inner loop is distributed over two statements that need each other."""
    change = split(kernel)
    (outer,) = change.kernel.tree
    assert isinstance(outer, Loop)
    (inner,) = outer.body
    assert isinstance(inner, Loop)
    apart = tuple(Loop(inner.iname, (name,)) for name in inner.body)
    return replace(change, kernel=change.kernel.with_(tree=(Loop(outer.iname, apart),)))


def other_index(kernel: lk.Kernel) -> Change:
    """``a[i % 3] + i`` becomes ``a[i] + i``: the index is a node that stands elsewhere, too."""
    (statement,) = kernel.statements
    read, i = statement.rhs.children
    return Change(with_rhs(kernel, insn=prim.Sum((prim.Subscript(read.aggregate, i), i))))


def other_number(kernel: lk.Kernel) -> Change:
    """``b[i, 1] + 2`` becomes ``b[i, 2] + 2``."""
    (statement,) = kernel.statements
    read, two = statement.rhs.children
    other = prim.Subscript(read.aggregate, (read.index_tuple[0], two))
    return Change(with_rhs(kernel, insn=prim.Sum((other, two))))


def shared_node(kernel: lk.Kernel) -> Change:
    """A statement reads what its neighbour reads, by the same node; both changed elsewhere."""
    first, second = kernel.statements
    mine, other = first.rhs.children
    wrong = prim.Subscript(other.aggregate, (prim.Variable("i") + prim.Variable("i")) % 2)
    rhs = {first.id: prim.Sum((mine, wrong)), second.id: mine}
    return Change(with_rhs(kernel, **rhs))


def float_index(kernel: lk.Kernel) -> Change:
    """``a[i + 1]`` becomes ``a[i + 1.0]``."""
    (statement,) = kernel.statements
    read, factor = statement.rhs.children
    other = prim.Subscript(read.aggregate, prim.Sum((prim.Variable("i"), 1.0)))
    return Change(with_rhs(kernel, insn=prim.Product((other, factor))))


def other_size(kernel: lk.Kernel) -> Change:
    """``n`` becomes ``n + 1``, and is said to be an iname."""
    (statement,) = kernel.statements
    more = prim.Sum((prim.Variable("n"), 1))
    change = Change(with_rhs(kernel, insn=prim.Product((statement.rhs.children[0], more))))
    return replace(change, instances=(InstanceMap("insn", "insn", {"n": more}),))


def turned_round(kernel: lk.Kernel) -> Change:
    """Nothing changes, and it is said that the loop runs backwards."""
    back = prim.Sum((prim.Variable("n"), -1, prim.Product((-1, prim.Variable("i")))))
    return Change(kernel, (InstanceMap("insn", "insn", {"i": back}),))


def other_zero(kernel: lk.Kernel) -> Change:
    """``0.0`` becomes ``-0.0``."""
    (statement,) = kernel.statements
    return Change(with_rhs(kernel, insn=prim.Product((statement.rhs.children[0], -0.0))))


def without_loop(kernel: lk.Kernel) -> Change:
    """The statement is still inside ``i``, and no loop is there."""
    return Change(kernel.with_(tree=("insn",)))


def loop_twice(kernel: lk.Kernel) -> Change:
    """One loop stands in another one over the same iname."""
    return Change(kernel.with_(tree=(Loop("i", kernel.tree),)))


def loop_of_a_thread(kernel: lk.Kernel) -> Change:
    """An iname is a thread's, and a loop."""
    tagged = lk.tag_inames.__wrapped__(kernel, {"i": "l.0"})  # type: ignore[attr-defined]
    return replace(tagged, kernel=tagged.kernel.with_(tree=kernel.tree))


def move_with_a_map(kernel: lk.Kernel) -> Change:
    """A statement that fills a new array is said to be the one that fills ``t``."""
    made = lk.add_prefetch.__wrapped__(kernel, ("t", None), ["i"])  # type: ignore[attr-defined]
    (move,) = made.moves
    wrong = with_rhs(made.kernel, **{move: 7.0})
    return replace(made, kernel=wrong, instances=(*made.instances, InstanceMap(move, "fill")))


@pytest.mark.parametrize(
    ("make", "change"),
    [
        (along_i("a, x, y", "for i\n x[(i + 1) % 3] = a[i]\n y[i] = x[i % 3]\nend"), inner_apart),
        (along_i("a, x", "x[i] = a[i % 3] + i"), other_index),
        (along_i("b, x", "x[i] = b[i, 1] + 2"), other_number),
        (along_i("a, b, x, y", "for i\n x[i] = a[i] + b[i]\n y[i] = b[i]\nend"), shared_node),
        (along_i("a, x", "x[i] = a[i + 1] * 2"), float_index),
        (along_i("a, x", "x[i] = a[i] * n"), other_size),
        (along_i("a, x", "x[i] = a[i]"), turned_round),
        (along_i("a, x", "x[i] = a[i] * 0.0"), other_zero),
        (along_i("a, x", "x[i] = a[i]"), without_loop),
        (along_i("a, x", "x[i] = a[i]"), loop_twice),
        (along_i("a, x", "x[i] = a[i]"), loop_of_a_thread),
        (
            lambda: lk.make_kernel(
                ["{ [i]: 0 <= i < 8 }", "{ [k]: 0 <= k < 8 }"],
                "<> t[k] = a[k] {id=fill}\nx[i] = t[i]",
                dtypes={"a, x": "float32"},
            ),
            move_with_a_map,
        ),
    ],
)
def test_what_no_transform_does_is_refused(
    make: Callable[[], lk.Kernel], change: Callable[[lk.Kernel], Change]
) -> None:
    kernel = make()
    seen = Seen()
    with compared(seen):
        try:
            _, found = examine(kernel, change(kernel))
        except lk.LoopkitError:
            return
    assert found and not seen.differ


# }}}


@pytest.mark.parametrize("space", ["private", "global"])
def test_where_the_loops_around_let_threads_begin(space: str) -> None:
    """Thread 0 has ``i = 2``, for ``k`` begins there, and ``j = 0``."""
    kernel = lk.make_kernel(
        ["{ [k]: 2 <= k < 6 }", "{ [i]: k <= i < 10 }", "{ [j]: 0 <= j < 8 }"],
        "<> t[i] = a[i] + k\ny[k, j] = t[j] {if=k <= j}",
        dtypes={"a, y": "float32"},
    ).set_temporary_address_space("t", space)
    axis = "g.0" if space == "global" else "l.0"
    with pytest.raises(lk.IllegalTransformError, match="t\\["):
        kernel.tag_inames({"i": axis, "j": axis})


@pytest.mark.slow
def test_short_and_whole_agree_on_random_steps() -> None:
    for seed in range(300, 308):
        assert not compare(seed, sequences=3).differ
