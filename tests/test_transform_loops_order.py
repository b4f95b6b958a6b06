"""Tags, the order of loops, maps of domains, history."""

from __future__ import annotations

import islpy as isl
import numpy as np
import pytest
from loop_instances import check_change, results
from loop_kernels import (
    error_of,
    make_product,
    make_scalar,
    make_stencil,
    make_triangle,
    outline,
    text,
)
from seams import Domain, to_text

import loopkit as lk
import loopkit.transforms as tr
from loopkit import Kernel, LoopkitError, LoopkitWarning, make_kernel, replay


@pytest.fixture(scope="module")
def product() -> Kernel:
    return make_product()


@pytest.fixture(scope="module")
def scalar() -> Kernel:
    return make_scalar()


@pytest.fixture(scope="module")
def triangle() -> Kernel:
    return make_triangle()


@pytest.fixture(scope="module")
def stencil() -> Kernel:
    return make_stencil()


# {{{ tags


def test_tag_and_untag(product: Kernel) -> None:
    tagged = product.tag_inames("i:g.0, j:l.0")
    assert outline(tagged).split("\n")[0] == "acc = 0"
    assert product.tag_inames({"i": "g.0", "j": "l.0"}) == tagged
    assert product.tag_inames([("i", "g.0"), ("j", "l.0")]) == tagged
    assert outline(tagged.untag_inames("i, j")) == outline(product)
    assert outline(tagged.untag_inames("j")).split("\n")[0] == "j"
    assert tagged.untag_inames("*", "g.0").iname_tags.keys() == {"j"}
    assert outline(tagged.tag_inames("i:for", force=True)).split("\n")[0] == "i"


def test_untagged_loops_stand_inside_their_parents(triangle: Kernel) -> None:
    tagged = triangle.tag_inames("i:g.0, j:l.0")
    assert outline(tagged.untag_inames("j")).split("\n")[0] == "j"
    assert outline(tagged.untag_inames("j").untag_inames("i")) == outline(triangle)


def test_automatic_axis(product: Kernel) -> None:
    new = product.tag_inames("i:l.0").tag_inames("j:l.auto")
    assert str(new.iname_tags["j"]) == "l.1"


TAG_ERRORS = [
    (
        "i:l.0, j:l.0",
        (
            "inames 'j' and 'i' cannot both be tagged l.0: statement 'insn_init' is inside both\n"
            "use another axis, or join them: join_inames(['j', 'i'])"
        ),
    ),
    (
        "j:unr",
        (
            "iname 'j' cannot be tagged unr: it has m iterations, and only a constant number of "
            "copies can be written out\nsplit it: split_iname('j', 4, inner_tag='unr')"
        ),
    ),
    (
        "j:ilp",
        (
            "iname 'j' cannot be tagged ilp: it has m iterations, and only a constant number of "
            "copies can be written out\nsplit it: split_iname('j', 4, inner_tag='ilp')"
        ),
    ),
]


@pytest.mark.parametrize(("tags", "message"), TAG_ERRORS)
def test_tag_errors(product: Kernel, tags: str, message: str) -> None:
    expected = f"IllegalTransformError: tag_inames('{tags}'): {message}"
    assert error_of(product.tag_inames, tags) == expected


def test_unknown_names_in_tags(product: Kernel) -> None:
    assert "there is no tag 'l.5'" in error_of(product.tag_inames, "i:l.5")
    assert "there is no iname 'ii'\ndid you mean 'i'?" in error_of(product.tag_inames, "ii:l.0")
    assert product.tag_inames("ii:l.0, i:l.0", ignore_nonexistent=True).iname_tags.keys() == {"i"}
    assert "'i' names no tag" in error_of(product.tag_inames, "i")
    again = product.tag_inames("i:l.0")
    assert "iname 'i' is already tagged l.0\nforce=True" in error_of(again.tag_inames, "i:l.1")
    assert "none of these inames has such a tag" in error_of(product.untag_inames, "i")


