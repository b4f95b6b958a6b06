"""Joining, renaming and duplicating inames."""

from __future__ import annotations

import pytest
from loop_instances import check_change, executed
from loop_kernels import (
    error_of,
    make_product,
    make_triangle,
    outline,
    text,
)
from seams import to_text

import loopkit.transforms as tr
from loopkit import IllegalTransformError, Kernel, make_kernel


@pytest.fixture(scope="module")
def product() -> Kernel:
    return make_product()


@pytest.fixture(scope="module")
def triangle() -> Kernel:
    return make_triangle()


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
    assert error_of(product.fix_parameters(l=4).join_inames, "i, k") == (
        "IllegalTransformError: join_inames('i, k'): cannot join i, k: statement "
        "'insn_init' is inside 'i' but not inside 'k'\nleave it out: within='not id:insn_init'"
    )
    assert error_of(product.join_inames, "i") == (
        "InvalidArgumentError: join_inames('i'): joining takes two or more different inames"
    )


# }}}

# {{{ rename and duplicate


def test_rename(triangle: Kernel) -> None:
    new = triangle.tag_inames("i:l.0").rename_iname("i", "row")
    assert [(i, str(t)) for i, t in new.tags] == [("row", "l.0")]
    assert outline(new) == "j\n  c[row, j] = a[row] + a[j]"
    assert new.domains[1].parameters == {"row"}
    assert error_of(triangle.rename_iname, "i", "a") == (
        "InvalidArgumentError: rename_iname('i', 'a'): the name 'a' is taken\n'a_0' is free"
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
    assert outline(new) == "i\n  a[i] = i\n  b[i] = i\nk\n  c[k] = k"
    assert "j" not in new.all_inames
    assert kernel.rename_inames("i, j", "x").all_inames == ("x", "k")
    assert error_of(kernel.rename_iname, "k", "i", existing_ok=True) == (
        "IllegalTransformError: rename_iname('k', 'i', existing_ok=True) would break the kernel:\n"
        "'c' (k=0) would not be executed\n"
        "  for example: n = 0\n"
        "  'c':         c[k] = k"
    )
    with pytest.raises(IllegalTransformError, match=r"name: .rename_iname\('k', 'i_0'\)"):
        kernel.rename_iname("k", "i", existing_ok=True)
    assert error_of(kernel.rename_iname, "j", "i") == (
        "InvalidArgumentError: rename_iname('j', 'i'): there is an iname 'i' "
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


def test_duplicates_are_numbered() -> None:
    """The second duplicate of a loop is not named after the first one."""
    knl = make_kernel("{ [i]: 0 <= i < n }", "a[i] = 1 {id=x}\nb[i] = 2 {id=y}\nc[i] = 3")
    knl = knl.duplicate_inames("i", within="id:x").duplicate_inames("i", within="id:y")
    assert {*knl.all_inames} == {"i", "i_0", "i_1"}


def test_duplicate_of_a_parent(triangle: Kernel) -> None:
    assert error_of(triangle.duplicate_inames, "i", "id:s") == (
        "IllegalTransformError: duplicate_inames('i', 'id:s'): the bounds of 'j' "
        "around statement 's' depend on 'i': duplicating 'i' also needs a duplicate of 'j'\n"
        "duplicate both: duplicate_inames(['i', 'j'], ...)"
    )
    check_change(tr.duplicate_inames, triangle, ["i", "j"], "id:s", sizes={"n": 4})


def test_remove_unused_inames(triangle: Kernel) -> None:
    new = triangle.duplicate_inames(["i", "j"], "id:s").remove_unused_inames()
    assert new.all_inames == ("i_0", "j_0")
    assert error_of(triangle.remove_unused_inames) == (
        "NothingToDoError: remove_unused_inames(): every iname is used by some statement"
    )
    assert error_of(triangle.remove_unused_inames, "i") == (
        "IllegalTransformError: remove_unused_inames(inames='i'): iname 'i' is used: statement "
        "'s' is inside it"
    )


# }}}
