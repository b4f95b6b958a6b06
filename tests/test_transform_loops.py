"""Loop transforms: what becomes of trees, domains, statements and temporaries."""

from __future__ import annotations

import pymbolic.primitives as prim
import pytest
from loop_instances import all_sizes, check_change, executed, results

import loopkit.transforms as tr
from loopkit import _sets
from loopkit._errors import LoopkitError
from loopkit._expression import to_text
from loopkit._kernel import Kernel
from loopkit._make import make_kernel
from loopkit._transform import replay
from loopkit._tree import Loop, Tree


def outline(kernel: Kernel) -> str:
    """Loops and statements, indented."""
    lines: list[str] = []

    def visit(nodes: Tree, depth: int) -> None:
        for node in nodes:
            if isinstance(node, Loop):
                lines.append("  " * depth + node.iname)
                visit(node.body, depth + 1)
            else:
                s = kernel.statement_by_id[node]
                condition = "".join(f" if {to_text(p)}" for p in s.predicates)
                operator = "+=" if s.operation else "="
                text = f"{to_text(s.lhs)} {operator} {to_text(s.rhs)}{condition}"
                lines.append("  " * depth + text)

    visit(kernel.tree, 0)
    return "\n".join(lines)


def text(block: str) -> str:
    """A block of lines without the indentation that they share."""
    lines = [line for line in block.split("\n") if line.strip()]
    indent = min(len(line) - len(line.lstrip()) for line in lines)
    return "\n".join(line[indent:] for line in lines)


@pytest.fixture(scope="module")
def product() -> Kernel:
    return make_kernel(
        "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
        "c[i, j] = sum(k, a[i, k] * b[k, j])",
        dtypes={"a, b, c": "float32"},
        assumptions="n, m, l >= 1",
    )


@pytest.fixture(scope="module")
def scalar() -> Kernel:
    return make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        """
        for i
            <> t = x[i] * 2 {id=load}
            for j
                y[i, j] = t + x[j] {id=inner}
            end
            z[i] = t {id=last}
        end
        """,
        dtypes={"x, y, z": "float32"},
        assumptions="n, m >= 1",
    )


@pytest.fixture(scope="module")
def triangle() -> Kernel:
    return make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "c[i, j] = a[i] + a[j] {id=s}",
        dtypes={"a, c": "float32"},
        assumptions="n >= 1",
    )


def error_of(function: object, *args: object, **kwargs: object) -> str:
    with pytest.raises(LoopkitError) as caught:
        function(*args, **kwargs)  # type: ignore[operator]
    return f"{type(caught.value).__name__}: {caught.value}"


# {{{ split


def test_split(product: Kernel) -> None:
    new = product.split_iname("k", 16)
    assert outline(new) == text(
        """
        i
          j
            acc = 0
            k_outer
              k_inner
                acc += a[i, 16*k_outer + k_inner]*b[16*k_outer + k_inner, j]
            c[i, j] = acc
        """
    )
    assert new.domains[2].inames == ("k_outer", "k_inner")
    assert "k" not in new.all_names
    for sizes in all_sizes(["n", "m", "l"], [1, 3]):
        check_change(tr.split_iname, product, "k", 2, sizes=sizes)


def test_split_names_and_tags(product: Kernel) -> None:
    new = product.split_iname(
        "i", 8, outer_iname="block", inner_iname="lane", outer_tag="g.0", inner_tag="l.0"
    )
    assert [(i, str(t)) for i, t in new.tags] == [("block", "g.0"), ("lane", "l.0")]
    assert outline(new).split("\n")[:2] == ["j", "  acc = 0"]
    again = product.split_iname("i", 8).rename_iname("i_outer", "i").split_iname("i", 2)
    assert {"i_outer", "i_inner_0"} <= set(again.all_inames)


def test_split_of_a_parent_reaches_its_children(triangle: Kernel) -> None:
    new = triangle.split_iname("i", 4)
    assert new.domains[1].parameters == {"i_outer", "i_inner"}
    for n in (1, 3, 6):
        check_change(tr.split_iname, triangle, "i", 4, sizes={"n": n})
        check_change(tr.split_iname, triangle, "j", 4, sizes={"n": n})