def test_different_extents_on_one_axis() -> None:
    kernel = make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "a[i] = 1 {id=a}\nb[j] = 2 {id=b}",
        dtypes={"a, b": "float32"},
        assumptions="n, m >= 1",
    )
    assert kernel.tag_inames("i:g.0, j:g.0").launch_config(n=3, m=7).grid == (7, 1, 1)
    equal = kernel.assume("n = m").tag_inames("i:g.0, j:g.0")
    assert "if" not in equal.cuda().split("__global__")[1]
    tiled = kernel.split_iname("i", 16).split_iname("j", 16).split_iname("j_inner", 8)
    unlike = tiled.tag_inames("i_inner:l.0, j_inner_inner:l.0")
    assert unlike.launch_config(n=3, m=7).block == (16, 1, 1)
    assert "if (j_inner_inner <= 7)" in unlike.cuda()


# }}}

# {{{ order of loops


def test_prioritize_distributes(product: Kernel) -> None:
    new = product.split_iname("k", 8).prioritize_loops("k_outer, j, k_inner")
    assert outline(new) == text(
        """
        i
          j
            acc[j] = 0
          k_outer
            j
              k_inner
                acc[j] += a[i, 8*k_outer + k_inner]*b[8*k_outer + k_inner, j]
          j
            c[i, j] = acc[j]
        """
    )
    sizes = {"n": 2, "m": 3, "l": 9}
    assert results(new, sizes) == results(product, sizes)


def test_expanded_accumulators_start_at_zero() -> None:
    kernel = make_kernel(
        "{ [i, k]: 3 <= i < 8 and 0 <= k < l }",
        "c[i] = sum(k, a[i, k])",
        dtypes={"a, c": "float32"},
        assumptions="l >= 1",
    )
    new = kernel.prioritize_loops("k, i")
    assert new.temporaries[0].shape == (5,)
    assert outline(new).split("\n")[1] == "  acc[i - 3] = 0"
    assert results(new, {"l": 3}) == results(kernel, {"l": 3})


def test_private_axes_suffice_for_tiles(product: Kernel) -> None:
    tiled = product.split_iname("i", 4, outer_tag="g.0").split_iname("k", 2)
    new = tiled.prioritize_loops("k_outer, i_inner, j")
    assert [to_text(s) for s in new.temporaries[0].shape] == ["4", "m"]


def test_prioritize_errors(product: Kernel, scalar: Kernel, triangle: Kernel) -> None:
    refusal = error_of(scalar.prioritize_loops, "j, i")
    assert "'load' (i=1) would overwrite t before 'inner' (i=0, j=0) has read it" in refusal
    scalar.fix_parameters(n=4).privatize_temporaries_with_inames("i", "t").prioritize_loops("j, i")
    assert "an iname is named twice in i, i" in error_of(product.prioritize_loops, "i, i")


def test_priorities_are_advice(product: Kernel) -> None:
    assert product.prioritize_loops("i") == product
    parallel = product.tag_inames("i: g.0")
    assert parallel.prioritize_loops("j, i") == parallel
    with pytest.warns(LoopkitWarning, match="there is no iname 'kk'\n.*k"):
        assert product.prioritize_loops("kk, j") == product
    with pytest.warns(LoopkitWarning, match="there is no iname 'q'"):
        new = product.prioritize_loops("k, q, j")
    assert new == product.prioritize_loops("k, j") != product


def test_bounds_follow_the_order(triangle: Kernel) -> None:
    new = triangle.prioritize_loops("j, i")
    assert str(new).splitlines()[-3:] == [
        "  for j in [0, n)",
        "    for i in [j, n)",
        "      c[i, j] = a[i] + a[j]",
    ]
    assert new.prove().ok
    for n in (1, 2, 5):
        check_change(tr.prioritize_loops, triangle, "j, i", sizes={"n": n})


