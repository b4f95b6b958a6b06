"""The same schedule is accepted in any order of its steps, and in one step or several."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from campaign.orders import explore, gallery
from seams import address_space_of as space_of

import loopkit as lk
from loopkit import AddressSpace

TAGS = {"b": "g.0", "t": "l.0", "u": "l.0", "v": "l.0"}


def histogram(_=None):
    """Each thread counts in a column of its own; the columns are added up."""
    counts = lk.TemporaryVariable("h", shape=(16, 16), dtype="int32")
    knl = lk.make_kernel(
        ["{ [b]: 0 <= b < nb }", "{ [t, w, z, v, s, u]: 0 <= t, s, u, v, w < 16 and 0 <= z < nz }"],
        """
        for b
          for w, u
            h[w, u] = 0 {id=zero}
          end
          for t, z
            h[x[b, t, z], t] = h[x[b, t, z], t] + 1 {id=count}
          end
          for v
            out[b, v] = sum(s, h[v, s]) {id=add}
          end
        end
        """,
        [counts, ...],
        dtypes={"x, out": "int32"},
        assumptions="nb >= 1 and nz >= 1",
    )
    return knl


def cells(_=None):
    """The same without data: each thread changes what it was given."""
    return lk.make_kernel(
        ["{ [b]: 0 <= b < nb }", "{ [t, u, v, s]: 0 <= t, u, v, s < 16 }"],
        """
        for b
          for u
            <> h[u] = 0 {id=zero}
          end
          for t
            h[t] = h[t] + x[b, t] {id=count}
          end
          for v
            out[b, v] = sum(s, h[s]) {id=add}
          end
        end
        """,
        dtypes={"x, out": "float32"},
        assumptions="nb >= 1",
    )


def tagged(knl, order, space=None, place=0):
    """Tags one at a time, the space of ``h`` set before the one with number ``place``."""
    for number, iname in enumerate(order):
        if space is not None and number == place:
            knl = knl.set_temporary_address_space("h", space)
        knl = knl.tag_inames({iname: TAGS[iname]})
    return (
        knl if space is None or place < len(order) else knl.set_temporary_address_space("h", space)
    )


@pytest.mark.parametrize("make", [histogram, cells])
@pytest.mark.parametrize("space", [None, "shared"])
def test_any_order_of_tags(make, space):
    for number, order in enumerate(permutations(TAGS)):
        knl = tagged(make(None), order, space, number % 5)
        assert [s.verdict for s in knl.history if s.verdict != "proven"] == [], order
        assert space_of(knl, knl.temporary_by_name["h"]) is AddressSpace.LOCAL


@pytest.mark.parametrize("make", [histogram, cells])
def test_all_tags_at_once(make):
    knl = make(None).tag_inames(TAGS)
    if make is histogram:
        knl = knl.assume_within("x", 0, 16)
    assert knl.prove().ok
    assert knl.set_temporary_address_space("h", "shared").prove().ok


def test_histogram_runs():
    x = np.random.default_rng(0).integers(0, 16, (3, 16, 5)).astype(np.int32)
    plain = histogram().executor("reference")(x=x)
    assert np.array_equal(histogram().tag_inames(TAGS).executor("reference")(x=x), plain)
    assert np.array_equal(plain, [np.bincount(row.ravel(), minlength=16) for row in x])


# {{{ what data look up


def looked_up(text):
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < 16 and 0 <= j < n }",
        text,
        [lk.TemporaryVariable("t", shape=(8,), dtype="float32"), ...],
        dtypes={"a, y": "float32", "x": "int32"},
        assumptions="n >= 1",
    )


def test_writes_of_what_data_look_up_keep_their_order():
    """Whichever cell is read, it holds what was written to it last."""
    knl = looked_up("t[i // 2] = a[i]\ny[j] = t[x[j]]")
    with pytest.raises(lk.IllegalTransformError, match="in another order"):
        knl.map_domain("{ [i] -> [ii]: ii = 15 - i }")
    assert knl.split_iname("i", 4).history[-1].verdict == "proven"
    once = looked_up("t[i // 2] = a[i] {if=i % 2 == 0}\ny[j] = t[x[j]]")
    assert once.map_domain("{ [i] -> [ii]: ii = 15 - i }").history[-1].verdict == "proven"


def test_writes_of_an_argument_that_data_look_up_keep_their_order():
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i < 16 and 0 <= j < n and 0 <= k < 8 }",
        "t[i // 2] = a[i]\ny[j] = t[x[j]]\nt[k] = 0",
        [lk.GlobalArg("t", shape=(8,)), ...],
        dtypes={"a, t, y": "float32", "x": "int32"},
        assumptions="n >= 1",
    )
    with pytest.raises(lk.IllegalTransformError, match="in another order"):
        knl.map_domain("{ [i] -> [ii]: ii = 15 - i }")


def blocks(text):
    return lk.make_kernel(
        "{ [b, w, t]: 0 <= b < nb and 0 <= w < 8 and 0 <= t < 4 }",
        text,
        [lk.TemporaryVariable("h", shape=(8,), dtype="int32"), ...],
        dtypes={"x, out": "int32"},
        assumptions="nb >= 1",
    ).set_temporary_address_space("h", "shared")


ZEROED = """
for b
  for w
    h[w] = 0 {%s}
  end
  for t
    h[x[b, t]] = h[x[b, t]] + 1
  end
  out[b] = h[x[b, 0]]
