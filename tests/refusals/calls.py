"""Refused calls of what is no step: of what makes kernels, joins them, and counts what they do.

Each comes with the nearest call that is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import loopkit as lk
from refusals import kernels as k
from refusals.case import Sizes
from refusals.kernels.making import make

N = ({"n": 1}, {"n": 7}, {"n": 33})
NM = ({"n": 1, "m": 1}, {"n": 5, "m": 3}, {"n": 33, "m": 18})


@dataclass(frozen=True)
class Call:
    """A call of ``function`` that is refused with ``error``, and the nearest that is taken.

    ``sizes``: what is taken gives a kernel, which is right for these. ``of``: the schedules do
    not fit, and the witness is two instances of this array.
    """

    name: str
    function: str
    refused: Callable[[], Any]
    error: type[lk.LoopkitError]
    taken: Callable[[], Any]
    sizes: tuple[Sizes, ...] = ()
    of: str | None = None


def on_threads(knl: lk.Kernel) -> lk.Kernel:
    return knl.split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")


def doubled() -> lk.Kernel:
    return make("{ [i]: 0 <= i < n }", "b[i] = 2*a[i] {id=double}", "n >= 1", "a, b")


def mirrored() -> lk.Kernel:
    return make("{ [i]: 0 <= i < n }", "c[i] = b[n - 1 - i] {id=mirror}", "n >= 1", "b, c")


def in_place() -> lk.Kernel:
    """A result that all problems of a batch would share, through a copy in shared memory."""
    knl = make(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        "<> t = a[i, j] {id=load}\nb[j, i] = t {id=store}",
        "n >= 1",
        "a, b",
    )
    return knl.tag_inames("i: g.0, j: l.0")


def transposed() -> lk.Kernel:
    """A tile whose columns lie in one bank."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[j, i] = a[i, j]",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("i", 32, outer_tag="g.1").split_iname("j", 32, outer_tag="g.0")
    knl = knl.tag_inames("i_inner: l.0, j_inner: l.1")
    return knl.add_prefetch("a", "i_inner, j_inner", default_tag="l.auto")


def column() -> Any:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "[i]: b[i, j] = twice([i]: a[i, j])",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
    )


def function(name: str = "twice", text: str = "y[i] = 2*x[i]", data: Any = "x") -> Any:
    return lk.make_function("{ [i]: 0 <= i < n }", text, [data, ...], name=name)


def loops_of(inames: str) -> Any:
    return lk.get_kennedy_unweighted_fusion_candidates(k.two_row_sums(), inames)


def own(**given: Any) -> Any:
    return lk.register_callable("own", {"x": "float32"}, "float32", body="return 2.0f*x;", **given)


