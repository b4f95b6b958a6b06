"""Values stored to one cell by many threads: legal where they are the same, whatever the data."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from seams import EqualStores, EqualValues, prove_program, prove_source

import loopkit as lk

LOOPS = "{ [i, j, k]: 0 <= i < n and 0 <= j, k < m }"
AXES = ("l.0", "g.0")
ORDERS = ("ascending", "descending", "random")

EQUAL = {
    "a number": "for i\n    y[0] = 2\nend",
    "a size": "for i\n    y[0] = n\nend",
    "what nothing writes": "for i, j\n    y[j] = 2*x[j] + j\nend",
    "half of the threads a cell": "y[i // 2] = x[i // 2]",
    "a temporary": "for i, j\n    <> t = x[j]*3\n    <> u = t + 1\n    y[j] = u - t\nend",
    "a sum": "for i, j\n    y[j] = sum(k, x[k]*j)\nend",
    "a sum of sums": "for i, j\n    y[j] = max(k, x[k] + sum(l, x[l]*k))\nend",
    "the place of the smallest": "for i, j\n v, y[j] = argmin(k, x[k]*j, k)\n y[j + m] = v\nend",
    "a sum of terms that are alike": "for i, j\n    y[j] = sum(k, x[j])\nend",
    "a recurrence": "for i\n <> t = 1\n for k\n  t = t*x[k]\n end\n y[0] = t\nend",
    "a recurrence of one term": "for i\n <> t = 1\n for k\n  t = t + x[0]\n end\n y[0] = t\nend",
    "a recurrence as far as it came": "for i\n <> t = 1\n for h\n  t = t + x[h]\n  y[h] = t\n end\n"
    "end",
    "a recurrence under a guard": "for i\n <> t = 1\n for k\n  if k <= i\n   t = t + x[k]\n"
    "   y[k] = t\n  end\n end\nend",
    "rows under a guard": "for i\n <> t = 1\n for k\n  if k <= i\n   for j\n    t = t + x[j]\n"
    "   end\n   y[k] = t\n  end\n end\nend",
    "sums of rows": "for i\n <> s[a] = sum(c, x[c])\n y[b] = s[b]\nend",
    "what is changed between": "for k\n for i\n  y[0] = x[0]\n end\n x[0] = x[0] + k\nend",
    "a mark where something is found": "if x[i] > 0\n    y[0] = 1\nend",
    "marks where data say": "y[place[i]] = 1",
    "under guards": "for i, k\n if i + k < n\n  <> t = x[k]\n end\n"
    " if i + k < n\n  y[k] = t\n end\nend",
    "a sum under a guard": "for i, j\n if i + j < n\n  y[j] = sum(k, x[k]*j)\n end\nend",
    "an array": "for i\n <> s[a] = 2*x[a]\n y[b] = s[2 - b]\nend",
    "arrays": "for i\n <> s[a] = x[a]\n s[1] = s[1]*n\n <> r[a] = s[a]*a\n y[b] = r[b]\nend",
    "a cell that one iteration changes": "for i\n <> s[a] = x[a]\n s[q] = s[q] + s[q + 1]\n"
    " y[b] = s[2 - b]\nend",
    "an array under guards": "for i, j\n if i + j < n\n  <> s[a] = x[a]\n end\n z[i] = j\n"
    " if i + j < n\n  y[b] = s[b]\n end\nend",
}
DIFFERENT = {
    "an iname": "for i\n    y[0] = i\nend",
    "another cell": "for i, j\n    y[j] = 2*x[i] + j\nend",
    "quotient and remainder": "y[i // 2] = x[i % 2]",
    "a temporary": "for i, j\n    <> t = x[j]*3 + i\n    <> u = t + 1\n    y[j] = u\nend",
    "a sum": "for i, j\n    y[j] = sum(k, x[k]*i)\nend",
    "as many terms as threads": "for i\n    y[0] = sum(h, x[0])\nend",
    "a recurrence": "for i\n <> t = i\n for k\n  t = t*x[k]\n end\n y[0] = t\nend",
    "recurrences of lengths": "for i\n <> t = 1\n for h\n  t = t + x[0]\n end\n y[0] = t\nend",
    "recurrences in a loop": "for i\n <> t = 1\n for k\n  for h\n   t = t + x[h]\n   y[h] = t\n"
    "  end\n end\nend",
    "guards in a loop": "for i\n <> t = 1\n for k, j\n  if j <= i\n   t = t + x[j]\n   y[j] = t\n"
    "  end\n end\nend",
    "a recurrence from where a guard begins": "for i\n <> t = 1\n for k\n  if k >= i\n"
    "   t = t + x[k]\n   y[k] = t\n  end\n end\nend",
    "a recurrence under another guard": "for i\n <> t = 1\n for k\n  if k < i\n   t = t + x[k]\n"
    "  end\n  if k <= i\n   y[k] = t\n  end\n end\nend",
    "sums of rows": "for i\n <> s[a] = sum(c, x[c + i])\n y[b] = s[b]\nend",
    "what is changed between": "for k, i\n    y[0] = x[0]\n    x[0] = x[0] + k\nend",
    "the place where something is found": "if x[i] > 0\n    y[0] = i\nend",
    "numbers where data say": "y[place[i]] = i",
    "a quotient": "for i\n    y[0] = n // (i + 1)\nend",
    "a choice": "for i\n    y[0] = 1 if i < 3 else 2\nend",
    "what fewer threads change": "for i\n <> t = 1\n for k\n  if i + k < n\n   t = t + x[k]\n"
    "  end\n  y[0] = t\n end\nend",
    "what was stored before": "for i\n <> t = x[0]\n <> u = t\n t = i\n <> v = t + u\n"
    " y[0] = v\nend",
    "an array read elsewhere": "for i\n <> s[a] = x[a]\n y[b] = s[(b + i) % 3]\nend",
    "an array that changes": "for i\n <> s[a] = x[a]\n if i > 2\n  s[a] = 5\n end\n"
    " y[b] = s[b]\nend",
    "an array that each iteration changes": "for i\n for a\n  <> s[0] = i\n  s[a] = x[a]\n end\n"
    " y[b] = s[b]\nend",
    "arrays": "for i\n <> s[a] = x[a]\n <> r[a] = s[(a + i) % 3]\n y[b] = r[b]\nend",
    "what loops make of threads": "for i\n <> t = 0\n for k\n  t = t + x[i*(5 - k) % 3]\n end\n"
    " y[0] = t\nend",
}


def made(text: str) -> lk.Kernel:
    domains = [LOOPS]
    if "sum(l" in text:
        domains.append("{ [l]: 0 <= l < m }")
    if "sum(h" in text or "for h" in text:
        domains.append("{ [h]: 0 <= h <= i }")
    if "s[" in text:
        domains.append("{ [a, b]: 0 <= a, b < 3 }")
    if "sum(c" in text:
        domains.append("{ [c]: 0 <= c <= a }")
    if "s[q" in text:
        domains.append("{ [q]: 0 <= q < 1 }")
    text = text.replace("v, y[j]", "<> v, y[j]")
    arrays = ["x", "y", *(name for name in ("place", "z") if f"{name}[" in text)]
    data = [lk.GlobalArg(name, "int32", shape="n + 2*m") for name in arrays]
    return lk.make_kernel(domains, text, [*data, ...], assumptions="1 <= n <= 64 and m >= 1")


def given(n: int, m: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(n)
    return {
        "x": rng.integers(-3, 4, n + 2 * m, dtype=np.int32),
        "y": np.zeros(n + 2 * m, np.int32),
        "z": np.zeros(n + 2 * m, np.int32),
        "place": rng.integers(0, 3, n + 2 * m, dtype=np.int32),
    }


@pytest.mark.host
@pytest.mark.parametrize(("name", "tag"), [*itertools.product(EQUAL, AXES)])
def test_equal_values_may_meet(name: str, tag: str) -> None:
    """Proven by the step and in the program, and right in whatever order threads run."""
    knl = made(EQUAL[name])
    if name == "what is changed between" and tag == "g.0":
        return  # blocks do not wait for the change
    parallel = knl.tag_inames(f"i: {tag}")
    proof = parallel.prove()
    assert not proof.findings and not proof.undecided, str(proof)
    for (n, m), order in itertools.product(((1, 1), (7, 3), (40, 2)), ORDERS):
        arrays = {a: v for a, v in given(n, m).items() if a in knl.arg_by_name}
        expected = knl.executor("reference")(**{a: v.copy() for a, v in arrays.items()}, n=n, m=m)
        found = parallel.executor("host", order=order)(
            **{a: v.copy() for a, v in arrays.items()}, n=n, m=m
        )
        one, two = (r if isinstance(r, tuple) else (r,) for r in (expected, found))
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", EQUAL)
def test_equal_values_of_ragged_tiles(name: str) -> None:
    """Whether a thread stores at all depends on the iteration of a loop around it."""
    assert made(EQUAL[name]).split_iname("i", 8, inner_tag="l.0").prove().ok


@pytest.mark.parametrize("name", ["an array", "arrays"])
def test_what_threads_share_is_one_value_for_all_blocks(name: str) -> None:
    """Each thread of a block makes what the same one of another block does."""
    for texts, is_equal in ((EQUAL, True), (DIFFERENT, False)):
        knl = made(texts.get(name, DIFFERENT["an array read elsewhere"])).tag_inames("a: l.0")
        try:
            proof = knl.split_iname("i", 4, inner_tag="g.0", unchecked=not is_equal).prove()
        except lk.RaceError:
            assert not is_equal
        else:
            assert proof.ok == is_equal


@pytest.mark.parametrize("tag", AXES)
def test_code_is_made_of_what_a_step_has_proven(tag: str) -> None:
    """Of a sum in two parts, too: which statement is called what does not matter."""
    knl = made("for i, j\n    <> t = 2*sum(k, x[k])\n    y[j] = t + j\nend").split_iname("k", 2)
    knl = knl.split_reduction_inward("k_inner").tag_inames(f"i: {tag}")
    assert "no code can be made" not in str(knl) and knl.prove().ok


@pytest.mark.parametrize(("name", "tag"), [*itertools.product(DIFFERENT, AXES)])
def test_other_values_may_not(name: str, tag: str) -> None:
    """Refused with two instances of the text, one cell, and sizes."""
    with pytest.raises((lk.RaceError, lk.UndecidedError, lk.IllegalTransformError)) as caught:
        made(DIFFERENT[name]).tag_inames(f"i: {tag}")
    witness = caught.value.witness
    assert witness is not None and witness.array in ("x", "y")
    assert {"n"} <= witness.parameters.keys() or witness.cell is None


def test_two_statements_store_one_value():
    text = "if x[i] > 0\n    y[0] = 1\nend\nif x[i] < 0\n    y[0] = {}\nend"
    same = made(text.format(1)).tag_inames("i: g.0")
    assert not same.prove().findings
    with pytest.raises(lk.LoopkitError, match=r"both write"):
        made(text.format(2)).tag_inames("i: g.0")


@pytest.mark.parametrize("values", sorted({*itertools.permutations((1, 1, 2))}))
@pytest.mark.parametrize("tag", AXES)
def test_stores_that_write_alike_are_all_compared(values: tuple[int, ...], tag: str) -> None:
    """One of three statements stores another value than the others, on its own or beside them."""
    text = "\n".join(f"for i\n    y[0] = {value}\nend" for value in values)
    if tag == "g.0":
        with pytest.raises(lk.RaceError):
            made(text).tag_inames("i: g.0")
        loose = made(text).tag_inames("i: g.0", unchecked=True)
        with pytest.raises(lk.RaceError):
            loose.cuda()
    else:
        assert not made(text).tag_inames("i: l.0").prove().findings


def test_values_that_change_between_two_stores():
    text = "for i\n <> t = 1\n y[0] = t\n t = i\n y[0] = t\nend"
    for tag in AXES:
        with pytest.raises(lk.LoopkitError):
            made(text).tag_inames(f"i: {tag}")


def test_equal_stores_order_no_reads():
    """What one block reads is its own, or an earlier launch's, whatever others store there."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "for i\n    y[0] = 2\n    z[i] = y[0]\nend",
        dtypes={"y, z": "int32"},
        assumptions="n >= 1",
    )
    assert not knl.fix_parameters(n=32).tag_inames("i: l.0").prove().findings
    with pytest.raises(lk.RaceError):
        knl.tag_inames("i: g.0")


