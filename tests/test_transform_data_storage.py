import numpy as np
import pytest
from data_kernels import run_on_host, staged_matmul
from seams import Nested, Strided, strides_of, to_text

import loopkit as lk
from loopkit import AddressSpace, IllegalTransformError, InvalidArgumentError, UnknownNameError


def text_of(knl, statement):
    s = knl.statement_by_id[statement]
    return f"{to_text(s.lhs)} = {to_text(s.rhs)}"


# {{{ privatization


def chain(where="0 <= i < 16"):
    return lk.make_kernel(
        f"{{ [i]: {where} }}",
        """
        for i
            <> t = 2*a[i] {id=w}
            b[i] = t + 1 {id=r}
        end
        """,
        dtypes={"a, b": "float32"},
        assumptions="n >= 1" if "n" in where else "",
    )


def test_a_temporary_gets_an_axis():
    knl = chain().privatize_temporaries_with_inames("i", "t")
    assert text_of(knl, "w") == "t[i] = 2*a[i]"
    assert text_of(knl, "r") == "b[i] = t[i] + 1"
    assert knl.temporary_by_name["t"].shape == (16,)
    assert chain().privatize_temporaries_with_inames(["i"]).key == knl.key


def test_an_axis_begins_at_zero():
    knl = chain("5 <= i < 9").privatize_temporaries_with_inames("i")
    assert text_of(knl, "w") == "t[i - 5] = 2*a[i]"
    assert knl.temporary_by_name["t"].shape == (4,)


def test_rules_are_looked_through():
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 8 }",
        "f(x) := t*x\nfor i\n<> t = a[i] {id=w}\n b[i] = f(3) {id=r}\nend",
        dtypes={"a, b": "float32"},
    ).privatize_temporaries_with_inames("i")
    assert text_of(knl, "r") == "b[i] = t[i]*3"


def test_privatize_refusals():
    with pytest.raises(UnknownNameError, match="no temporary 'tt'"):
        chain().privatize_temporaries_with_inames("i", "tt")
    with pytest.raises(UnknownNameError, match="no iname 'k'"):
        chain().privatize_temporaries_with_inames("k")
    loaded = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        """
        for i
            <> lo = ptr[i]
            <> hi = ptr[i + 1]
            for r
                <> t = 2*g[r]
                u[r] = t
            end
        end
        """,
        [lk.GlobalArg("g, u", shape="m"), ...],
        dtypes={"g, u": "float32", "ptr": "int32"},
    )
    with pytest.raises(IllegalTransformError, match="'r' has no constant length"):
        loaded.privatize_temporaries_with_inames("r", "t")
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 4 and 0 <= j < 4 }",
        "<> t = 3 {id=w}\nfor i\n b[i] = t {id=r}\nend\nfor j\n c[j] = t\nend",
        dtypes={"b, c": "float32", "t": "float32"},
    )
    with pytest.raises(IllegalTransformError, match="nothing would be privatized"):
        knl.privatize_temporaries_with_inames("i")
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 4 }",
        "<> t = 0 {id=zero}\nfor i\n t = t + a[i] {id=add}\nend\nb[0] = t",
        [lk.GlobalArg("b", np.float32, shape=(1,)), ...],
        dtypes={"a": "float32"},
        seq_dependencies=True,
    )
    with pytest.raises(IllegalTransformError, match="'zero' uses 't' outside of 'i'"):
        knl.privatize_temporaries_with_inames("i")


# }}}

# {{{ address spaces


