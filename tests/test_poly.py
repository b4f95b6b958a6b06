"""Program order, last writers and places in arrays, compared with what enumeration finds."""

from __future__ import annotations

from itertools import product

import islpy as isl
import pymbolic.primitives as prim
import pytest
from seams import (
    READER,
    WRITER,
    Dataflow,
    Model,
    ProgramOrder,
    all_equal,
    before,
    inside,
    instance,
    instances,
    is_inside,
    outside,
    steps,
)
from seams import PolyInstance as Instance
from seams import sets as _sets

import loopkit as lk

BOX = range(-1, 3)


def holds(where: isl.Set, values: dict[str, int]) -> bool:
    """Whether a point lies in a set; of names that it does not mention nothing is asked."""
    for name, value in values.items():
        position = where.find_dim_by_name(_sets.PARAM, name)
        if position >= 0:
            where = where.fix_val(_sets.PARAM, position, _sets.val(value))
    return not where.is_empty()


@pytest.mark.parametrize("length", [0, 1, 2])
def test_times_are_compared_as_tuples(length: int) -> None:
    names = ["i", "j"][:length]
    times = steps(names, "1", "2")
    for one in product(BOX, repeat=length):
        for two in product(BOX, repeat=length):
            values = {instance(n, "1"): v for n, v in zip(names, one, strict=True)}
            values |= {instance(n, "2"): v for n, v in zip(names, two, strict=True)}
            assert sum(holds(piece, values) for piece in before(times)) == (one < two)
            assert holds(all_equal(times), values) == (one == two)


def test_loops_come_before_the_text() -> None:
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, j, k < n }",
        """
        for i
          for j
            a[i, j] = 1 {id=first}
          end
          for k
            b[i, k] = 2 {id=second}
          end
        end
        """,
    )
    order = ProgramOrder(knl)
    one, two = Instance("first", "1"), Instance("second", "2")
    assert order.shared_loops("first", "second") == ("i",)
    assert [level for level, _ in order.before_by_loop(one, two)] == [1, 0]
    assert [level for level, _ in order.before_by_loop(two, one)] == [0]
    for i, other in product(BOX, BOX):
        values = {instance("i", "1"): i, instance("i", "2"): other}
        assert any(holds(p, values) for p in order.before(one, two)) == (i <= other)
        assert any(holds(p, values) for p in order.before(two, one)) == (other < i)


STENCIL = """
for i
  t[i] = a[i] {id=put}
  b[i] = t[i - 1] + t[i] {id=get}
end
"""


def test_the_last_writer() -> None:
    knl = lk.make_kernel("{ [i]: 1 <= i < n }", STENCIL, [lk.GlobalArg("t", shape="n"), ...])
    dataflow = Dataflow(Model(knl))
    i = prim.Variable("i")
    found = dataflow.of_read("get", ("t", (prim.Sum((i, -1)),)))
    for reader, writer, n in product(range(5), range(5), range(5)):
        values = {instance("i", READER): reader, instance("i", WRITER): writer, "n": n}
        runs = 1 <= reader < n and 1 <= writer < n
        assert holds(found.writes["put"], values) == (runs and writer == reader - 1)
        assert holds(found.untouched, values) == (reader == 1 < n)


def test_what_nothing_can_have_written() -> None:
    knl = lk.make_kernel("{ [i]: 1 <= i < n }", STENCIL, [lk.GlobalArg("t", shape="n"), ...])
    dataflow, i = Dataflow(Model(knl)), prim.Variable("i")
    assert dataflow.unwritten("get", ("t", (i,))) is None
    open_ = dataflow.unwritten("get", ("t", (prim.Sum((i, -1)),)))
    assert open_ is not None
    for number, n in product(range(5), range(5)):
        assert holds(open_, {"i": number, "n": n}) == (number == 1 < n)


def loaded(index: str) -> lk.Kernel:
    """Data decide how many cells are written, ``index`` is read."""
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "[count] -> { [j]: 0 <= j < count }"],
        f"""
        for i
          <> count = counts[i]
          for j
            t[j + 1] = a[j] {{id=put}}
          end
          b[i] = t[{index}] {{id=get}}
        end
        """,
        [lk.TemporaryVariable("t", "float32", shape=(8,)), lk.GlobalArg("a", shape=(8,)), ...],
        dtypes={"counts": "int32", "a": "float32"},
        assumptions="n >= 1",
    )


def test_bounds_from_data_write_no_other_cells() -> None:
    loaded("1")
    with pytest.raises(lk.UninitializedReadError, match=r"reads t\[0\] before"):
        loaded("0")


def test_each_instance_has_bounds_of_its_own() -> None:
    """Loaded bounds of two instances may differ, wherever a set speaks of both."""
    model = Model(loaded("1"))
    names = instances(["j", "count"], "1")
    assert set(names.values()) <= set(_sets.names_of(model.domain(Instance("put", "1"))))
    around = model.labelled(model.kernel.domain_of(["j"]), "1")
    assert set(names.values()) <= set(_sets.names_of(around))


def test_positions_on_an_axis() -> None:
    i, n = prim.Variable("i"), prim.Variable("n")
    for value, length in product(BOX, BOX):
        point = {"i": value, "n": length}
        assert holds(inside(i, n), point) == (0 <= value < length)
        beyond = {is_below: holds(where, point) for is_below, where in outside(i, n)}
        assert beyond == {True: value < 0, False: value >= length}
    square = prim.Product((i, n))
    assert [is_below for is_below, _ in outside(i, square)] == [True]
    domain = inside(i, 4)
    assert is_inside(domain, i, 4) and not is_inside(domain, i, 3)
    assert not is_inside(domain, i, square)
