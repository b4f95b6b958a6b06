"""Arrays that share storage: legal where no value is needed that the other one overwrites."""

from __future__ import annotations

import pickle
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from conftest import Golden
from faults.kernels import stages
from hypothesis import given, settings
from hypothesis import strategies as st
from seams import prove_source

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def staged(wide: str = "float32") -> lk.Kernel:
    """Three arrays in shared memory, each filled from the one before."""
    return (
        stages(wide)
        .set_temporary_address_space("t, r, s", "shared")
        .tag_inames("b: g.0, i: l.0, j: l.0, p: l.0, q: l.0")
    )


def test_two_of_three(golden: Golden) -> None:
    knl = staged().alias_temporaries("t, s")
    golden("alias_temporaries.txt", f"{knl}\n\n{knl.script()}\n\n{knl.cuda()}")


@pytest.mark.host
@pytest.mark.parametrize("wide", ["float32", "float64", "float16"])
def test_stages_run(wide: str) -> None:
    plain = staged(wide)
    knl = plain.alias_temporaries(["t", "s"], "buffer")
    assert knl.prove().ok and knl.prove(text=True).ok
    size = 128 * np.dtype(wide).itemsize
    assert knl.costs(n=3).resources.shared < plain.costs(n=3).resources.shared or size == 0
    x = np.random.default_rng(0).integers(-9, 9, (3, 4, 128)).astype("float32")
    for order in ORDERS:
        got = knl.executor("host", order=order, seed=1)(x=x)
        np.testing.assert_array_equal(got, x[..., ::-1] * 2 + 1)


@pytest.mark.nvrtc
def test_storage_compiles() -> None:
    knl = staged("float64").alias_temporaries("t, s")
    for arch in ("sm_80", "sm_90a", "sm_100"):
        assert knl.cubin(arch)


@pytest.mark.host
@pytest.mark.parametrize("names", ["t, r", "r, s", "t, r, s"])
def test_values_that_are_needed(names: str, request: pytest.FixtureRequest) -> None:
    """The witness is a case in which the host's result is wrong."""
    if request.config.getoption("--on-gpu"):
        pytest.skip("what races there is wrong by chance")
    knl = staged("float64")
    with pytest.raises(lk.IllegalTransformError, match="lies in the place of") as caught:
        knl.alias_temporaries(names)
    witness = caught.value.witness
    assert witness.kind == "aliased" and witness.array in names.split(", ")
    assert caught.value.picture() is not None
    wrong = knl.alias_temporaries(names, unchecked=True)
    x = np.random.default_rng(0).random((2, 4, 128), dtype=np.float32)
    right = knl.executor("host")(x=x)
    results = [wrong.executor("host", order=order)(x=x) for order in ORDERS]
    assert not all(np.array_equal(result, right) for result in results)
    # What is taken on trust is not asked of later steps; all else is.
    assert wrong.rename_iname("q", "last").history[-1].verdict == "proven"


def test_later_steps_must_keep_values() -> None:
    """The second row of ``t`` is needed while ``s`` lies in the place of the first."""
    knl = lk.make_kernel(
        "{ [b, h, i, j, p, q]: 0 <= b < n and 0 <= h < 2 and 0 <= i, j, p, q < 64 }",
        """
        for b
            for h, i
                <> t[h, i] = x[b, h, i]             {id=t}
            end
            for j
                y[b, j] = t[0, 63 - j]              {id=y}
            end
            for p
                <> s[p] = y[b, p] + 1               {id=s}
            end
            for q
                z[b, q] = s[63 - q] + t[1, q]       {id=z}
            end
        end
        """,
        dtypes={"x, y, z": "float32"},
        assumptions="n >= 1",
    )
    knl = knl.set_temporary_address_space("t, s", "shared")
    over = knl.alias_temporaries("t, s")
    assert over.tag_inames("b: g.0, i: l.0, j: l.0, p: l.0, q: l.0").prove().ok
    assert knl.tag_array_axes("t", "f").history[-1].verdict == "proven"
    with pytest.raises(
        lk.IllegalTransformError, match=r"write s\[1\], which lies in the place of t"
    ):
        over.tag_array_axes("t", "f")
    # The rows are swizzled each in itself.
    assert over.swizzle_array("t", bits=1).history[-1].verdict == "proven"


@settings(max_examples=15)
@given(st.data())
def test_chains(data: st.DataObject) -> None:
    """What is accepted is what no later reader needs, by a list of lives."""
    count = data.draw(st.integers(3, 5))
    reads = [data.draw(st.integers(0, k - 1)) for k in range(1, count)]
    lines = ["<> t0[i0] = x[i0]"]
    lines += [f"<> t{k}[i{k}] = t{reads[k - 1]}[31 - i{k}] + {k}" for k in range(1, count)]
    last = data.draw(st.integers(0, count - 1))
    lines.append(f"y[e] = t{last}[31 - e]")
    inames = ", ".join([*(f"i{k}" for k in range(count)), "e"])
    knl = lk.make_kernel(
        f"{{ [{inames}]: {' and '.join(f'0 <= {i} < 32' for i in inames.split(', '))} }}",
        "\n".join(lines),
        dtypes={"x, y": "float32"},
    )
    names = [f"t{k}" for k in range(count)]
    knl = knl.set_temporary_address_space(names, "shared")
    knl = knl.tag_inames(dict.fromkeys(inames.split(", "), "l.0"))
    end = {k: max([k, *(r for r, s in enumerate(reads, 1) if s == k)]) for k in range(count)}
    end[last] = count
    for a, b in combinations(range(count), 2):
        # Of arrays that nobody reads, nobody misses anything.
        is_legal = end[a] < b or end[a] == a
        try:
            done = knl.alias_temporaries([f"t{a}", f"t{b}"])
        except lk.IllegalTransformError:
            assert not is_legal
            continue
        assert is_legal and done.prove().ok


