"""What computations may spend: one table, and answers that depend on nothing else."""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import islpy as isl
import pytest
from seams import budget as _budget

import loopkit as lk

ROOT = Path(__file__).resolve().parents[1]
FILES = [p for f in ("loopkit", "codegen", "transforms") for p in (ROOT / f).rglob("*.py")]

BOUNDS = ("at_most", "apart_from_kept", "within")


def limits(tree: ast.Module) -> Iterator[ast.expr]:
    """What isl is allowed, wherever it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in BOUNDS:
            yield node.args[0]


def test_limits_stand_in_the_table() -> None:
    """No other module says how much anything may spend."""
    seen = 0
    for path in FILES:
        text = path.read_text()
        if "from loopkit._budget import" not in text:
            continue
        for limit in limits(ast.parse(text)):
            seen += 1
            numbers = {n.value for n in ast.walk(limit) if isinstance(n, ast.Constant)}
            assert numbers <= {1, 2}, f"{path}: {ast.unparse(limit)}"
    assert seen > 10


# {{{ what is kept


def spend(operations: int) -> None:
    """Have isl do some operations."""
    for _ in range(operations):
        isl.Val(1).neg()  # one for the number, one for its opposite


def test_what_was_spent_can_be_told() -> None:
    for operations in (0, 1, 5, 31, 32, 33, 34, 97):
        with _budget.at_most(100):
            for _ in range(operations):
                _budget._ONE.neg()
            assert _budget._spent(100) == operations


def test_what_is_kept_has_a_budget_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_budget, "KEPT", 100)

    def work(before: int, inside: int, after: int) -> None:
        spend(before)
        _budget.kept(spend, inside)
        spend(after)

    def is_allowed(*operations: int) -> bool:
        try:
            _budget.within(60, lambda: work(*operations))
        except _budget.SpentError:
            return False
        assert isl.DEFAULT_CONTEXT.get_max_operations() == 0
        return True

    assert is_allowed(1, 1, 1)
    assert is_allowed(15, 50, 15) and is_allowed(0, 50, 30) and is_allowed(30, 50, 0)
    assert not is_allowed(16, 0, 15)
    assert not is_allowed(15, 50, 16) and not is_allowed(30, 50, 1)
    assert not is_allowed(0, 51, 0)


def test_a_glance_decides_nothing() -> None:
    """Whoever catches that isl has spent all, does not see it where more is allowed."""
    seen = []

    def work() -> str:
        try:
            return _budget.within(80, lambda: spend(30)) or "done"
        except _budget.SpentError:
            seen.append("spent")
            return "not done"

    assert _budget.within(100, work) == "done"
    assert not seen


def stencil() -> lk.Kernel:
    return lk.make_kernel(
        "{ [i, j]: 1 <= i < n - 1 and 0 <= j < m - 1 }",
        "a[i, j] = (a[i - 1, j] + a[i - 1, j + 1]) / 2 {id=step}",
        dtypes={"a": "float32"},
        assumptions="n, m >= 2",
    )


def chain() -> lk.Kernel:
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }", "{ [k]: 0 <= k < n }"],
        """
        for i
          <> t[i] = x[i]*2 {id=a}
        end
        for j
          <> u[j] = t[n - 1 - j] + t[j] {id=b}
        end
        for k
          y[k] = u[k] + u[n - 1 - k] {id=c}
        end
        """,
        dtypes={"x": "float32"},
        assumptions="n >= 1",
    )


Asked = Callable[[lk.Kernel], object]


def swapped(kernel: lk.Kernel) -> object:
    return kernel.prioritize_loops("j, i")


def tagged(kernel: lk.Kernel) -> object:
    return kernel.tag_inames("j: l.0")


def in_blocks(kernel: lk.Kernel) -> object:
    return kernel.split_iname("i", 16, outer_tag="g.0")


def split(kernel: lk.Kernel) -> object:
    return kernel.split_iname("j", 16)


def is_decided(kernel: lk.Kernel, step: Asked, operations: int) -> bool:
    """Whether so many operations are enough to prove a step, or to refuse it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_budget, "STEP", operations)
        try:
            step(kernel)
        except lk.UndecidedError:
            return False
        except lk.IllegalTransformError:
            pass
    return True


@pytest.mark.parametrize(
    ("make", "step"),
    [(stencil, swapped), (stencil, tagged), (chain, in_blocks)],
    ids=["swap", "tag", "chain"],
)
def test_answers_do_not_depend_on_what_was_asked_before(
    make: Callable[[], lk.Kernel], step: Asked
) -> None:
    """The smallest budget that is enough is the same after any other question.

    But for what isl itself remembers of a set, which is little: some 130 operations of 6,700 here.
    """
    few, enough = 0, 100_000
    while enough - few > 1:
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_decided(make(), step, middle) else (middle, enough)
    assert few > 1000, "so little that nothing can be seen"
    for before in (step, split, str, lk.Kernel.cuda, lk.Kernel.prove):
        for operations in (few * 97 // 100, enough * 103 // 100):
            kernel = make()
            with contextlib.suppress(lk.LoopkitError):
                before(kernel)
            for _ in range(2):
                assert is_decided(kernel, step, operations) == (operations > few)


# }}}


def test_an_error_is_raised_by_itself() -> None:
    """Its traceback does not begin with the search for an answer that is remembered."""
    knl = lk.make_kernel("{ [i]: 0 <= i < n }", "a[i] = b[i]")
    with pytest.raises(lk.LoopkitError) as caught:
        knl.cuda()
    assert caught.value.__context__ is None