CALLS = (
    # Kernels are made.
    Call(
        "an operand without a name",
        "make_einsum",
        lambda: lk.make_einsum("ij,jk->ik", "a"),
        lk.InvalidArgumentError,
        lambda: lk.make_einsum("ij,jk->ik", "a, b", dtypes={"a, b, out": "float32"}),
        ({"Ni": 1, "Nj": 1, "Nk": 1}, {"Ni": 5, "Nj": 4, "Nk": 7}),
    ),
    Call(
        "axes that are left open",
        "make_einsum",
        lambda: lk.make_einsum("...ij,j", "a, x"),
        lk.InvalidArgumentError,
        lambda: lk.make_einsum("bij,j->bi", "a, x", dtypes={"a, x, out": "float32"}),
        ({"Nb": 1, "Ni": 1, "Nj": 1}, {"Nb": 2, "Ni": 5, "Nj": 7}),
    ),
    Call(
        "an axis of the result that no operand has",
        "make_einsum",
        lambda: lk.make_einsum("ij,j->ik", "a, x"),
        lk.InvalidArgumentError,
        lambda: lk.make_einsum("ij,j->i", "a, x", dtypes={"a, x, out": "float32"}),
        ({"Ni": 1, "Nj": 1}, {"Ni": 5, "Nj": 7}),
    ),
    Call(
        "one name for arrays of other ranks",
        "make_einsum",
        lambda: lk.make_einsum("ij,j->i", "a, a"),
        lk.InvalidArgumentError,
        lambda: lk.make_einsum("ij,jk->ik", "a, a", dtypes={"a, out": "float32"}),
        ({"Ni": 1}, {"Ni": 7}),
    ),
    Call(
        "a function with a name that code needs",
        "make_function",
        lambda: function("sqrt"),
        lk.InvalidArgumentError,
        lambda: function("root"),
    ),
    Call(
        "a function that reads behind the end of what it is given",
        "make_function",
        lambda: function(text="y[i] = 2*x[i + 1]", data=lk.GlobalArg("x", shape="n")),
        lk.OutOfBoundsError,
        lambda: function(text="y[i] = 2*x[i + 1]", data=lk.GlobalArg("x", shape="n + 1")),
    ),
    Call(
        "a text whose function is not there",
        "merge",
        lambda: lk.merge([column(), function("thrice")]),
        lk.ParseError,
        lambda: lk.merge([column(), function("twice")]),
        NM,
    ),
    Call(
        "functions, and no text that calls them",
        "merge",
        lambda: lk.merge([function()]),
        lk.InvalidArgumentError,
        lambda: lk.merge([function(), column()]),
        NM,
    ),
    Call(
        "a kernel that is made already",
        "merge",
        lambda: lk.merge([doubled(), function()]),
        lk.InvalidArgumentError,
        lambda: lk.fuse_kernels([doubled(), mirrored()]),
        N,
    ),
    Call(
        "a function that nobody calls",
        "merge",
        lambda: lk.merge([column(), function(), function("thrice")]),
        lk.InvalidArgumentError,
        lambda: lk.merge([column(), function()]),
        NM,
    ),
    Call(
        "a function that the language has",
        "register_callable",
        lambda: lk.register_callable("exp", {"x": "float32"}, "float32", body="return x;"),
        lk.InvalidArgumentError,
        own,
    ),
    Call(
        "a function that is not what it is said to be",
        "register_callable",
        lambda: own(meaning="2*x + 1"),
        lk.InvalidArgumentError,
        lambda: own(meaning="2*x"),
    ),
    Call(
        "a function whose calls are not all alike",
        "register_callable",
        lambda: own(pure=False),
        lk.InvalidArgumentError,
        lambda: own(pure=True),
    ),
    Call(
        "a reduction that is no function",
        "register_reduction",
        lambda: lk.register_reduction("times", 1, "a*b"),  # type: ignore[arg-type]
        lk.InvalidArgumentError,
        lambda: lk.register_reduction("times", 1, lambda a, b: a * b),
    ),
    # Kernels are joined and multiplied.
    Call(
        "schedules of which one reads what other blocks of the other write",
        "fuse_kernels",
        lambda: lk.fuse_kernels([on_threads(doubled()), on_threads(mirrored())]),
        lk.RaceError,
        lambda: lk.fuse_kernels(
            [on_threads(doubled()), on_threads(mirrored())], separate_launches=True
        ),
        N,
        of="b",
    ),
    Call(
        "a flow of data in a circle",
        "fuse_kernels",
        lambda: lk.fuse_kernels(
            [doubled(), mirrored().rename_argument("c", "a")], data_flow=[("b", 0, 1), ("a", 1, 0)]
        ),
        lk.InvalidArgumentError,
        lambda: lk.fuse_kernels([mirrored(), doubled()], data_flow=[("b", 1, 0)]),
        N,
    ),
    Call(
        "a number in one kernel that is an array in the other",
        "fuse_kernels",
        lambda: lk.fuse_kernels(
            [doubled(), make("{ [i]: 0 <= i < n }", "c[i] = b", "n >= 1", "b, c")]
        ),
        lk.InvalidArgumentError,
        lambda: lk.fuse_kernels(
            [
                doubled(),
                make("{ [i]: 0 <= i < n }", "c[i] = b", "n >= 1", "b, c").rename_argument("b", "s"),
            ]
        ),
    ),
    Call(
        "a suffix for one of two kernels",
        "fuse_kernels",
        lambda: lk.fuse_kernels([doubled(), mirrored()], suffixes=["_first"]),
        lk.InvalidArgumentError,
        lambda: lk.fuse_kernels([doubled(), mirrored()], suffixes=["_first", ""]),
        N,
    ),
    Call(
        "problems of other sizes",
        "to_batched",
        lambda: lk.to_batched(doubled(), 3, "n, a, b"),
        lk.InvalidArgumentError,
        lambda: lk.to_batched(doubled(), 3, "a, b"),
        N,
    ),
    Call(
        "problems of which one overwrites what the others read",
        "to_batched",
        lambda: lk.to_batched(in_place(), "nb", "a").tag_inames("ibatch: g.1"),
        lk.RaceError,
        lambda: lk.to_batched(in_place(), "nb", "a, b").tag_inames("ibatch: g.1"),
        ({"n": 1, "nb": 1}, {"n": 5, "nb": 3}),
        of="b",
    ),
    Call(
        "one more axis for strides of an array's own",
        "to_batched",
        lambda: lk.to_batched(doubled().tag_array_axes("b", "stride:2"), 3, "a, b"),
        lk.InvalidArgumentError,
        lambda: lk.to_batched(doubled(), 3, "a, b").tag_array_axes("b", "stride:2*n, stride:2"),
    ),
    # Padding and counts.
    Call(
        "steps whose length is not known",
        "find_padding_multiple",
        lambda: lk.find_padding_multiple(k.row_dots(), "a", 0, 128),
        lk.InvalidArgumentError,
        lambda: lk.find_padding_multiple(k.row_dots(), "a", 1, 128),
    ),
    Call(
        "a share below zero",
        "find_padding_multiple",
        lambda: lk.find_padding_multiple(k.row_dots(), "a", 1, 128, -0.1),
        lk.InvalidArgumentError,
        lambda: lk.find_padding_multiple(k.row_dots(), "a", 1, 128, 0),
    ),
    Call(
        "conflicts of a launch without sizes",
        "add_padding_to_avoid_bank_conflicts",
        lambda: lk.add_padding_to_avoid_bank_conflicts(transposed()),
        lk.InvalidArgumentError,
        lambda: lk.add_padding_to_avoid_bank_conflicts(transposed(), n=64, m=64),
        ({"n": 1, "m": 1}, {"n": 40, "m": 33}),
    ),
    Call(
        "operations of no statement",
        "get_op_map",
        lambda: lk.get_op_map(k.row_dots(), within="id:nobody"),
        lk.IllegalTransformError,
        lambda: lk.get_op_map(k.row_dots(), within="id:s_update"),
    ),
    Call(
        "warps of no size",
        "get_mem_access_map",
        lambda: lk.get_mem_access_map(k.row_dots(), subgroup_size="half"),
        lk.InvalidArgumentError,
        lambda: lk.get_mem_access_map(k.row_dots(), subgroup_size="guess"),
    ),
    Call(
        "barriers of a kernel without types",
        "get_synchronization_map",
        lambda: lk.get_synchronization_map(lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i]")),
        lk.TypeInferenceError,
        lambda: lk.get_synchronization_map(doubled()),
    ),
    Call(
        "loops inside of each other",
        "get_kennedy_unweighted_fusion_candidates",
        lambda: loops_of("i, j"),
        lk.InvalidArgumentError,
        lambda: loops_of("i"),
    ),
    # Steps and texts are compared, repeated and called otherwise.
    Call(
        "a step on an iname that the other kernel has not",
        "replay",
        lambda: lk.replay(doubled(), k.row_dots().split_iname("j", 4).history),
        lk.UnknownNameError,
        lambda: lk.replay(mirrored(), on_threads(doubled()).history),
        N,
    ),
    Call(
        "a memory that no machine has",
        "set_temporary_scope",
        lambda: lk.set_temporary_scope(k.scalar(), "t", "globl"),
        lk.UnknownNameError,
        lambda: lk.set_temporary_scope(k.scalar(), "t", "global"),
        N,
    ),
    Call(
        "loops in the other order against (1, -1)",
        "set_loop_priority",
        lambda: lk.set_loop_priority(k.wave(), "j, i"),
        lk.IllegalTransformError,
        lambda: lk.set_loop_priority(k.row_products(), "j, i"),
        N,
        of="a",
    ),
    Call(
        "kernels with other arguments",
        "verify",
        lambda: lk.verify(doubled(), mirrored()),
        lk.InvalidArgumentError,
        lambda: lk.verify(doubled(), on_threads(doubled())),
    ),
    Call(
        "results without sizes",
        "auto_test_vs_ref",
        lambda: lk.auto_test_vs_ref(doubled(), on_threads(doubled())),
        lk.InvalidArgumentError,
        lambda: lk.auto_test_vs_ref(doubled(), on_threads(doubled()), parameters={"n": 7}),
    ),
    Call(
        "kernels without names",
        "compare",
        lambda: lk.compare([doubled(), doubled()], n=9),  # type: ignore[arg-type]
        lk.InvalidArgumentError,
        lambda: lk.compare(
            {"plain": doubled(), "again": on_threads(doubled())}, executor="host", seconds=0.01, n=9
        ),
    ),
    Call(
        "a launch without sizes",
        "measure",
        lambda: lk.measure(doubled()),
        lk.InvalidArgumentError,
        lambda: lk.measure(doubled(), n=9, executor="host", seconds=0.01),
    ),
    Call(
        "a kernel that is no schedule to explore",
        "explore",
        lambda: lk.explore(doubled()),  # type: ignore[arg-type]
        lk.InvalidArgumentError,
        lambda: lk.explore(lambda tile: doubled().split_iname("i", tile), tile=[8, 16]),
    ),
    Call(
        "the code of no kernel",
        "generate_code_v2",
        lambda: lk.generate_code_v2(column()),
        lk.InvalidArgumentError,
        lambda: lk.generate_code_v2(doubled()),
    ),
)
"""All of them; what is refused and what is taken are as near as they can be."""