def test_what_cannot_be_built() -> None:
    knl = staged()
    over = knl.alias_temporaries("t, s")
    with pytest.raises(lk.LoopkitError, match="two different temporaries"):
        knl.alias_temporaries("t")
    with pytest.raises(lk.LoopkitError, match="two different temporaries"):
        knl.alias_temporaries("t, t")
    with pytest.raises(lk.UnknownNameError, match="temporaries that exist: r, s, t"):
        knl.alias_temporaries("t, w")
    with pytest.raises(lk.IllegalTransformError, match="already lies in the storage 't_storage'"):
        over.alias_temporaries("s, r")
    with pytest.raises(lk.IllegalTransformError, match="private memory"):
        stages().alias_temporaries("t, s")
    with pytest.raises(lk.LoopkitError):
        knl.alias_temporaries("t, s", 'a"; b')
    with pytest.raises(lk.IllegalTransformError, match="shares its storage with 't'"):
        alone = stages().set_temporary_address_space("t, s", "shared").alias_temporaries("t, s")
        alone.set_temporary_address_space("s", "private")


def test_storage_is_shared_whatever_becomes_of_the_threads() -> None:
    text = """
    for j
        <> s[j] = a[j]
    end
    for k
        c[k] = s[31 - k]
    end
    for j
        <> t[j] = 2*a[j]
    end
    for k
        b[k] = t[31 - k]
    end
    """
    knl = lk.make_kernel("{ [j, k]: 0 <= j, k < 32 }", text, dtypes={"a, b, c": "float32"})
    knl = knl.tag_inames("j: l.0, k: l.0").alias_temporaries("s, t").untag_inames("j, k")
    assert knl.prove().ok


def test_storage_is_data_of_the_arrays() -> None:
    plain = staged()
    knl = plain.alias_temporaries("t, s")
    assert knl.key != plain.key
    assert pickle.loads(pickle.dumps(knl)).key == knl.key
    assert lk.replay(stages(), knl.history).key == knl.key
    names: dict[str, Any] = {"lk": lk, "knl": stages()}
    exec(knl.script(), names)
    assert names["knl"].key == knl.key


def test_a_missing_barrier_is_found() -> None:
    knl = staged().alias_temporaries("t, s")
    source = knl.cuda()
    line = next(text for text in source.splitlines() if "t read above, written below" in text)
    proof = prove_source(knl, source.replace(line + "\n", ""))
    assert not proof.ok


def test_only_arrays_of_one_storage_overlap() -> None:
    knl = staged().alias_temporaries("t, s")
    source = knl.cuda()
    proof = prove_source(knl, source.replace("shared_memory + 512", "shared_memory + 0"))
    assert not proof.ok and any("begins at byte 0" in str(f) for f in proof.findings)


def test_a_kernel_is_made_without() -> None:
    with pytest.raises(lk.LoopkitError, match="alias_temporaries"):
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            "t = x[i]\ny[i] = t",
            [lk.TemporaryVariable("t", base_storage="b"), ...],
            dtypes={"x, y": "float32"},
        )


def test_arrays_that_overwrite_each_other_are_neither_proven_nor_equal() -> None:
    """What is taken on trust is not what the kernel says, and both proofs see that."""
    plain = staged()
    trusted = plain.alias_temporaries("t, r", unchecked=True)
    assert "in the place of" in str(trusted.prove()) and not trusted.prove().ok
    for one, two in ((plain, trusted), (trusted, plain), (trusted, trusted)):
        verdict = lk.verify(one, two)
        assert verdict.answer == "undecided" and "in the place of" in str(verdict)


def test_places_that_no_set_holds_are_undecided() -> None:
    """Of arrays whose sizes are multiplied, where they overlap is not known."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 2 }",
        """
        for i
            <> s[j] = x[i, j]
            y[i, j] = s[j]
        end
        for i
            <> t[j] = x[i, 1 - j]
            z[i, j] = t[j]
        end
        """,
        dtypes={"x, y, z": "float32"},
    )
    knl = knl.set_temporary_address_space("s, t", "shared").alias_temporaries(["s", "t"])
    with pytest.raises(lk.UndecidedError, match="where 's' and 't' lie is beyond sets"):
        knl.privatize_temporaries_with_inames("i", "s")
    moved = knl.privatize_temporaries_with_inames("i", "s", unchecked=True)
    assert "where 's' and 't' lie is beyond sets" in str(lk.verify(knl, moved))