def test_loops_order_what_threads_store_alike():
    """In each iteration another value: a barrier stands between two of them."""
    knl = made("for k\n    for i\n        y[0] = x[k]\n    end\nend").tag_inames("i: l.0")
    assert "__syncthreads" in knl.cuda()
    assert not knl.prove().findings


@pytest.mark.parametrize(("name", "tag"), [*itertools.product(DIFFERENT, (*AXES, "tiles"))])
def test_the_proof_takes_nobodys_word(monkeypatch, name: str, tag: str) -> None:
    """Where checker and lowering take all stores for equal, the proof of the program does not."""
    monkeypatch.setattr(EqualValues, "stored", lambda self, one, two, where: where)
    try:
        if tag == "tiles":
            knl = made(DIFFERENT[name]).split_iname("i", 8, inner_tag="l.0", unchecked=True)
        else:
            knl = made(DIFFERENT[name]).tag_inames(f"i: {tag}", unchecked=True)
        proof = knl.prove()
    except lk.LoopkitError as error:
        assert name == "what is changed between", error
        return
    assert proof.findings or proof.undecided


FAULTS = {
    "equal": lambda self, expr, one, two, where: where,
    "differing": lambda self, mine, its, where: where - where,
    "unpaired": lambda self, name, before, after, where, own=(): where - where,
    "_direct": lambda self, statement: frozenset(),
    "_indirect": lambda self, statement: self.varying(statement.id),
}
"""Functions of the checker and of lowering that tell equal values, and faulty ones."""