def test_split_within(scalar: Kernel) -> None:
    new = (
        scalar.fix_parameters(n=6)
        .privatize_temporaries_with_inames("i", "t")
        .split_iname("i", 4, within="id:last")
    )
    assert outline(new) == text(
        """
        i
          t[i] = x[i]*2
          j
            y[i, j] = t[i] + x[j]
        i_outer
          i_inner
            z[4*i_outer + i_inner] = t[4*i_outer + i_inner]
        """
    )


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (
            ("ii", 4),
            {},
            (
                "UnknownNameError: split_iname(split_iname='ii', "
                "inner_length=4): there is no iname "
                "'ii'\ndid you mean 'i'?"
            ),
        ),
        (
            ("i", 0),
            {},
            (
                "InvalidArgumentError: split_iname(split_iname='i', inner_length=0): inner_length "
                "must be at least 1, not 0"
            ),
        ),
        (
            ("i", "n"),
            {},
            (
                "InvalidArgumentError: split_iname(split_iname='i', "
                "inner_length='n'): inner_length "
                "must be an integer, not 'n'\nsizes are not constants: fix_parameters makes them so"
            ),
        ),
        (
            ("i", 4),
            {"outer_iname": "a"},
            (
                "InvalidArgumentError: split_iname(split_iname='i', "
                "inner_length=4, outer_iname='a'): "
                "the name 'a' is taken\n'a_0' is free"
            ),
        ),
        (
            ("i", 4),
            {"slabs": 1},
            (
                "InvalidArgumentError: split_iname(split_iname='i', "
                "inner_length=4, slabs=1): slabs "
                "are two counts, of iterations at the start and at the end, not 1\n"
                "slabs=(0, 1) separates the last iteration"
            ),
        ),
        (
            ("i", 4),
            {"inner_tag": "l.7"},
            (
                "UnknownNameError: split_iname(split_iname='i', inner_length=4, inner_tag='l.7'): "
                "there is no tag 'l.7'\ndid you mean 'l.2' or 'l.1' or 'l.0'?"
            ),
        ),
    ],
)
def test_split_errors(
    product: Kernel, args: tuple[object, ...], kwargs: dict[str, object], message: str
) -> None:
    assert error_of(product.split_iname, *args, **kwargs) == message


def test_split_of_a_tagged_iname(product: Kernel) -> None:
    tagged = product.tag_inames("i:l.0")
    assert error_of(tagged.split_iname, "i", 4) == (
        "IllegalTransformError: split_iname(split_iname='i', inner_length=4): cannot split iname "
        "'i': it is tagged l.0\nuntag it first: untag_inames('i')"
    )


def test_split_within_needs_private_temporaries(scalar: Kernel) -> None:
    assert error_of(scalar.split_iname, "i", 4, within="id:last") == (
        "IllegalTransformError: split_iname(split_iname='i', inner_length=4, within='id:last'): "
        "temporary 't' would have to hold one value for each 'i': statement 'load' writes it and "
        "statement 'last' uses it, and they would no longer be in one loop over 'i'\n"
        'first give it an axis: privatize_temporaries_with_inames("i", "t")'
    )


# }}}

# {{{ slabs


def test_slabs_of_a_loop(product: Kernel) -> None:
    new = product.split_iname("k", 16, slabs=(0, 1))
    assert outline(new) == text(
        """
        i
          j
            acc = 0
            k_outer
              k_inner
                acc += a[i, 16*k_outer + k_inner]*b[16*k_outer + k_inner, j]
            k_outer_last
              k_inner_last
                acc += a[i, 16*k_outer_last + k_inner_last]*b[16*k_outer_last + k_inner_last, j]
            c[i, j] = acc
        """
    )
    full = _sets.project_out(new.domain_of(["k_outer", "k_inner"]), ["k_inner"])
    tile = _sets.condition_set(
        prim.LogicalAnd(
            (
                prim.Comparison(0, "<=", prim.Variable("k_inner")),
                prim.Comparison(prim.Variable("k_inner"), "<", 16),
            )
        )
    )
    assert (full & tile).is_subset(new.domain_of(["k_outer", "k_inner"]))
    for sizes in all_sizes(["n", "m", "l"], [1, 2, 5]):
        for slabs in ((0, 1), (1, 0), (1, 1), (2, 1)):
            check_change(tr.split_iname, product, "k", 2, slabs=slabs, sizes=sizes)


def test_slabs_of_an_outer_loop_copy_accumulators(product: Kernel) -> None:
    new = product.split_iname("i", 4, slabs=(1, 1))
    assert {t.name for t in new.temporaries} == {"acc", "acc_first", "acc_last"}
    assert [node.iname for node in new.tree if isinstance(node, Loop)] == [
        "i_outer_first",
        "i_outer",
        "i_outer_last",
    ]
    assert results(new, {"n": 9, "m": 2, "l": 2}) == results(product, {"n": 9, "m": 2, "l": 2})


