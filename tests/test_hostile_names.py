"""Whatever users call things, verdicts, refusals and the generated code are the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from campaign.naming import Renaming
from gallery import kernels, load
from hostile import hostile, names_of, skewed, spoken, tokens, written
from refusals.case import Case, Step, schedule
from refusals.everything import CASES
from seams import hidden_module as _hidden

import loopkit as lk

EXAMPLES = (
    *(
        "argmin",
        "axpy",
        "batched_4x4",
        "convolution",
        "dg_gradient",
        "matmul",
        "matmul_fused",
        "n_body",
    ),
    *("segmented_sum", "stencil_5", "transpose", "triangular_solve", "vector_add", "wavefront"),
)


def _anew(make: Callable[[], lk.Kernel], r: Renaming) -> lk.Kernel:
    """A kernel under other names; those that its author gave are remembered."""
    with spoken(r):
        return getattr(make, "__wrapped__", make)()


def _steps(steps: tuple[Step, ...], r: Renaming) -> tuple[Step, ...]:
    return tuple(Step(s.transform, r.value(s.args), r.value(s.options)) for s in steps)


@pytest.mark.slow
@pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in CASES.items()])
def test_refused(case: Case) -> None:
    """An illegal schedule is refused as it is under the names that its author gave."""
    r = hostile(case.kernel(), case.name)
    kernel = _anew(case.kernel, r)
    assert sorted(names_of(kernel)) == sorted(r.names.values())
    before = schedule(kernel, _steps(case.chain, r))
    [illegal] = _steps((case.illegal,), r)
    with pytest.raises(case.error) as caught:
        illegal.apply(before)
    assert not _hidden.is_hidden(str(caught.value)), "a message shows a made-up name"
    if case.expected.array is not None:
        witness = caught.value.witness
        assert witness is not None, str(caught.value)
        mine = {str(i).partition("[")[0] for i in (witness.source, witness.sink)}
        ids = {(end or "").partition("[")[0] for end in (case.expected.source, case.expected.sink)}
        assert {r.text(i) for i in ids} == mine, str(caught.value)
    legal = case.legal_kernel or case.kernel
    more = hostile(legal(), case.name)
    schedule(_anew(legal, more), _steps(case.legal, more))


def _function(kernel: lk.Kernel) -> str:
    """The generated code without the helpers above it."""
    return kernel.cuda().partition("__global__")[2]


@pytest.mark.parametrize("example", EXAMPLES)
def test_gallery(example: str) -> None:
    """Schedules are accepted, and become the same code, but for the names."""
    known = kernels(example)
    plain = next(k for k in known.values() if not k.history)
    r = hostile(plain, example)
    with spoken(r):
        made = load(example).make()
    for title, kernel in known.items():
        other = made[title]
        assert [s.verdict for s in other.history] == [s.verdict for s in kernel.history]
        assert tokens(_function(other)) == tokens(r.text(_function(kernel)))
        assert bool(other.prove()) == bool(kernel.prove())


# {{{ what these tests are for: the names as they once were


@pytest.fixture
def spelled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two underscores stand where no user can write."""
    monkeypatch.setattr(_hidden, "_DOT", "__")


@pytest.mark.parametrize("sizes", [("i__b", "m"), ("n", "j__w"), ("i__R", "j__R")])
@pytest.mark.usefixtures("spelled")
def test_spelled_instances_show(sizes: tuple[str, str]) -> None:
    """Sizes that are called as instances are would be these instances: sets do not take that."""
    with pytest.raises(AssertionError, match="__"):
        skewed(*sizes).prioritize_loops("j, i")


@pytest.mark.usefixtures("spelled")
def test_spelled_writers_show() -> None:
    """A size that is called as the writer's iname is would be that iname."""
    with pytest.raises(AssertionError, match="i__W"):
        written("i__W")


@pytest.mark.usefixtures("spelled")
def test_spelled_names_fail_the_tests_above() -> None:
    """An illegal schedule is not refused by its case."""
    for name in ("shift in place over threads", "tiles against (1, -1)"):
        with pytest.raises(AssertionError, match="__"):
            test_refused(CASES[name])


# }}}