@pytest.mark.host
def test_an_axis_as_long_as_a_size():
    """What memory it is in, and which number the size is, later steps may say."""
    before = lk.make_kernel(
        "{ [i]: 2 <= i < n }",
        "<> t = 2*a[i] {id=load}\nb[i] = t + 1 {id=use}",
        dtypes={"a, b": "float32"},
        assumptions="n >= 2",
    )
    knl = before.privatize_temporaries_with_inames("i", "t").fission("i", "id:use")
    assert to_text(knl.temporary_by_name["t"].shape[0]) == "n - 2"
    assert "no code can be made of this: temporary 't' in private memory has n - 2" in str(knl)
    first = before.set_temporary_address_space("t", "global")
    one = first.privatize_temporaries_with_inames("i").fission("i", "id:use")
    assert one == knl.set_temporary_address_space("t", "global")
    assert one.prove().ok
    assert knl.fix_parameters(n=7).prove().ok
    for n in (2, 3, 9):
        a = np.arange(n, dtype=np.float32)
        found = one.executor("host")(a=a, b=np.zeros(n, np.float32))
        np.testing.assert_array_equal(found[2:], 2 * a[2:] + 1)


def test_bounds_get_no_axis():
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        """
        <> lo = ptr[i]
        <> hi = ptr[i + 1]
        u[i] = max(r, g[r])
        """,
        [lk.GlobalArg("g", shape="n + 2"), ...],
        dtypes={"g, ptr, u": "int32"},
    ).split_iname("i", 2)
    with pytest.raises(IllegalTransformError) as info:
        knl.privatize_temporaries_with_inames("i_inner")
    assert "'lo' cannot get an axis: it bounds the loop over 'r'" in str(info.value)
    assert "only_var_names=['acc'] leaves 'lo' as it is" in str(info.value)


def test_address_spaces():
    knl = staged_matmul()
    assert knl.temporary_by_name["a_s"].address_space is AddressSpace.LOCAL
    moved = knl.set_temporary_address_space("a_s, b_s", "global", unchecked=True)
    assert {moved.temporary_by_name[n].address_space for n in ("a_s", "b_s")} == {
        AddressSpace.GLOBAL
    }
    back = moved.set_temporary_scope(["a_s", "b_s"], "shared", unchecked=True)
    assert back.key == knl.key
    with pytest.raises(UnknownNameError, match="no address space 'sharde'") as info:
        knl.set_temporary_address_space("a_s", "sharde")
    assert "'shared'" in str(info.value)
    with pytest.raises(UnknownNameError, match="no temporary 'as'"):
        knl.set_temporary_address_space("as", "shared")


# }}}

# {{{ axes


def arrays():
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < 4 and 0 <= j < 6 }",
        "b[i, j] = a[i, j]",
        dtypes={"a, b": "float32"},
    )


@pytest.mark.parametrize(
    ("tags", "strides"),
    [
        ("c", (6, 1)),
        ("f", (1, 4)),
        ("N0,N1", (1, 4)),
        ("N1, N0", (6, 1)),
        (["N0", Nested(1)], (1, 4)),
        ("stride:17,stride:1", (17, 1)),
        ({0: "stride:8", 1: "N0"}, (8, 1)),
    ],
)
def test_axes(tags, strides):
    knl = arrays().tag_array_axes("a", tags)
    assert strides_of(knl.arg_by_name["a"]) == strides
    assert strides_of(knl.arg_by_name["b"]) == (6, 1)


def test_symbolic_stride():
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        "b[i, j] = a[i, j]",
        dtypes={"a, b": "float32"},
    ).tag_array_axes("a", "stride:2*m, stride:1")
    assert to_text(strides_of(knl.arg_by_name["a"])[0]) == "2*m"


def test_axis_refusals():
    with pytest.raises(InvalidArgumentError, match="has 1 tag, but 'a' has 2 axes"):
        arrays().tag_array_axes("a", "N0")
    with pytest.raises(InvalidArgumentError, match="each of N0, N1"):
        arrays().tag_array_axes("a", "N0,N0")
    with pytest.raises(UnknownNameError, match="no array axis tag 'M1'"):
        arrays().tag_array_axes("a", "M1,N0")
    with pytest.raises(UnknownNameError, match="no array 'aa'"):
        arrays().tag_array_axes("aa", "c")
    for tag in ("vec", "sep"):
        with pytest.raises(InvalidArgumentError, match=f"there are no '{tag}' axes"):
            arrays().tag_array_axes("a", f"c,{tag}")
    with pytest.raises(InvalidArgumentError, match="'c' is said of all axes, or of none"):
        arrays().tag_array_axes("a", "c,N0")