def test_slabs_of_blocks_are_predicates(product: Kernel) -> None:
    new = product.split_iname("i", 16, outer_tag="g.0", inner_tag="l.0", slabs=(0, 1))
    assert outline(new) == text(
        """
        j
          acc = 0 if 16*i_outer + 16 < n
          k
            acc += a[16*i_outer + i_inner, k]*b[k, j] if 16*i_outer + 16 < n
          c[16*i_outer + i_inner, j] = acc if 16*i_outer + 16 < n
        j
          acc = 0 if n <= 16*i_outer + 16
          k
            acc += a[16*i_outer + i_inner, k]*b[k, j] if n <= 16*i_outer + 16
          c[16*i_outer + i_inner, j] = acc if n <= 16*i_outer + 16
        """
    )
    for n in (1, 4, 5, 8, 9):
        check_change(
            tr.split_iname,
            product,
            "i",
            4,
            outer_tag="g.0",
            inner_tag="l.0",
            slabs=(0, 1),
            sizes={"n": n, "m": 2, "l": 2},
        )


def test_peel(triangle: Kernel) -> None:
    new = triangle.peel_iname("i", last=1)
    assert outline(new) == text(
        """
        i
          j
            c[i, j] = a[i] + a[j]
        i_last
          j_last
            c[i_last, j_last] = a[i_last] + a[j_last]
        """
    )
    for n in (1, 2, 4):
        check_change(tr.peel_iname, triangle, "i", first=1, last=1, sizes={"n": n})
        check_change(tr.peel_iname, triangle, "j", first=1, last=1, sizes={"n": n})
    assert error_of(triangle.peel_iname, "i") == (
        "IllegalTransformError: peel_iname(iname='i'): no iteration of 'i' is to be peeled\n"
        "give first= or last="
    )


def test_peeling_all(product: Kernel) -> None:
    short = product.fix_parameters(n=3)
    assert error_of(short.peel_iname, "i", 2, 2) == (
        "IllegalTransformError: peel_iname(iname='i', first=2, last=2): nothing of loop 'i' is "
        "left between its first 2 and last 2 iterations\npeel fewer iterations"
    )


# }}}

# {{{ chunk


@pytest.mark.parametrize(("length", "chunks"), [(10, 3), (9, 3), (2, 3), (7, 1), (8, 5)])
def test_chunk(product: Kernel, length: int, chunks: int) -> None:
    fixed = product.fix_parameters(n=length)
    new = check_change(tr.chunk_iname, fixed, "i", chunks, sizes={"m": 1, "l": 1})
    sizes: dict[int, int] = {}
    for statement, point in executed(new, {"m": 1, "l": 1}):
        if statement.kind == "init":
            sizes[point["i_outer"]] = sizes.get(point["i_outer"], 0) + 1
    found = [sizes.get(chunk, 0) for chunk in range(chunks)]
    assert found == sorted(found, reverse=True)
    assert sum(found) == length
    assert max(found) - min(found) <= 1
    assert len(new.domains[0].set.get_basic_sets()) == 1


def test_chunk_of_a_parametric_loop(product: Kernel) -> None:
    assert error_of(product.chunk_iname, "i", 3) == (
        "IllegalTransformError: chunk_iname(split_iname='i', num_chunks=3): loop 'i' cannot be cut "
        "into a number of chunks: its length is not a constant, and the start of a chunk would be "
        "a product of two unknowns\nsplit_iname('i', length) takes any loop; "
        "fix_parameters(n=...) makes it constant"
    )


def test_chunk_of_a_strided_loop() -> None:
    kernel = make_kernel("{ [i]: 0 <= i < 11 and i mod 2 = 0 }", "a[i] = i", dtypes={"a": "int32"})
    check_change(tr.chunk_iname, kernel, "i", 3, sizes={})


# }}}

# {{{ join


def test_join_undoes_split(product: Kernel) -> None:
    new = product.split_iname("i", 16).join_inames(["i_outer", "i_inner"], "i")
    assert outline(new) == outline(product)
    assert new.domain_of(["i"]).is_equal(product.domain_of(["i"]))


