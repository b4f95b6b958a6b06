"""Arguments by other names, in another order, and fewer of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pymbolic.primitives as prim
import pytest
from conftest import Golden
from seams import Change, arguments, check_change, substitute

import loopkit as lk

ORDERS = ("ascending", "descending", "random")


def gather() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 3 }",
        """
        f(x) := a[x]*2 + s
        b[i] = sum(j, f(i) + c[idx[i], j])  {if=mask[i] > 0}
        """,
        [
            lk.GlobalArg("c", shape="m, 3"),
            lk.GlobalArg("spare", "float64", "q"),
            lk.ValueArg("s", "float64"),
            ...,
        ],
        dtypes={"a, b, c": "float64", "idx, mask": "int32"},
        assumptions="n, m >= 1",
        name="gather",
    ).assume_within("idx", 0, "m")


def scheduled() -> lk.Kernel:
    return gather().split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")


NEW = {"a": "alpha", "n": "count", "m": "rows", "idx": "col", "c": "table", "s": "shift"}


def called(knl: lk.Kernel) -> lk.Kernel:
    for old, new in NEW.items():
        knl = knl.rename_argument(old, new)
    return knl


def test_generated_texts(golden: Golden) -> None:
    other = called(scheduled())
    order = reversed([a.name for a in other.args])
    shown = [other, other.set_argument_order(list(order)), other.remove_unused_arguments()]
    golden("argument_names.txt", "\n\n".join(f"{k}\n\n{k.cuda()}" for k in shown))


@pytest.mark.host
@pytest.mark.parametrize("n", [1, 7, 33])
def test_calls_by_new_names(n: int) -> None:
    rng = np.random.default_rng(n)
    a, c = rng.uniform(size=n), rng.uniform(size=(4, 3))
    idx, mask = rng.integers(0, 4, n, "int32"), rng.integers(0, 2, n, "int32")
    given = {"a": a, "c": c, "idx": idx, "mask": mask, "s": 0.5, "b": np.zeros(n)}
    want = gather().remove_unused_arguments().executor("reference")(**given)
    knl = called(scheduled()).remove_unused_arguments()
    knl = knl.split_iname("j", 2).add_prefetch("alpha", "i_inner")
    assert knl.prove().ok
    for order in ORDERS:
        again = {NEW.get(k, k): v for k, v in (given | {"b": np.zeros(n)}).items()}
        found = knl.executor("host", order=order, seed=1)(**again)
        np.testing.assert_allclose(found, want)


def test_order_of_steps_and_names() -> None:
    """A name may change before a schedule or behind it; the text is called alike."""
    first = called(gather()).split_iname("i", 8, outer_tag="g.0", inner_tag="l.0")
    assert first == called(scheduled())
    assert first.lineage is not None and set(NEW.values()) <= first.lineage.root.arg_by_name.keys()
    assert lk.replay(gather(), first.history[1:]) == first
    assert first.rename_argument("alpha", "a").rename_argument("a", "alpha") == first
    fixed = gather().fix_parameters(m=5).rename_argument("n", "count")
    assert fixed.split_iname("i", 4).prove().ok


REFUSED: list[tuple[Any, str]] = [
    (lambda k: k.rename_argument("a", "b"), "the name 'b' is taken"),
    (lambda k: k.rename_argument("a", "i"), "the name 'i' is taken"),
    (lambda k: k.rename_argument("a", "x"), "the name 'x' is taken"),
    (lambda k: k.rename_argument("a", "int"), "int"),
    (lambda k: k.rename_argument("i", "k"), "there is no argument 'i'"),
    (lambda k: k.set_argument_order("a, b"), "lacks 'c'"),
    (lambda k: k.set_argument_order([a.name for a in k.args]), "have this order already"),
    (lambda k: k.set_argument_order("a, what"), "there is no argument 'what'"),
    (
        lambda k: k.remove_unused_arguments().remove_unused_arguments(),
        "needs all of its arguments",
    ),
]


@pytest.mark.parametrize(("step", "why"), REFUSED)
def test_refusals(step: Any, why: str) -> None:
    with pytest.raises(lk.LoopkitError) as refused:
        step(gather())
    assert why in str(refused.value)


def test_nothing_else_changes() -> None:
    """What a step says of names is not believed: the kernel before, so called, is compared."""
    knl = scheduled()
    names = {a.name: a.name for a in knl.args}
    other = knl.with_(args=knl.args[::-1])
    with pytest.raises(lk.IllegalTransformError, match="more would be others"):
        check_change(knl, Change(other, arguments=names))
    less = knl.with_(args=tuple(a for a in knl.args if a.name != "a"))
    with pytest.raises(lk.IllegalTransformError, match="argument 'a' is needed"):
        check_change(knl, Change(less, arguments={n: n for n in names if n != "a"}))


def test_a_fault_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement that reads another array than the one with the new name."""
    original = arguments.with_arguments_named

    def faulty(kernel: lk.Kernel, names: Any) -> lk.Kernel:
        wrong = original(kernel, {"b": "b", **names})
        (new,) = names.values()
        swapped = {new: prim.Variable("b")}
        statements = tuple(
            s.map_expressions(lambda e: substitute(e, swapped)) for s in wrong.statements
        )
        return wrong.with_(statements=statements)

    knl = lk.make_kernel(
        "{ [i]: 0 <= i < n }", "c[i] = a[i] + 2*b[i]", dtypes={"a, b, c": "float64"}
    )
    monkeypatch.setattr(arguments, "with_arguments_named", faulty)
    with pytest.raises(lk.IllegalTransformError, match="more would be others"):
        knl.rename_argument("a", "alpha")
    assert knl.rename_argument("a", "alpha", unchecked=True).history[-1].verdict == "unchecked"