@pytest.mark.parametrize("faulty", FAULTS)
def test_the_proof_catches_what_a_fault_lets_through(monkeypatch, faulty: str) -> None:
    accepted = 0
    for name, tag in itertools.product(DIFFERENT, AXES):
        with monkeypatch.context() as planted:
            planted.setattr(EqualValues, faulty, FAULTS[faulty])
            try:
                knl = made(DIFFERENT[name]).tag_inames(f"i: {tag}")
            except lk.LoopkitError:
                continue
            accepted += 1
            try:
                proof = knl.prove()
            except lk.LoopkitError:
                continue  # lowering refuses it
        assert proof.findings or proof.undecided, name
    assert accepted, "the fault matters nowhere"


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_checker_asks_nothing_of_the_proof(monkeypatch, name: str) -> None:
    """A proof that takes all stores for equal lets nothing through: the step is refused."""
    monkeypatch.setattr(EqualStores, "without", lambda self, space, one, two, where: space.nothing)
    with pytest.raises(lk.LoopkitError):
        made(DIFFERENT[name]).tag_inames("i: l.0")


def test_stores_of_all_threads(golden) -> None:
    """Equal stores of all threads in one cell, of a temporary and where data say."""
    found = []
    for name in ("a temporary", "a mark where something is found", "marks where data say"):
        knl = made(EQUAL[name]).split_iname("i", 32, inner_tag="l.0", outer_tag="g.0")
        found += [f"// {name}", str(knl), knl.cuda()]
    golden("equal_stores.txt", "\n\n".join(found) + "\n")