def test_join(product: Kernel) -> None:
    fixed = product.fix_parameters(m=5)
    new = fixed.join_inames("i, j")
    assert new.domains[0].inames == ("j_and_i",)
    assert outline(new) == text(
        """
        j_and_i
          acc = 0
          k
            acc += a[j_and_i // 5, k]*b[k, j_and_i % 5]
          c[j_and_i // 5, j_and_i % 5] = acc
        """
    )
    check_change(tr.join_inames, fixed, ["i", "j"], sizes={"n": 3, "l": 2})
    check_change(tr.join_inames, fixed.fix_parameters(n=3), ["j", "i"], sizes={"l": 2})


def test_join_of_a_triangle(triangle: Kernel) -> None:
    fixed = triangle.fix_parameters(n=4)
    new = check_change(tr.join_inames, fixed, ["i", "j"], tag="l.0", sizes={})
    assert new.tree == ("s",)
    assert len(executed(new, {})) == 10


def test_join_errors(product: Kernel) -> None:
    assert error_of(product.join_inames, ["i", "j"]) == (
        "IllegalTransformError: join_inames(inames=['i', 'j']): cannot join iname 'j': it has m "
        "values, and only the first of the inames may have a length that is no constant\n"
        "put 'j' first, split it, or fix its length with fix_parameters"
    )
    assert error_of(product.fix_parameters(l=4).join_inames, "i, k") == (
        "IllegalTransformError: join_inames(inames='i, k'): cannot join i, k: statement "
        "'insn_init' is inside 'i' but not inside 'k'\nleave it out: within='not id:insn_init'"
    )
    assert error_of(product.join_inames, "i") == (
        "InvalidArgumentError: join_inames(inames='i'): joining takes two or more different inames"
    )


# }}}

# {{{ rename and duplicate


def test_rename(triangle: Kernel) -> None:
    new = triangle.tag_inames("i:l.0").rename_iname("i", "row")
    assert [(i, str(t)) for i, t in new.tags] == [("row", "l.0")]
    assert outline(new) == "j\n  c[row, j] = a[row] + a[j]"
    assert new.domains[1].parameters == {"row"}
    assert error_of(triangle.rename_iname, "i", "a") == (
        "InvalidArgumentError: rename_iname(old_iname='i', new_iname='a'): the name 'a' is taken\n"
        "'a_0' is free"
    )


def test_rename_to_an_existing_iname() -> None:
    kernel = make_kernel(
        ["{ [i, j]: 0 <= i < n and 0 <= j < n }", "{ [k]: 0 <= k <= n }"],
        """
        a[i] = i {id=a}
        b[j] = j {id=b}
        c[k] = k {id=c}
        """,
        dtypes={"a, b, c": "int32"},
    )
    new = kernel.rename_iname("j", "i", existing_ok=True)
    assert outline(new) == "i\n  a[i] = i\ni\n  b[i] = i\nk\n  c[k] = k"
    assert "j" not in new.all_inames
    assert kernel.rename_inames("i, j", "x").all_inames == ("x", "k")
    assert error_of(kernel.rename_iname, "k", "i", existing_ok=True) == (
        "IllegalTransformError: rename_iname(old_iname='k', new_iname='i', existing_ok=True): 'k' "
        "cannot be renamed to 'i': around statement 'c' they do not have the same values\n"
        "duplicate_inames makes a new iname of the same values"
    )
    assert error_of(kernel.rename_iname, "j", "i") == (
        "InvalidArgumentError: rename_iname(old_iname='j', new_iname='i'): there is an iname 'i' "
        "already\nexisting_ok=True uses it, if it has the same values"
    )


def test_duplicate(product: Kernel) -> None:
    new = product.duplicate_inames("i", "writes:c")
    assert outline(new) == text(
        """
        i
          j
            acc[i, j] = 0
            k
              acc[i, j] += a[i, k]*b[k, j]
        i_0
          j
            c[i_0, j] = acc[i_0, j]
        """
    )
    [accumulator] = new.temporaries
    assert [to_text(s) for s in accumulator.shape] == ["n", "m"]
    tagged = product.duplicate_inames("i", "writes:c", suffix="_store", tags={"i": "l.0"})
    assert tagged.iname_tags.keys() == {"i_store"}


def test_duplicate_of_a_parent(triangle: Kernel) -> None:
    assert error_of(triangle.duplicate_inames, "i", "id:s") == (
        "IllegalTransformError: duplicate_inames(inames='i', within='id:s'): the bounds of 'j' "
        "around statement 's' depend on 'i': a duplicate of 'i' needs one of 'j' beside it\n"
        "duplicate both: duplicate_inames(['i', 'j'], ...)"
    )
    check_change(tr.duplicate_inames, triangle, ["i", "j"], "id:s", sizes={"n": 4})


