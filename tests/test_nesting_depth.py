"""Deep and long expressions: a right answer, or an error that says what is too deep."""

from __future__ import annotations

import numpy as np
import pytest
from seams import MOST_NESTED, guarded_reads, nesting

import loopkit as lk


def kernel(text: str, more: str = "") -> lk.Kernel:
    data = [lk.GlobalArg(name, "int32", shape="n") for name in "abc"]
    return lk.make_kernel("{ [i]: 0 <= i < n }", f"d[i] = ({text}){more}", [*data, ...])


DEEP = {
    "left": lambda n: "(" * (n // 2) + "a[i]" + " + b[i])*c[i]" * (n // 2),
    "right": lambda n: "a[i]*(b[i] + " * (n // 2) + "1" + ")" * (n // 2),
    "calls": lambda n: "max(b[i], " * n + "a[i]" + ")" * n,
    "choices": lambda n: "(b[i] if a[i] > 1 else " * n + "a[i]" + ")" * n,
    "not": lambda n: "1 if " + "not " * n + "(a[i] > 1) else 2",
}
LONG = {
    "sum": lambda n: " + ".join(["a[i]"] * n),
    "sum of products": lambda n: " + ".join(["a[i]", "b[i]*c[i]"] * (n // 2)),
    "product": lambda n: "*".join(["a[i]"] * n),
}


@pytest.mark.parametrize("name", DEEP)
def test_what_may_be_made_can_be_worked_with(name):
    text = DEEP[name](MOST_NESTED - 4)
    one, two = kernel(text), kernel(text, " + 1")
    assert nesting(one.statements[0].rhs) > MOST_NESTED - 10
    assert lk.verify(one, two).answer != "equal"
    assert lk.verify(one, one)
    assert one.cuda()
    given = {name: np.arange(3, dtype=np.int32) for name in "abc"}
    mine, its = (k.executor("reference")(**given) for k in (one, two))
    np.testing.assert_array_equal(mine, its - 1)


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("depth", [150, 400, 3000])
def test_what_is_deeper_is_refused_when_it_is_made(name, depth):
    with pytest.raises(lk.ParseError, match=f"may nest {MOST_NESTED} operations deep"):
        kernel(DEEP[name](depth))


def test_more_text_than_anybody_writes_is_refused_by_its_length():
    with pytest.raises(lk.InvalidArgumentError, match="instructions has 2,000,000 characters"):
        lk.make_kernel("{ [i]: 0 <= i < n }", "a[i] = 1".ljust(2_000_000))


def test_rules_are_written_out_to_measure():
    rules = ["f0(x) := x + 1"]
    rules += [f"f{k}(x) := (f{k - 1}(x) + 1)*2" for k in range(1, 70)]
    with pytest.raises(lk.ParseError, match="rules written out"):
        lk.make_kernel("{ [i]: 0 <= i < n }", "\n".join([*rules, "d[i] = f69(a[i])"]))


@pytest.mark.parametrize("name", LONG)
def test_long_sums_and_products(name):
    text = LONG[name](800)
    one, two = kernel(text), kernel(text, " + 1")
    assert nesting(one.statements[0].rhs) < 4
    verdict = lk.verify(one, two)
    assert verdict.answer == "different"
    assert lk.verify(one, kernel(text))
    given = {name: np.ones(3, dtype=np.int32) for name in "abc"}
    assert one.executor("reference")(**given).tolist() == [1 if name == "product" else 800] * 3


def test_what_data_decide_is_not_carried_from_part_to_part():
    """A condition of many parts takes as long as its parts."""
    parts = " and ".join(f"a[i] > {k}" for k in range(500))
    made = kernel(f"(b[i] if i > 2 and {parts} else c[i])")
    reads = guarded_reads(made.statements[0], affinely=True)
    assert len(reads) > 1000
    assert max(len(guards) for _, _, guards in reads) == 1
    given = {name: np.arange(600, dtype=np.int32) for name in "abc"}
    result = made.executor("reference")(**given)
    np.testing.assert_array_equal(result, np.arange(600))