def test_the_proof_compares_each_store() -> None:
    """A text in which one of two lines stores another value."""
    text = "for i\n    y[0] = 1\nend\nfor i\n    y[0] = 1\nend"
    knl = made(text).tag_inames("i: g.0")
    program = knl.program()
    for old, new in (("y[0] = 1;", "y[0] = 2;"), ("y[0] = 1;", "y[0] = i;")):
        changed = replace(program, source=program.source.replace(old, new, 1))
        assert prove_program(knl, changed, text=True).findings
    assert not prove_program(knl, program, text=True).findings


@pytest.mark.parametrize("store", ["s[t] = p", "s[t] = s[t] + p {atomic}"])
def test_what_holds_on_a_thread_that_reads_need_not_hold_on_those_that_write(
    monkeypatch, store: str
) -> None:
    """The last block doubles what its first thread shares; the others, all of theirs."""
    monkeypatch.setattr(EqualValues, "stored", lambda self, one, two, where: where)
    knl = lk.make_kernel(
        "{ [i, t, v, k]: 0 <= i < m and 0 <= t, v < 16 and 0 <= k < 3 }",
        "for i\n for t\n  <> s[t] = 0\n  <> p = x[t]\n  p = 2*x[t] {if=16*i + t < n}\n  "
        f"{store}\n end\n y[k] = s[k] {{if=16*i + v < n}}\nend",
        [lk.GlobalArg("x, y", "int32", shape="16"), ...],
        assumptions="n, m >= 1",
    )
    knl = knl.set_temporary_address_space("s", "shared", unchecked=True)
    knl = knl.tag_inames("t: l.0, v: l.0, i: g.0", unchecked=True)
    source, guard = knl.cuda(), "if (threadIdx.x + 16LL * blockIdx.x < n)"
    for name in "tv":
        assert f"if ({name} + 16LL * i < n)" in source
        source = source.replace(f"if ({name} + 16LL * i < n)", guard)
    assert prove_source(knl, source).findings