end
"""


def test_what_every_block_sets_anew():
    """No block sees what another one counted: its cells are all set to zero in between."""
    assert blocks(ZEROED % "id=zero").tag_inames("b: g.0").history[-1].verdict == "proven"


@pytest.mark.parametrize(
    "condition", ["w < 7 or b == 0", "w > 0 or b == 0", "b == 0", "b % 2 == 0"]
)
def test_what_not_every_block_sets_anew(condition):
    """Some cell keeps what earlier blocks counted, and data may ask for it."""
    with pytest.raises((lk.IllegalTransformError, lk.UndecidedError), match="its own 'h'"):
        blocks(ZEROED % f"if={condition}").tag_inames("b: g.0")


# }}}
# {{{ where temporaries live


def space(text, tags, **more):
    knl = lk.make_kernel(
        "{ [b, t, j]: 0 <= b < 4 and 0 <= t < 8 and 0 <= j < 4 }",
        text,
        [lk.TemporaryVariable("h", shape=more.get("shape", (8,)), dtype="int32"), ...],
    )
    knl = knl.tag_inames(tags, unchecked=True)
    return space_of(knl, knl.temporary_by_name["h"])


def test_a_block_that_only_looks_up_a_cell_keeps_its_own():
    text = "for b, t\n h[x[b, t]] = 1\n out[b, t] = h[x[b, t]]\nend"
    assert space(text, "b: g.0") is AddressSpace.PRIVATE
    assert space(text, "b: g.0, t: l.0") is AddressSpace.LOCAL
    assert space(text, "t: l.0, b: g.0") is AddressSpace.LOCAL


def test_what_other_blocks_read_is_global():
    text = "for b, t\n h[x[b, t]] = 1\nend\nfor j\n out[j] = h[x[0, j]]\nend"
    assert space(text, "b: g.0") is AddressSpace.GLOBAL
    assert space("h[b] = 1\nout[b] = h[b]", "b: g.0", shape=(4,)) is AddressSpace.GLOBAL


# }}}
# {{{ schedules taken apart


@pytest.mark.parametrize("example", ["axpy", "matmul", "stencil_5", "transpose", "wavefront"])
def test_gallery_in_other_orders(example):
    seen = gallery(example)
    assert seen.counts["accepted"] and not seen.found


def test_random_sequences_in_other_orders():
    seen = explore(3001, sequences=3, steps=5)
    assert not [f for f in seen.found if f.kind == "accepted otherwise"]


# }}}


@pytest.mark.parametrize("where", ["above", "below", "both"])
def test_alike_statements_stand_at_several_places(where):
    """Of stores to the same cells, one may be above another statement, and one below."""
    above = "x[j + 1, i + 1] = d[j, i] {id=above}" if where != "below" else ""
    below = "x[j + 1, i + 1] = d[j, i] + 1 {id=below}" if where != "above" else ""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 2 }", "{ [j]: 0 <= j < n }"],
        f"""
        for i, j
            {above}
            x[j + i, i] = d[i, j]  {{id=between}}
            {below}
        end
        """,
        dtypes={"d, x": "int32"},
        assumptions="n >= 1",
    )
    if where == "above":  # its write is older than the one that stays, on whatever thread
        assert knl.tag_inames("i: l.0").history[-1].verdict == "proven"
        return
    with pytest.raises(lk.IllegalTransformError) as caught:
        knl.tag_inames("i: l.0")
    assert "'below' (i=0, j=0) would overwrite x[1, 1]" in str(caught.value)