def make_updates() -> Kernel:
    """Sums over triangles, and what depends on the outer loop alone."""
    return make_kernel(
        ["{ [k]: 0 <= k < n }", "{ [i, j]: k < i < n and k < j <= i }"],
        """
        for k
            d[k] = b[k] + 1 {id=first}
            for i, j
                c[i, j] = c[i, j] + b[k] {id=sum}
            end
        end
        """,
        dtypes={"b, c, d": "float32"},
        assumptions="n >= 1",
    )


def test_statements_beside_keep_their_iterations() -> None:
    """The sums have no iteration of the last ``k``; what stands beside them has."""
    updates = make_updates()
    new = updates.prioritize_loops("j, i, k")
    assert outline(new) == text(
        """
        k
          d[k] = b[k] + 1
        j
          i
            k_0
              c[i, j] = c[i, j] + b[k_0]
        """
    )
    assert new.prove().ok
    for n in (1, 2, 5):
        check_change(tr.prioritize_loops, updates, "j, i, k", sizes={"n": n})
        check_change(tr.prioritize_loops, updates, "i, k, j", sizes={"n": n})


def test_factors_in_another_order_are_refused_with_a_witness() -> None:
    factors = make_kernel(
        ["{ [k]: 0 <= k < n }", "{ [i]: k < i < n }", "{ [p, q]: k < p, q < n }"],
        """
        for k
            a[i, k] = a[i, k]/a[k, k] {id=column}
            a[p, q] = a[p, q] - a[p, k]*a[k, q] {id=rest, dep=column}
        end
        """,
        dtypes={"a": "float32"},
        assumptions="n >= 1",
    )
    refusal = error_of(factors.prioritize_loops, "q, k")
    assert "'column' (k=1, i=2) would read a[1, 1] before 'rest' (k=0, p=1, q=1)" in refusal
    assert factors.prioritize_loops("q, p").history[-1].verdict == "proven"


# }}}

# {{{ maps


def test_skewing(stencil: Kernel) -> None:
    new = stencil.map_domain("{ [t, i] -> [t, w]: w = t + i }")
    assert outline(new) == text(
        """
        t
          w
            u[t + 1, w - t] = u[t, w - t] + u[t, w - t - 1]
          v[t] = 0
        """
    )
    assert new.domains[0].inames == ("t",)
    wave = stencil.map_domain("{ [t, i] -> [w, i]: w = t + i }", within="id:u")
    assert outline(wave) == text(
        """
        w
          i
            u[w - i + 1, i] = u[w - i, i] + u[w - i, i - 1]
        t
          v[t] = 0
        """
    )
    for sizes in ({"steps": 3, "n": 4}, {"steps": 1, "n": 2}):
        check_change(tr.map_domain, stencil, "{ [t, i] -> [t, w]: w = t + i }", sizes=sizes)
        assert results(wave, sizes) == results(stencil, sizes)


MAPS = [
    "{ [i] -> [i']: i' = n - i }",
    "{ [i] -> [i0, i1]: i = 4*i0 + i1 and 0 <= i1 < 4 }",
    "{ [t, i] -> [t', w]: t' = -t and w = t + i }",
    "{ [t] -> [x]: x = t + 3 }",
]


@pytest.mark.parametrize("relation", MAPS)
def test_maps(stencil: Kernel, relation: str) -> None:
    check_change(tr.map_domain, stencil, relation, sizes={"steps": 3, "n": 6})


def test_diamonds(stencil: Kernel) -> None:
    relation = "{ [t, i] -> [a, b]: a = t + i and b = t - i }"
    new = check_change(tr.map_domain, stencil, relation, within="id:u", sizes={"steps": 3, "n": 5})
    assert set(new.all_inames) >= {"a", "b"}