@pytest.mark.parametrize(
    ("loops", "value", "is_equal"),
    [
        ("h < (int)blockIdx.x + 1", "x[a]", True),
        ("h < (int)blockIdx.x + 1; k < 3", "x[k]", True),
        ("k < 3; h < (int)blockIdx.x + 1 - k", "x[k]", False),
        ("h < (int)blockIdx.x + 1", "x[h]", False),
        ("h < (int)blockIdx.x + 1", "s[a] + x[a]", False),
        ("h < (int)blockIdx.x", "x[a]", False),
    ],
)
def test_what_many_iterations_store_alike(loops: str, value: str, is_equal: bool) -> None:
    """How many there are does not matter then; which is the last one does otherwise."""
    knl = made("for i\n <> s[a] = x[a]\n y[b] = s[b]\nend").tag_inames("i: g.0")
    source = knl.cuda()
    inner = "for (int a = 0; a < 3; ++a)"
    heads = [f"for (int {p[0]} = 0; {p}; ++{p[0]})" for p in loops.split("; ")]
    assert inner in source and "= x[a];" in source
    source = source.replace(inner, "\n".join((*heads, inner))).replace("= x[a];", f"= {value};")
    kinds = {finding.kind for finding in prove_source(knl, source).findings}
    assert "text" not in kinds and ("cross-block" not in kinds) == is_equal, source


def test_constants_of_one_name_are_told_apart(monkeypatch) -> None:
    monkeypatch.setattr(EqualValues, "stored", lambda self, one, two, where: where)
    knl = made("for i\n <> s[a] = x[i]\n y[b] = s[b]\nend").tag_inames("i: l.0", unchecked=True)
    source = knl.cuda()
    for line, value in (("s[a] = x[i];", "i"), ("y[b] = s[b];", "0")):
        assert source.count(line) == 1
        changed = line.replace("[i]", "[q]").replace("[b];", "[b + q];")
        block = f"{{\nint const q = {value};\n{changed}"
        source = re.sub(re.escape(line) + "(.*)", lambda m, b=block: b + m[1] + "\n}", source)
    assert prove_source(knl, source).findings


def test_what_threads_combined_may_be_one_value() -> None:
    """Of a combined value is not known on what it depends: its stores are no race that is found."""
    knl = lk.make_kernel(
        "{ [i, k]: 0 <= i < n and 0 <= k < 2 }",
        """
        for i
            <> most = max(k, k)     {id=most}
            u[i] = most             {id=use}
        end
        """,
        dtypes={"u": "int64"},
    )
    knl = knl.tag_inames("k: l.2").add_barrier("id:most", "id:use").tag_inames("i: g.0")
    proof = knl.prove()
    assert not proof.findings, proof


