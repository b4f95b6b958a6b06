"""Programs read back from their text: what lowering prints is proven."""

from __future__ import annotations

import dataclasses
import pickle

import islpy as isl
import pytest
from gallery import NAMES, kernels
from proof_kernels import (
    copy,
    dynamic,
    in_place,
    matmul,
    registers,
    reversed_rows,
    row_sums,
    sparse,
)
from seams import Proof, prove, prove_source

import loopkit as lk

# {{{ everything that is printed is proven


@pytest.mark.parametrize("example", NAMES)
def test_gallery(example: str) -> None:
    for name, knl in kernels(example).items():
        proof = prove(knl)
        assert proof.ok, f"{example}, {name}: {proof}"


KERNELS = {
    "tiled product": matmul,
    "small tiles": lambda: matmul(8),
    "register tiles": registers,
    "one warp": lambda: reversed_rows(32),
    "two warps": lambda: reversed_rows(64),
    "wide copy": lambda: copy("1 <= n, m <= 65536"),
    "narrow copy": lambda: copy("1 <= n, m <= 1000"),
    "row sums": row_sums,
    "in place": in_place,
    "dynamic shared memory": dynamic,
    "sparse": lambda: sparse(asserted=True),
}


@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name: str) -> None:
    proof = prove(KERNELS[name]())
    assert proof.ok, str(proof)


def test_strides_that_are_parameters() -> None:
    assert prove(matmul(), frozenset("ab")).ok


def test_copies_side_by_side() -> None:
    knl = lk.make_kernel(
        "{ [i, b]: 0 <= i < n and 0 <= b < 8 }",
        "<> s = 2*x[i, b]\ny[i, b] = s + 1",
        dtypes={"x, y": "float32"},
    )
    assert prove(knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0").tag_inames("b:ilp")).ok


def test_threads_share_an_array_that_values_side_by_side_write() -> None:
    """There is one cell for all values: where an array is decides whether there are copies."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < 4 and 0 <= j < n }",
        "if i % 2 == 0\nx[i, j] = d[i, j]\nelse\n<> t = d[j, 0] + j\nend",
        dtypes={"d, x": "int32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 2, inner_tag="l.0")
    knl = knl.privatize_temporaries_with_inames(["i_inner", "i_outer"])
    proof = knl.split_iname("j", 5, inner_tag="ilp").prove()
    assert proof.ok, str(proof)


def test_copies_of_a_loop_that_another_bounds() -> None:
    knl = lk.make_kernel(
        ["{ [s]: 0 <= s < 4 }", "{ [i]: 0 <= i <= s }", "{ [j]: 0 <= j < n }"],
        "z[s, i] = sum(j, x[j, i])",
        dtypes={"x": "float32"},
    )
    proof = knl.tag_inames("i:ilp").prove()
    assert proof.ok, str(proof)


@pytest.mark.parametrize(
    ("instruction", "dtype"),
    [
        ("y[i] = max(x[i], 3) - x[i]**2 / (1 + x[i]**5)", "float32"),
        ("y[i] = exp(x[i]) + 1.1*x[i]", "float16"),
        ("y[i] = exp(x[i]) + 1.1*x[i]", "complex64"),
        ("y[i] = (x[i] // 3) % 5 + (x[i] << 2) + (x[i] & 7) + i*x[i]", "int32"),
        ("y[i] = (i - 3) % 5 + i // 7 + (n - i) // 2", "int64"),
        ("y[i] = x[i - 1] if i > 0 else x[n - 1]", "float64"),
        ("y[i] = x[i] {if=i % 3 == 1 or 2*i > n}", "float32"),
        ("y[i] = 1 {if=x[i] > 0.5 and i > 2}", "float32"),
    ],
)
def test_instructions(instruction: str, dtype: str) -> None:
    arrays = [lk.GlobalArg(name, dtype, shape="n") for name in "xy"]
    used = [a for a in arrays if f"{a.name}[" in instruction]
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", instruction, [*used, ...])
    knl = knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0")
    assert prove(knl).ok, str(prove(knl))


# }}}

# {{{ what stays open


def test_data_decides() -> None:
    """What the kernel's own text takes for granted of data is said, and is no open question."""
    proof = prove(sparse(asserted=False))
    assert proof.ok
    assert {(t.what, t.data) for t in proof.trusted} == {
        ("v[j] lies in 'v' along axis 0", ("rows",)),
        ("col[j] lies in 'col' along axis 0", ("rows",)),
        ("x[col[j]] lies in 'x' along axis 0", ("col", "rows")),
    }
    assert "if the data is as the kernel's text needs it" in str(proof)
    assert not prove(sparse(asserted=True)).trusted


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("j < last", "j <= last"),
        ("j = first", "j = first - 1"),
        ("v[j]", "v[j + 1]"),
        ("col[j]", "col[j + 1]"),
    ],
)
def test_data_decides_only_what_the_kernel_does_itself(old: str, new: str) -> None:
    """Where the text does more than the kernel, nothing is taken for granted."""
    knl = sparse(asserted=False)
    proof = prove_source(knl, knl.cuda().replace(old, new))
    assert proof.findings
    assert any(u.kind == "bounds" for u in proof.undecided)
    assert {t.what for t in proof.trusted} < {t.what for t in prove(knl).trusted}