def test_affine_map_inames(stencil: Kernel) -> None:
    new = check_change(
        tr.affine_map_inames, stencil, "i", "x", ["x = n - i"], sizes={"steps": 2, "n": 5}
    )
    assert "x" in new.all_inames
    assert "is no equation" in error_of(stencil.affine_map_inames, "i", "x", "x")
    assert "is not affine" in error_of(stencil.affine_map_inames, "i", "x", "x = i*i")
    assert "have the same image" in error_of(stencil.affine_map_inames, "i", "x", [])


MAP_ERRORS = [
    (
        "{ [t, i] -> [w]: w = t + i }",
        (
            "cannot map t, i: instances u[t=0, i=2] and u[t=1, i=1] have the same image (for "
            "steps=2, n=3)\neach old instance must have exactly one new "
            "one, and the other way round"
        ),
    ),
    (
        "{ [i] -> [x]: 0 <= x - i <= 1 }",
        (
            "cannot map i: instances u[i=1] and u[i=2] have the same image (for steps=1, n=3)\n"
            "each old instance must have exactly one new one, and the other way round"
        ),
    ),
    (
        "{ [i] -> [x]: 2x = i }",
        (
            "'u' (t=0, i=1) would not be executed\n"
            "  for example: steps = 1, n = 2\n"
            "  'u':         u[t + 1, i] = u[t, i] + u[t, i - 1]"
        ),
    ),
    (
        "{ [i] -> [x, y]: x = i and 0 <= y < 2 }",
        (
            "cannot map i: instance u[i=1] has several images\n"
            "each old instance must have exactly one new one, and the other way round"
        ),
    ),
    (
        "{ [t, i] -> [w, i]: w = t + i }",
        (
            "cannot map t, i: statement 'v' is inside 't' but not inside 'i'\n"
            "leave it out: within='not id:v'"
        ),
    ),
    ("{ [i] -> [i] }", "the map does not change any iname"),
]


@pytest.mark.parametrize(("relation", "message"), MAP_ERRORS)
def test_map_errors(stencil: Kernel, relation: str, message: str) -> None:
    with pytest.raises(LoopkitError) as caught:
        stencil.map_domain(relation)
    assert (
        caught.value.why + (f"\n{caught.value.instead}" if caught.value.instead else "") == message
    )


def test_what_the_domain_limits_is_one_to_one() -> None:
    """The map alone has several old instances for a new one, but only one is in the domain."""
    kernel = make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 4 }", "a[i, j] = i - j", dtypes={"a": "int32"}
    )
    relation = "{ [i, j] -> [w]: w = 4*i + j }"
    new = check_change(tr.map_domain, kernel, relation, sizes={"n": 3})
    assert outline(new) == "w\n  a[w // 4, w % 4] = w // 4 - w % 4"
    assert kernel.map_domain(relation).history[-1].verdict == "proven"


@pytest.mark.parametrize(
    "relation",
    [
        "{ [j] -> [k]: k = floor(j/2) }",
        "{ [i, j] -> [i, k]: k = (j - (i + c) % 2) // 2 }",
        "{ [c, i, j] -> [c, i, k]: exists h: 2*k <= j < 2*k + 2 }",
        "{ [c, i, j] -> [c, i, k]: 2*k = j - (i + c) % 2 }",
    ],
)
def test_coordinates_of_a_colour(relation: str) -> None:
    """Red and black points, one after the other: the parity of a point follows from the others."""
    sweep = "u[i, j] = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]"
    kernel = make_kernel(
        "{ [t, c, i, j]: 0 <= t < 2 and 0 <= c < 2 and 1 <= i, j < n - 1 and (i + j) % 2 = c }",
        f"for t, c\n {sweep}\n ... gbarrier\nend",
        [lk.GlobalArg("u", "int64", shape="n, n"), ...],
        assumptions="n >= 2",
    )
    new = check_change(tr.map_domain, kernel, relation, sizes={"n": 6})
    assert "u[i, 2*k + (c + i) % 2] =" in str(new)
    blocks = kernel.map_domain(relation).split_iname("i", 4, outer_tag="g.1", inner_tag="l.1")
    blocks = blocks.split_iname("k", 4, outer_tag="g.0", inner_tag="l.0")
    u = np.random.default_rng(0).integers(0, 9, (13, 13))
    expected = kernel.executor("reference")(u=u.copy())
    np.testing.assert_array_equal(blocks.executor("host", order="random")(u=u.copy()), expected)
    assert blocks.prove().ok