@pytest.mark.parametrize("between", ["x[i] = 2*t", "t = t + 1"])
def test_two_lines_store_what_nothing_changes_between_them(between: str) -> None:
    knl = lk.make_kernel(
        "{ [i, k, b]: 0 <= i < n and 0 <= k < 8 and 0 <= b < m }",
        f"for b, i\n<> t = min(k, c[i, k])\nu[i] = t\n{between}\nu[i] = t\nend",
        dtypes={"c, u" + ", x" * ("x" in between): "int32"},
        assumptions="n, m >= 1",
    )
    if "x" in between:
        assert knl.tag_inames("b: g.0").prove(text=True).ok
        return
    with pytest.raises(lk.RaceError):
        knl.tag_inames("b: g.0")


@pytest.mark.parametrize(
    ("old", "new", "is_equal"),
    [
        ("h < 8", "h < 8", True),
        ("h < 8", "h < 1 + (int)blockIdx.x", True),
        ("h < 8", "h < (int)blockIdx.x", False),
        (r"\+ r;", "+ r * (h + blockIdx.x);", False),
        (r"r = b\[i\];", "r = b[blockIdx.x];", False),
        (r"8(; ..h\)\s+)(s.*;)", r"1 + (int)blockIdx.x\1{ \2 r = h; }", False),
    ],
)
def test_iterations_read_alike_what_their_loop_does_not_write(
    old: str, new: str, is_equal: bool
) -> None:
    knl = lk.make_kernel(
        "{ [t, i, k, p, h]: 0 <= t < m and 0 <= i < n and 0 <= k, p, h < 8 }",
        """
        for t, i
            <> r = b[i]
            <> s[k] = c[i, k] + r {id=fill}
            x[i, p] = s[7 - p]
        end
        """,
        dtypes={"b, c, x": "int32"},
    )
    knl = knl.add_inames_to_insn("h", "id:fill")
    for name in "rs":
        knl = knl.set_temporary_address_space(name, "shared")
    knl = knl.tag_inames("k: l.0, p: l.0, t: g.0")
    source = knl.cuda()
    assert knl.prove().ok and re.search(old, source)
    kinds = {f.kind for f in prove_source(knl, re.sub(old, new, source)).findings}
    assert ("cross-block" not in kinds) == is_equal, kinds


