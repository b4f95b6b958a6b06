"""The expression nodes of loopkit's own behave as pymbolic's do."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from seams import Component, Record, Reduction, TypeCast, TypeName, Whole

INT32 = np.dtype("int32")
NODES = [
    Reduction("sum", ("i",), prim.Variable("x")),
    TypeName(INT32),
    TypeCast(INT32, prim.Variable("i") + 1),
    Record(("value", "index"), (prim.Variable("x"), 1)),
    Component(prim.Variable("x"), "value"),
    Whole(prim.Variable("i"), "<", 3),
]


@pytest.mark.parametrize("node", NODES, ids=lambda node: type(node).__name__)
def test_copies_are_equal(node: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for twin in (copy.deepcopy(node), pickle.loads(pickle.dumps(node))):
            assert twin is not node
            assert twin == node
            assert hash(twin) == hash(node)
            assert repr(twin) == repr(node)
        assert len({node, *NODES}) == len(NODES)
        assert (node + 1).children == (node, 1)


def test_nodes_differ_by_their_fields() -> None:
    assert TypeCast(INT32, 1) != TypeCast(np.dtype("int64"), 1)
    assert Reduction("sum", ("i",), 1) != Reduction("sum", ("j",), 1)
    assert Whole(prim.Variable("i"), "<", 3) != prim.Comparison(prim.Variable("i"), "<", 3)
