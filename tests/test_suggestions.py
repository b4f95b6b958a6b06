"""What a refusal suggests: each suggestion, taken by its word, is accepted.

That they are right is shown in ``test_refusals`` by enumeration; here is what they
say, and that looking for them costs nobody anything who does not read them.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterator

import pytest
from refusals.case import Case, Step, do
from refusals.everything import CASES

import loopkit as lk
from loopkit._check import suggest
from loopkit._check.suggest_calls import read_call, text_of_calls
from loopkit._check.suggest_try import Refusal, Suggestion, Trials, refused
from loopkit._errors import WitnessError
from loopkit._history import Step as Recorded

FLOAT = "float32"


def refusal(kernel: lk.Kernel, step: Step) -> WitnessError:
    """The error of a step that is refused."""
    with pytest.raises(WitnessError) as caught:
        step.apply(kernel)
    return caught.value


def applied(kernel: lk.Kernel, line: str) -> lk.Kernel:
    """The kernel after what a suggestion says, as one who copies it would write it."""
    what, colon, calls = line.partition(": .")
    assert what.startswith("legal ")
    if not colon:
        return kernel
    found = eval(f"kernel.{calls}", {"kernel": kernel})
    assert isinstance(found, lk.Kernel)
    assert all(step.verdict in ("proven", "assumed") for step in found.history)
    return found


def lines(case: Case) -> tuple[str, ...]:
    """The suggestions for a case of the catalogue; none for errors of another kind."""
    before = case.before()
    try:
        case.illegal.apply(before)
    except WitnessError as error:
        return tuple(error.suggestions)
    except lk.LoopkitError:
        return ()
    raise AssertionError("the step is not refused")


# {{{ the catalogue


@pytest.mark.parametrize("case", [pytest.param(c, id=n) for n, c in CASES.items()])
def test_accepted(case: Case) -> None:
    before = case.before()
    found = lines(case)
    assert len(found) <= suggest.MOST
    assert len(set(found)) == len(found)
    for line in found:
        applied(before, line)


# What is told about the data in the message already.
TOLD = {"a scatter backwards"}


def test_catalogue(golden: Callable[[str, str], None]) -> None:
    """All suggestions of the catalogue; whatever the checker refuses has one."""
    text: list[str] = []
    lacking = set()
    for name, case in CASES.items():
        found = lines(case)
        text += [f"{name}: {case.illegal}", *(f"  {line}" for line in found), ""]
        if not found and case.is_wrong:
            lacking.add(name)
    golden("suggestions.txt", "\n".join(text))
    assert lacking == TOLD


# }}}

# {{{ each family


def making(domain: str, text: str, floats: str, assumptions: str = "n >= 1") -> lk.Kernel:
    return lk.make_kernel(domain, text, dtypes={floats: FLOAT}, assumptions=assumptions)


def recurrence(distance: int = 1) -> lk.Kernel:
    domain = f"{{ [i]: {distance} <= i < n }}"
    return making(domain, f"a[i] = a[i-{distance}] + b[i] {{id=s}}", "a, b")


def grid() -> lk.Kernel:
    """Values that need their neighbours above and to the right."""
    domain = "{ [i, j]: 1 <= i < n and 0 <= j < n }"
    return making(domain, "a[i, j] = a[i-1, j+1] + 1 {id=s}", "a")


def corner() -> lk.Kernel:
    """Values that need their neighbours above and to the left."""
    domain = "{ [i, j]: 1 <= i < n and 1 <= j < n }"
    return making(domain, "a[i, j] = a[i-1, j] + a[i, j-1] {id=s}", "a")


def two_loops() -> lk.Kernel:
    return making(
        "{ [i, j]: 0 <= i < n and 0 <= j < n }",
        """
        for i
            a[i] = 2*x[i] {id=make}
        end
        for j
            b[j] = a[j + 1] {id=use}
        end
        """,
        "a, b, x",
    )


def stencil() -> lk.Kernel:
    domain = "{ [t, i]: 0 <= t < steps and 1 <= i < n }"
    text = "u[t+1, i] = u[t, i-1] + u[t, i+1] {id=s}"
    return making(domain, text, "u", "n, steps >= 1")


def values_in_turn(length: str = "16") -> lk.Kernel:
    """A value that is used twice, in two loops."""
    return making(
        f"{{ [i, j]: 0 <= i < {length} and 0 <= j < n }}",
        """
        for i
            <> t = 2*x[i] {id=make}
            for j
                y[i, j] = t*z[j] {id=use}
            end
        end
        """,
        "x, y, z",
        "n >= 1" if length == "16" else "n, m >= 1",
    )


def tile() -> lk.Kernel:
    """A tile that is read in another order than it is written in."""
    text = """
        for i
            t[i] = x[i] {id=load}
        end
        for j
            y[j] = t[15 - j] {id=use}
        end
        """
    return lk.make_kernel(
        "{ [i, j]: 0 <= i, j < 16 }",
        text,
        [lk.TemporaryVariable("t", FLOAT, ("16",), lk.AddressSpace.PRIVATE), ...],
        dtypes={"x, y": FLOAT},
    )


def summed() -> lk.Kernel:
    domain = "{ [i, j]: 0 <= i < n and 0 <= j < n }"
    return making(domain, "c[j] = 2*c[j] + a[i, j] {id=s}", "a, c")


def changed_between() -> lk.Kernel:
    return making(
        "{ [p, q, r]: 0 <= p, q, r < 16 }",
        """
        for p
            b[p] = a[p] {id=use}
        end
        for q
            a[q] = 2*x[q] {id=change}
        end
        for r
            c[r] = a[r] + 1 {id=again}
        end
        """,
        "a, b, c, x",
        "",
    )


def shift_by() -> lk.Kernel:
    return making("{ [i]: 0 <= i < n }", "a[i] = a[i + d] {id=s}", "a", "n, d >= 1")


def triangle() -> lk.Kernel:
    return lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j <= i }"],
        "c[i, j] = 2*a[i, j] {id=s}",
        dtypes={"a, c": FLOAT},
        assumptions="n >= 1",
    )


BLOCKS = do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0")

FAMILIES = {
    "fewer tags": (
        corner,
        do("tag_inames", "i:g.0, j:g.1"),
        "legal with 'i' and 'j' sequential (leave the tags out)",
    ),
    "one tag less": (
        lambda: stencil(),
        do("split_iname", "i", 8, outer_tag="g.0", inner_tag="l.0"),
        "legal with 'i_outer' sequential: .split_iname('i', 8, inner_tag='l.0')",
    ),
    "a shorter tile": (
        lambda: recurrence(5),
        do("split_iname", "i", 8, inner_tag="l.0"),
        "legal with inner_length 5: .split_iname('i', 5, inner_tag='l.0')",
    ),
    "another memory": (
        tile,
        do("tag_inames", "i:l.0, j:l.0"),
        (
            "legal if 't' is shared by the threads of a block: "
            ".set_temporary_address_space('t', 'shared').tag_inames('i:l.0, j:l.0')"
        ),
    ),
    "an axis": (
        values_in_turn,
        do("prioritize_loops", "j, i"),
        (
            "legal if 't' has an axis for 'i': "
            ".privatize_temporaries_with_inames('i', 't').prioritize_loops('j, i')"
        ),
    ),
    "an axis for a strip": (
        lambda: values_in_turn("m"),
        do("prioritize_loops", "j, i"),
        (
            "legal in strips, if 't' has an axis for 'i_inner': .split_iname('i', 16)"
            ".privatize_temporaries_with_inames('i_inner', 't')"
            ".prioritize_loops('i_outer, j, i_inner')"
        ),
    ),
    "a copy for one reader": (
        changed_between,
        do("add_prefetch", "a", "p, r", default_tag=None),
        "legal for 'use' alone: .add_prefetch('a', 'p, r', default_tag=None, within='id:use')",
    ),
    "everywhere": (
        lambda: making(
            "{ [i]: 1 <= i < n }",
            """
            for i
                a[i] = b[i - 1] {id=one}
                b[i] = 2*a[i] {id=two}
            end
            """,
            "a, b",
        ),
        do("split_iname", "i", 4, within="id:two"),
        "legal around all statements: .split_iname('i', 4)",
    ),
    "another order": (
        lambda: grid().split_iname("j", 4),
        do("prioritize_loops", "j_outer, j_inner, i"),
        (
            "legal after skewing 'j_outer' by 'i': "
            ".map_domain('{ [i, j_outer] -> [w, i]: w = j_outer + i }')"
            ".prioritize_loops('w, j_inner, i')"
        ),
    ),
    "skewing": (
        grid,
        do("prioritize_loops", "j, i"),
        "legal after skewing 'j' by 'i': .map_domain('{ [i, j] -> [w, i]: w = j + i }')",
    ),
    "the other order in a map": (
        recurrence,
        do("map_domain", "{ [i] -> [r, q]: i = 4*q + r and 0 <= r < 4 }"),
        "legal in the order q, r: .map_domain('{ [i] -> [q, r]: i = 4*q + r and 0 <= r < 4 }')",
    ),
    "the other loop of a map": (
        stencil,
        do("map_domain", "{ [t, i] -> [t', i]: t' = -t }"),
        (
            "legal with the loops exchanged in the map: "
            """.map_domain("{ [t, i] -> [t, i']: i' = -i }")"""
        ),
    ),
    "another skew": (
        corner,
        do("map_domain", "{ [i, j] -> [w, i]: w = i - j }"),
        "legal with w = i + j: .map_domain('{ [i, j] -> [w, i]: w = i + j }')",
    ),
    "turned over": (
        triangle,
        do("prioritize_loops", "j, i"),
        (
            "legal with bounds that are turned over, too: "
            ".map_domain('{ [i, j] -> [outer, inner]: outer = j and inner = i }')"
        ),
    ),
    "threads, not blocks": (
        two_loops,
        do("tag_inames", "i:g.0"),
        (
            "legal on threads of one block, which can wait for each other: "
            ".split_iname('i', 32, inner_tag='l.0')"
        ),
    ),
    "another loop": (
        summed,
        do("tag_inames", "i:g.0"),
        "legal along 'j' instead: .tag_inames('j:g.0')",
    ),
    "a wavefront": (
        corner,
        do("split_iname", "i", 16, inner_tag="l.0"),
        (
            "legal as a wavefront over 'i' and 'j': .map_domain('{ [i, j] -> [w, j]: w = i + j }')"
            ".split_iname('j', 16, inner_tag='l.0')"
        ),
    ),
    "sizes": (
        shift_by,
        BLOCKS,
        "legal for n <= d: .assume('n <= d').split_iname('i', 8, outer_tag='g.0', inner_tag='l.0')",
    ),
    "small sizes": (
        recurrence,
        do("tag_inames", "i:g.0"),
        "legal for n <= 2: .assume('n <= 2').tag_inames('i:g.0')",
    ),
    "two launches": (
        two_loops,
        BLOCKS,
        "legal as two kernels, launched in turn: one up to 'make', one from 'use' on",
    ),
    "a launch for each step of time": (
        stencil,
        BLOCKS,
        "legal with a launch for each 't', which is then a size of the kernel",
    ),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_family(name: str) -> None:
    make, step, expected = FAMILIES[name]
    kernel = make()
    error = refusal(kernel, step)
    assert expected in error.suggestions, str(error)
    assert str(error).endswith("\n".join(error.suggestions))
    for line in error.suggestions:
        applied(kernel, line)


def test_launches_are_right() -> None:
    """What the advice says, done by hand: each part is legal."""
    halves = [
        making("{ [i]: 0 <= i < n }", "a[i] = 2*x[i] {id=make}", "a, x"),
        making("{ [j]: 0 <= j < n }", "b[j] = a[j + 1] {id=use}", "a, b"),
    ]
    BLOCKS.apply(halves[0])
    halves[1].split_iname("j", 8, outer_tag="g.0", inner_tag="l.0")
    once = lk.make_kernel(
        "{ [i]: 1 <= i < n }",
        "u[t+1, i] = u[t, i-1] + u[t, i+1] {id=s}",
        [lk.ValueArg("t", "int32"), lk.GlobalArg("u", FLOAT, shape=("t + 2", "n + 1")), ...],
        assumptions="n >= 1 and t >= 0",
    )
    BLOCKS.apply(once)


def test_several_assertions() -> None:
    """Assertions of which one alone is not enough."""
    case = CASES["a scatter through two arrays over threads"]
    error = refusal(case.kernel(), case.illegal)
    [found] = [line for line in error.suggestions if "data" in line]
    assert found.startswith("legal if the data allows it: .assume_")
    assert all(f"assume_injective('{name}')" in found for name in "pq")
    applied(case.kernel(), found)


# }}}

# {{{ the search


def families_alone(case: Case) -> Iterator[tuple[Refusal, Suggestion]]:
    before = case.before()
    step = case.illegal
    recorded = Recorded(step.transform, _bound(step))
    found = refused(before, recorded)
    if isinstance(found, Refusal):
        for family in suggest.FAMILIES:
            for suggestion in family.find(found, Trials(60.0, 1000)):
                yield found, suggestion


def _bound(step: Step) -> tuple[tuple[str, object], ...]:
    from loopkit._check.suggest_calls import call

    return call(step.transform, *step.args, **step.options).arguments


@pytest.mark.parametrize("name", list(CASES)[::7])
def test_no_family_fails(name: str) -> None:
    """Errors in the search are hidden from those who read messages, but not from here."""
    for found, suggestion in families_alone(CASES[name]):
        assert found.kernel is not None
        assert suggestion.line().startswith("legal ")


def test_nothing_is_sought_until_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted(*args: object) -> tuple[str, ...]:
        asked.append(args)
        return ("legal so",)

    monkeypatch.setattr(suggest, "suggestions", counted)
    error = refusal(recurrence(), BLOCKS)
    assert error.witness is not None
    assert error.witness.array == "a"
    assert not asked
    assert str(error).endswith("\nlegal so")
    assert error.witness.suggestion == "legal so"
    assert len(asked) == 1


def test_tries_seek_nothing_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = []
    real = suggest.suggestions

    def counted(*args: object) -> tuple[str, ...]:
        begun.append(args)
        return real(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(suggest, "suggestions", counted)
    assert str(refusal(corner(), BLOCKS))
    assert len(begun) == 1


def test_the_same_every_time() -> None:
    texts = {str(refusal(corner(), BLOCKS)) for _ in range(3)}
    assert len(texts) == 1


def test_an_error_in_the_search_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(refusal: Refusal, trials: Trials) -> Iterator[Suggestion]:
        raise ZeroDivisionError

    monkeypatch.setattr(suggest, "FAMILIES", (suggest.FAMILIES[1], suggest.Family(failing, 0)))
    error = refusal(recurrence(), BLOCKS)
    assert error.suggestions[:] == (
        "legal with 'i_outer' and 'i_inner' sequential: .split_iname('i', 8)",
    )


def test_no_time() -> None:
    kernel = stencil()
    error = refusal(kernel, BLOCKS)
    suggest.SECONDS = 0.0  # restored by the fixture that set it
    start = time.perf_counter()
    assert error.suggestions[:] == ()
    assert time.perf_counter() - start < 1.0
    assert "would break the kernel" in str(error)


def test_a_large_kernel_ends_in_time() -> None:
    count = 40
    inames = [f"i{k}" for k in range(count)]
    bounds = " and ".join(f"0 <= {i} < n" for i in inames)
    text = "\n".join(
        f"for i{k}\n a{k + 1}[i{k}] = a{k}[n-1-i{k}] {{id=s{k}}}\nend" for k in range(count)
    )
    arrays = ", ".join(f"a{k}" for k in range(count + 1))
    kernel = making(f"{{ [{', '.join(inames)}]: {bounds} }}", text, arrays)
    error = refusal(kernel, do("tag_inames", "i20:g.0"))
    suggest.SECONDS = 1.4
    start = time.perf_counter()
    assert error.suggestions
    # One try may run over; the machine may be busy.
    assert time.perf_counter() - start < 10.0


def test_errors_travel() -> None:
    error = refusal(recurrence(), BLOCKS)
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert copy.witness.suggestion == error.witness.suggestion  # type: ignore[union-attr]


# }}}

# {{{ calls


@pytest.mark.parametrize(
    "text",
    [
        "split_iname('i', 4, outer_tag='g.0')",
        "tag_inames('i:g.0, j:l.0')",
        "fix_parameters(n=16, m=4)",
        "privatize_temporaries_with_inames('i', 't')",
        "add_prefetch('a', ['i', 'j'], default_tag=None)",
        "assume_injective('p')",
        "rename_iname('i', 'j', existing_ok=True)",
    ],
)
def test_calls_are_written_as_they_are_read(text: str) -> None:
    assert text_of_calls([read_call(text)]) == f".{text}"


# }}}