def test_map_witness(stencil: Kernel) -> None:
    with pytest.raises(LoopkitError) as caught:
        stencil.map_domain("{ [t, i] -> [w]: w = t + i }")
    witness = caught.value.witness  # type: ignore[attr-defined]
    assert witness.source.inames == {"t": 0, "i": 2}
    assert witness.sink.inames == {"t": 1, "i": 1}
    assert witness.parameters == {"steps": 2, "n": 3}


def test_maps_that_are_no_maps(stencil: Kernel) -> None:
    assert error_of(stencil.map_domain, "{ [i] -> [x]: x = i and }").startswith("ParseError")
    assert "there is no iname 'ii'" in error_of(stencil.map_domain, "{ [ii] -> [x]: x = ii }")
    assert "the name 'u' is taken" in error_of(stencil.map_domain, "{ [i] -> [u]: u = -i }")


# }}}

# {{{ history


def test_replay_and_script(product: Kernel) -> None:
    new = (
        product.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0", within="iname:i")
        .map_domain("{ [k] -> [k']: k' = l - 1 - k }")
        .fix_parameters(m=4)
        .assume("n mod 16 = 0")
        .tag_inames({"j": "unr"})
    )
    assert replay(product, new.history) == new
    assert new.history[2].call() == ".fix_parameters(value_dict={'m': 4})"


# }}}

# {{{ axes without bounds


def with_domain(kernel: Kernel, bounds: str) -> Kernel:
    """``kernel`` with other bounds for ``i``: creation would refuse some of these."""
    names = ", ".join(sorted({"i", *kernel.sizes, *kernel.arg_by_name}))
    domain = Domain(("i",), isl.Set(f"[{names}] -> {{ : {bounds} }}"))
    return kernel.with_(domains=(domain, *kernel.domains[1:]))


def test_axes_need_bounds(product: Kernel) -> None:
    endless = with_domain(product, "0 <= i")
    assert error_of(endless.tag_inames, "i:g.0") == (
        "IllegalTransformError: tag_inames('i:g.0'): iname 'i' cannot be tagged g.0: "
        "it has no bounds\n"
        "give its domain a lower and an upper bound that depend on sizes alone"
    )
    loaded = with_domain(product, "0 <= i < a")
    assert error_of(loaded.tag_inames, "i:l.0") == (
        "IllegalTransformError: tag_inames('i:l.0'): iname 'i' cannot be tagged l.0: "
        "its length depends on data ('a'), and the number of threads is fixed when a kernel "
        "starts\nbound it by a size as well, or split it: "
        "split_iname('i', 32, inner_tag='l.0')"
    )
    assert with_domain(product, "0 <= i < a and i < n").tag_inames("i:l.0").iname_tags


# }}}


def test_an_accumulator_with_a_cell_for_each_iteration_lives_in_three_loops() -> None:
    knl = make_kernel(
        "{ [i, j]: 0 <= i < 3 and 0 <= j < 8 }", "out[i] = sum(j, a[i, j])", dtypes={"a": "float64"}
    )
    knl = knl.privatize_temporaries_with_inames("i", only_var_names={"acc"})
    knl = knl.duplicate_inames("i", within="id:insn_init").duplicate_inames("i", within="id:insn")
    assert all(step.verdict == "proven" for step in knl.history)
    assert knl.prove().ok
    assert str(knl).count("for i") == 3