def test_iterations_store_what_their_loop_has_changed(monkeypatch) -> None:
    """One block may store what another has in a later iteration."""
    knl = lk.make_kernel(
        "{ [t, i, k]: 0 <= t < m and 0 <= i < n and 0 <= k < 8 }",
        "for t, i\n<> r = b[i]\nx[k] = r\nend",
        dtypes={"b, x": "int32"},
        assumptions="n, m >= 1",
    )
    knl = knl.set_temporary_address_space("r", "shared").tag_inames("k: l.0")
    with pytest.raises(lk.LoopkitError):
        knl.tag_inames("t: g.0")
    monkeypatch.setattr(EqualValues, "stored", lambda self, one, two, where: where)
    proof = knl.tag_inames("t: g.0", unchecked=True).prove()
    assert {finding.kind for finding in proof.findings} == {"cross-block"}, proof


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"\(5 \* time_outer \+ time_inner < m\)", "(5 * time_outer + time_inner < m - 1)"),
        (r"\(5 \* time_outer \+ time_inner < m\)", "(time_outer + 5 * time_inner < m)"),
        (r"b\[i\] \+ k1;", "b[i] + k1 + time_outer;"),
        (r"b\[i\] \+ k1;", "b[i] + k1 + time_inner;"),
        (r"time_outer = blockIdx.y;", "time_outer = 0;"),
        (r"ii = blockIdx.y;", "ii = threadIdx.y;"),
    ],
)
def test_one_guard_in_two_ways(old: str, new: str) -> None:
    """Guards over names of one index ask the same of a thread, in whatever order they add."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k1, h2]: 0 <= k1, h2 < 3 }", "{ [time]: 0 <= time < m }"],
        "for time\n <> s1[k1] = b[i] + k1\n x[i, h2] = s1[(h2 + 1) % 3]\nend",
        [lk.GlobalArg("x", "int32", shape="n, 3"), ...],
        dtypes={"b": "int16", "x": "int32"},
    )
    knl = knl.split_iname("time", 5, outer_tag="g.1", inner_tag="l.1")
    knl = knl.rename_iname("time_outer", "ii", within="id:insn_0")
    source = knl.cuda()
    assert knl.prove().ok and re.search(old, source)
    assert not prove_source(knl, re.sub(old, new, source)).ok


def shared(text: str) -> lk.Kernel:
    """A kernel of threads in ragged tiles, whose temporaries are in shared memory."""
    knl = made(text)
    for temporary in knl.temporaries:
        if temporary.accumulates is None:
            knl = knl.set_temporary_address_space(temporary.name, "shared")
    return knl.split_iname("i", 8, inner_tag="l.0", outer_tag="g.0")


@pytest.mark.parametrize(
    "text",
    [
        "for i, j\n <> t = x[j]\n y[j] = t\nend",
        "for i, j\n <> t = x[j]*3\n <> u = t + 1\n y[j] = u - t\nend",
        "for i, j\n <> t = sum(k, x[k]*j)\n y[j] = t + 1\nend",
        "for i, j\n if j > 1\n  <> t = x[j]\n  if t > 2\n   y[j] = t\n  end\n end\nend",
        "for i, j\n <> t = x[j]\n if t > 2\n  y[j] = t\n end\nend",
        "for i\n <> s[a] = 2*x[a]\n y[b] = s[2 - b]\nend",
        "for i, j\n <> s[a] = x[a] + j\n y[j] = sum(b, s[b])\nend",
        "for i\n <> s[a] = x[a]\n <> t = s[1]\n <> r[a] = s[2 - a]*t\n y[b] = r[b]\nend",
    ],
)
def test_threads_share_what_each_of_them_has_made(text: str) -> None:
    """Which threads of a block have made it depends on the block, what they make does not."""
    knl = shared(text)
    assert knl.prove().ok and knl.prove(text=True).ok


@pytest.mark.parametrize(
    ("old", "new", "is_equal"),
    [
        ("READ", "if (WHO)\nt = 5;\n__syncthreads();\nREAD", True),
        ("READ", "if (WHO)\nt = 5 + i_outer;\n__syncthreads();\nREAD", False),
        ("READ", "if (i_inner == 0 && i_outer == 1)\nt = 5;\n__syncthreads();\nREAD", False),
        ("= x[j];", "= x[j] + i_outer;", False),
        ("= x[j];", "= x[j] + i_inner;", False),
        ("if (WHO)\nt =", "if (i_inner < 2)\nt =", True),
        ("if (WHO)\nt =", "if (WHO && i_inner < 2)\nt =", False),
        ("if (WHO)\ny", "if (WHO || i_inner == 0)\ny", False),
        ("if (WHO)\nt", "@", False),
    ],
)
def test_threads_share_what_only_some_of_them_have_made(old: str, new: str, is_equal: bool) -> None:
    knl = shared("for i, j\n <> t = x[j]\n y[j] = t\nend")
    who, read = "8 * i_outer + i_inner < n", "if (8 * i_outer + i_inner < n)\ny[j] = t;"
    source = re.sub(r"\n +", "\n", knl.cuda())
    old, new = (t.replace("READ", read).replace("WHO", who) for t in (old, new))
    if new == "@":  # the read comes first
        write = f"if ({who})\nt = x[j];"
        old, new, source = write, read, source.replace(read, "@").replace("@", write)
    assert old in source
    kinds = {f.kind for f in prove_source(knl, source.replace(old, new, 1)).findings}
    assert ("cross-block" not in kinds) == is_equal, kinds