def test_orders_may_be_said_of_each_axis():
    for word in "cf":
        once = arrays().tag_array_axes("a", word).arg_by_name["a"]
        assert arrays().tag_array_axes("a", f"{word},{word}").arg_by_name["a"] == once


# }}}

# {{{ padding


def test_padded_rows():
    knl = staged_matmul().pad_temporary("a_s", 1)
    assert strides_of(knl.temporary_by_name["a_s"]) == (17, 1)
    assert "a_s[16][17]" in knl.cuda()
    with pytest.raises(IllegalTransformError, match="padded by 1 already"):
        knl.pad_temporary("a_s", 1)
    assert knl.pad_temporary("a_s", 1, 0).key == staged_matmul().key
    with pytest.raises(IllegalTransformError, match="would move no element"):
        knl.pad_temporary("a_s", 0)
    with pytest.raises(InvalidArgumentError, match="there is no axis 2"):
        knl.pad_temporary("a_s", 2)
    with pytest.raises(InvalidArgumentError, match="scalar"):
        knl.pad_temporary(next(t.name for t in knl.temporaries if not t.shape), 0)


def test_padding_is_a_count():
    knl = staged_matmul()
    for elements, what in [(-1, "at least 0, not -1"), ("2", "an integer, not '2'")]:
        with pytest.raises(InvalidArgumentError, match=f"elements must be {what}"):
            knl.pad_temporary("a_s", 0, elements)


@pytest.mark.host
def test_padded_rows_run():
    rng = np.random.default_rng(2)
    a, b = rng.random((20, 18), dtype=np.float32), rng.random((18, 17), dtype=np.float32)
    knl = staged_matmul().pad_temporary("a_s", 1).tag_array_axes("b_s", "f")
    found = run_on_host(
        knl, {"a": a, "b": b, "c": np.zeros((20, 17), np.float32)}, {"n": 20, "m": 17, "l": 18}
    )
    np.testing.assert_allclose(found["c"], a @ b, rtol=1e-5)


def test_add_padding():
    with pytest.raises(IllegalTransformError, match="memory layout the caller decides") as refused:
        arrays().add_padding("a", 0, 16)
    assert str(refused.value.witness) == "layout at a[1, 0]"
    said = arrays().tag_array_axes("a", "stride:8, stride:1")
    with pytest.raises(IllegalTransformError, match="would not change"):
        said.add_padding("a", 0, 16)
    wide = staged_matmul().add_padding("a_s", 0, 48)
    assert strides_of(wide.temporary_by_name["a_s"]) == (24, 1)
    assert wide.temporary_by_name["a_s"].dim_tags == (Strided(24), Strided(1))
    with pytest.raises(IllegalTransformError, match="no constant"):
        staged_matmul().add_padding("a", 0, 16)


# }}}


def test_a_large_array_of_a_thread_that_uses_a_part_is_pointed_out() -> None:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 2048 }",
        "for i, j\n<> t[j] = x[i, j]*2\ny[i, j] = t[j] + 1\nend",
        dtypes={"x": "float32"},
    )
    knl = knl.split_iname("j", 128, inner_tag="l.0").tag_inames("i: g.0")
    with pytest.warns(lk.LoopkitWarning, match=r"all 2048 elements of 't', and uses 16: \.split_"):
        knl.set_temporary_address_space("t", "private")
    knl = knl.split_array_dim([("t", 0)], 128)
    knl = knl.unprivatize_temporaries_with_inames("j_inner", only_var_names="t")
    assert knl.temporary_by_name["t"].shape == (16,)
    knl.set_temporary_address_space("t", "private")  # and that is no more than it uses
