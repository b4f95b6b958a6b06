"""Temporaries that get more axes: each read still finds the value that it saw before."""

from __future__ import annotations

import pytest
from classics import CLASSICS, in_order
from pace import timed
from seams import (
    Change,
    check_change,
    descend,
    lineage_of,
    obligations_of,
    parse_expression,
    with_axes,
)

import loopkit as lk

TEXTS = {
    "used": """
        for i, j
            t[j] = a[i, j] {id=set}
            b[i, j] = 2*t[j] {id=use}
        end
        """,
    "summed": """
        for i, j
            t[j] = 0 {id=set}
            for k
                t[j] = t[j] + a[k, j] {id=add}
            end
            b[i, j] = t[j] {id=use}
        end
        """,
    "reduced": "b[i, j] = sum(k, a[k, j])",
    "carried": """
        for i, j
            if i > 0
                b[i, j] = t[j] {id=use}
            end
            t[j] = a[i, j] {id=set}
            t[j] = 2*t[j] {id=again}
        end
        """,
    "two writers": """
        for i, j
            t[j] = a[i, j] {id=set}
            if i > 3
                t[j] = a[0, j] {id=again}
            end
            b[i, j] = t[j] {id=use}
        end
        """,
}


def text(name: str) -> lk.Kernel:
    has_t = name != "reduced"
    temporaries = [lk.TemporaryVariable("t", "float32", (8,))] if has_t else []
    return lk.make_kernel(
        "{ [i, j, k]: 0 <= i, k < 16 and 0 <= j < 8 }",
        TEXTS[name],
        [*temporaries, ...],
        dtypes={"a, b": "float32"},
    )


def widened(knl: lk.Kernel, **indices: str) -> Change:
    """One more axis of a temporary; its subscript in statements whose ids begin so."""
    (temporary,) = knl.temporaries
    added = {
        s.id: (parse_expression(next(e for name, e in indices.items() if s.id.startswith(name))),)
        for s in knl.statements
        if temporary.name in s.names
    }
    return Change(with_axes(knl, temporary, [16], added))


#: A text, the new subscripts, and whether these keep all values.
CASES: dict[str, tuple[str, dict[str, str], bool]] = {
    "an axis for each row": ("used", {"set": "i", "use": "i"}, True),
    "backwards": ("used", {"set": "15 - i", "use": "15 - i"}, True),
    "of each two rows": ("used", {"set": "i // 2", "use": "i // 2"}, True),
    "another row": ("used", {"set": "i", "use": "15 - i"}, False),
    "no row": ("used", {"set": "i", "use": "0"}, False),
    "outside": ("used", {"set": "i + 1", "use": "i + 1"}, False),
    "a sum for each row": ("summed", {"set": "i", "add": "i", "use": "i"}, True),
    "of a sum one term": ("summed", {"set": "0", "add": "k", "use": "0"}, False),
    "a sum that starts elsewhere": ("summed", {"set": "0", "add": "i", "use": "i"}, False),
    "terms in cells of their own": (
        "summed",
        {"set": "i", "add": "(i + k) % 16", "use": "i"},
        False,
    ),
    "a reduction": ("reduced", {"insn": "i"}, True),
    "a reduction in cells of its terms": ("reduced", {"insn_update": "k", "insn": "0"}, False),
    "carried, a row": ("carried", {"set": "i", "again": "i", "use": "i"}, False),
    "carried, from the row before": ("carried", {"set": "i", "again": "i", "use": "i - 1"}, True),
    "either writer": ("two writers", {"set": "i", "again": "i", "use": "i"}, True),
    "one writer elsewhere": ("two writers", {"set": "i", "again": "0", "use": "i"}, False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_cell_for_each_value(name: str) -> None:
    which, indices, is_right = CASES[name]
    knl = text(which)
    change = widened(knl, **indices)
    if is_right:
        check_change(knl, change)
    else:
        with pytest.raises((lk.IllegalTransformError, lk.OutOfBoundsError)):
            check_change(knl, change)


@pytest.mark.parametrize("name", ["an axis for each row", "a sum for each row", "a reduction"])
def test_most_are_seen_to_be_right(name: str) -> None:
    """Nothing is asked of what the statements compute; only of the new axis itself."""
    which, indices, _ = CASES[name]
    knl = text(which)
    change = widened(knl, **indices)
    left = obligations_of(knl, change, descend(lineage_of(knl), knl, change))
    assert left is not None and left.arrays


def test_the_lanes_of_a_product_in_milliseconds() -> None:
    """The loops are exchanged around a sum that needs an axis for each of five of them."""
    classic = CLASSICS["lanes, joined last"]
    knl = classic.make()
    *_, knl = in_order(knl, classic.orders(knl, "")["as listed"][:12])
    wide, taken = timed(lambda: knl.privatize_temporaries_with_inames("wi", "acc"))
    assert wide.history[-1].verdict == "proven" and taken < 0.2
    joined, taken = timed(lambda: knl.join_inames(["wi", "wj"], "warp"))
    assert joined.history[-1].verdict == "proven" and taken < 0.5