def test_loops_around_bound_what_data_begin() -> None:
    """Parts of a loop over data are short, whatever the data."""
    knl = sparse(asserted=False).split_iname("j", 8)
    proof = prove(knl)
    assert proof.ok, str(proof)
    longer = knl.cuda().replace("min(8", "min(9")
    assert longer != knl.cuda()
    assert prove_source(knl, longer).findings


def test_data_decides_under_a_predicate() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "y[i] = x[place[i]] {if=chosen[i] > 0}",
        [lk.GlobalArg("x", "float32", shape="m"), ...],
        dtypes={"y": "float32", "place, chosen": "int32"},
    )
    proof = prove(knl.split_iname("i", 32, outer_tag="g.0", inner_tag="l.0"))
    assert proof.ok
    assert [t.data for t in proof.trusted] == [("place", "chosen")]


def test_budget_is_named() -> None:
    proof = prove(registers(), operations=20)
    assert not proof.ok
    assert any("20 operations" in u.what for u in proof.undecided)
    # Nothing of the limit stays behind.
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0
    assert prove(registers()).ok


# }}}

# {{{ the answer


def test_text_of_another_kernel() -> None:
    proof = prove_source(matmul(), "int main() { return 0; }")
    assert [f.kind for f in proof.findings] == ["text"]


def test_text_that_does_not_end() -> None:
    source = matmul().cuda()
    proof = prove_source(matmul(), source[: source.rindex("}")])
    assert [f.kind for f in proof.findings] == ["text"]


def test_a_proof_is_a_value() -> None:
    proof = prove(in_place())
    assert proof == pickle.loads(pickle.dumps(proof))
    assert proof == prove(in_place())
    with pytest.raises(dataclasses.FrozenInstanceError):
        proof.findings = ()  # type: ignore[misc]
    assert str(proof).startswith("in_place: proven (")


def test_a_finding_names_all_that_is_needed() -> None:
    source = reversed_rows(64).cuda()
    lines = source.splitlines()
    first = next(i for i, line in enumerate(lines) if "__syncthreads" in line)
    proof = prove_source(reversed_rows(64), "\n".join(lines[:first] + lines[first + 1 :]))
    [finding] = proof.findings
    assert finding.kind == "barrier"
    assert finding.array == "s"
    assert finding.sizes == {"n": 1}
    assert finding.statements == ("put", "get")
    assert finding.first is not None and finding.second is not None
    assert finding.first.thread != finding.second.thread
    assert finding.first.values["i"] == 63 - finding.second.values["j"] == finding.cell[0]
    text = str(proof)
    assert "put[t=0, i=0] on thread 0" in text
    assert "for example when n=1" in text
    assert "s[63 - j]" in text  # the line itself


def test_time_is_told() -> None:
    proof: Proof = prove(registers())
    assert 0 < proof.seconds < 5


# }}}