def test_remove_unused_inames(triangle: Kernel) -> None:
    new = triangle.duplicate_inames(["i", "j"], "id:s").remove_unused_inames()
    assert new.all_inames == ("i_0", "j_0")
    assert error_of(triangle.remove_unused_inames) == (
        "IllegalTransformError: remove_unused_inames(): every iname is used by some statement"
    )
    assert error_of(triangle.remove_unused_inames, "i") == (
        "IllegalTransformError: remove_unused_inames(inames='i'): iname 'i' is used: statement "
        "'s' is inside it"
    )


# }}}

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
        "k:l.0",
        (
            "iname 'k' cannot be tagged l.0: statement 'insn_update' "
            "reduces over it, and the threads "
            "would all update one accumulator 'acc'\n"
            "leave 'k' a loop (it may be tagged unr), and tag 'i' or 'j' l.0 instead"
        ),
    ),
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
    expected = f"IllegalTransformError: tag_inames(iname_to_tag='{tags}'): {message}"
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
    assert error_of(kernel.tag_inames, "i:g.0, j:g.0") == (
        "IllegalTransformError: tag_inames(iname_to_tag='i:g.0, j:g.0'): inames 'j' and 'i' cannot "
        "both be tagged g.0: 'j' has m values and 'i' has n\n"
        "split or pad the longer one, or say by assume(...) that they are equal"
    )
    kernel.assume("n = m").tag_inames("i:g.0, j:g.0")
    tiled = kernel.split_iname("i", 16).split_iname("j", 16).split_iname("j_inner", 8)
    tiled.split_iname("i_inner", 8).tag_inames("i_inner_inner:l.0, j_inner_inner:l.0")
    assert "'j_inner_inner' has 8 values and 'i_inner' has 16" in error_of(
        tiled.tag_inames, "i_inner:l.0, j_inner_inner:l.0"
    )


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
    assert error_of(scalar.prioritize_loops, "j, i") == (
        "IllegalTransformError: prioritize_loops(loop_priority='j, i'): temporary 't' would have "
        "to hold one value for each 'i': statement 'load' writes it and statement 'inner' uses "
        "it, and they would no longer be in one loop over 'i'\n"
        'first give it an axis: privatize_temporaries_with_inames("i", "t")'
    )
    scalar.fix_parameters(n=4).privatize_temporaries_with_inames("i", "t").prioritize_loops("j, i")
    assert error_of(triangle.prioritize_loops, "j, i") == (
        "IllegalTransformError: prioritize_loops(loop_priority='j, i'): loop 'j' cannot stand "
        "outside of loop 'i': its bounds depend on 'i'\nkeep 'i' before 'j'"
    )
    assert "'i' is named" not in error_of(product.prioritize_loops, "i")
    assert "an iname is named twice in i, i" in error_of(product.prioritize_loops, "i, i")
    assert "there is no iname 'q'" in error_of(product.prioritize_loops, "i, q")


# }}}

# {{{ maps


@pytest.fixture(scope="module")
def stencil() -> Kernel:
    return make_kernel(
        "{ [t, i]: 0 <= t < steps and 1 <= i < n }",
        """
        for t
            for i
                u[t + 1, i] = u[t, i] + u[t, i - 1] {id=u}
            end
            v[t] = 0 {id=v}
        end
        """,
        dtypes={"u, v": "float32"},
        assumptions="steps >= 1 and n >= 2",
    )


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
            "cannot map i: instance u[i=1] has several images, (1) and (2): it would run twice "
            "(for steps=1, n=2)\n"
            "each old instance must have exactly one new one, and the other way round"
        ),
    ),
    (
        "{ [i] -> [x]: 2x = i }",
        (
            "cannot map i: instance u[i=1] has no image, so that it would never run (for steps=1, "
            "n=2)\neach old instance must have exactly one new one, and the other way round"
        ),
    ),
    (
        "{ [t, i] -> [w, i]: w = t + i }",
        (
            "cannot map t, i: statement 'v' is inside 't' but not inside 'i'\n"
            "leave it out: within='not id:v'"
        ),
    ),
    ("{ [i] -> [i] }", "the map leaves every iname as it is"),
]


@pytest.mark.parametrize(("relation", "message"), MAP_ERRORS)
def test_map_errors(stencil: Kernel, relation: str, message: str) -> None:
    with pytest.raises(LoopkitError) as caught:
        stencil.map_domain(relation)
    assert (
        caught.value.why + (f"\n{caught.value.instead}" if caught.value.instead else "") == message
    )


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
