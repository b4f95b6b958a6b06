"""`verify`: schedules are proven equal to their text with nothing known of how they were made."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from gallery import NAMES, SCHEDULES, kernels, load
from pace import timed
from refusals import still_open
from refusals.case import schedule
from refusals.everything import FAMILIES
from seams import Outcome

import loopkit as lk


@functools.cache
def gallery(example: str) -> dict[str, lk.Kernel]:
    """The schedules of an example, which do not know how they were made."""
    return {name: forgotten(kernel) for name, kernel in kernels(example).items()}


def forgotten(kernel: lk.Kernel) -> lk.Kernel:
    """A kernel that does not know how it was made."""
    return kernel.with_(lineage=None, history=())


OPEN: dict[tuple[str, ...], str] = {
    ("bitonic", "a launch a stage"): "the stages of a network in launches of their own have "
    "inames of other ranges than the text's",
    ("layernorm", "a block a row, one reduction"): "a text of its own: joined moments are not the "
    "rounded numbers that two sums are",
}
"""Schedules of the gallery that verify does not connect with their text."""


def schedules() -> list[tuple[str, str]]:
    return [(e, name) for e, name in SCHEDULES if name != "plain"]


def marked(example: str, *names: str) -> Any:
    """An example and names of its schedules, as parameters."""
    keys = [(example, *names), *((example, n) for n in names)]
    why = next((OPEN[key] for key in keys if key in OPEN), None)
    marks = [pytest.mark.xfail(reason=why, strict=True)] if why else []
    return pytest.param(example, *names, marks=marks)


def check_verdict(one: lk.Kernel, two: lk.Kernel) -> None:
    """Equal; undecided where one updates an argument and the other stores a whole sum there."""
    updated = (
        {s.written for s in k.statements if s.operation} & {*k.arg_by_name} for k in (one, two)
    )
    mine, its = updated
    verdict = lk.verify(one, two)
    assert verdict.answer == ("equal" if mine == its else "undecided"), str(verdict)
    assert bool(verdict) == (mine == its)


def make(text: str, domain: str = "{ [i, j]: 0 <= i, j < n }", **options: Any) -> lk.Kernel:
    """A kernel over arrays ``x`` and ``y`` of ``n + 2`` floats."""
    shapes = options.pop("shapes", {"x": "n + 2", "y": "n + 2"})
    dtypes = options.pop("types", {})
    arrays = [lk.GlobalArg(a, dtypes.get(a, "float32"), shape=s) for a, s in shapes.items()]
    options.setdefault("assumptions", "n >= 1")
    return lk.make_kernel(domain, text, [*arrays, ...], **options)


def product(
    text: str = "c[i, j] = sum(k, a[i, k] * b[k, j])",
    domain: str = "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }",
) -> lk.Kernel:
    shapes = {"a": "n, l", "b": "l, m", "c": "n, m"}
    return make(text, domain, shapes=shapes, assumptions="n, m, l >= 1")


def tiled(kernel: lk.Kernel, tile: int = 16, **options: Any) -> lk.Kernel:
    return (
        kernel.split_iname("i", tile, outer_tag="g.1", inner_tag="l.1")
        .split_iname("j", tile, outer_tag="g.0", inner_tag="l.0")
        .split_iname("k", options.get("depth", tile))
        .add_prefetch("a", ["i_inner", "k_inner"], default_tag="l.auto")
        .add_prefetch("b", ["k_inner", "j_inner"], default_tag="l.auto")
    )


# {{{ equal


def test_a_loop_that_data_end_is_not_equal_to_one_on_threads() -> None:
    plain = gallery("mandelbrot")["plain"]
    wrong = forgotten(plain.tag_inames("it: l.0", unchecked=True))
    assert lk.verify(plain, wrong).answer != "equal"
    made = gallery("mandelbrot")
    for name, other in (("plain", "plain"), ("unrolled", "scheduled")):
        limit = forgotten(
            made[name].with_(
                statements=tuple(
                    replace(s, rhs=s.rhs + 1) if s.id == "insn_5" else s
                    for s in made[name].statements
                )
            )
        )
        assert lk.verify(made[other], limit).answer != "equal"


@pytest.mark.parametrize(("example", "name"), [marked(*s) for s in schedules()])
def test_gallery(example: str, name: str) -> None:
    check_verdict(gallery(example)["plain"], gallery(example)[name])


@pytest.mark.slow
@pytest.mark.parametrize(("example", "name"), [marked(*s) for s in schedules()])
def test_gallery_backwards(example: str, name: str) -> None:
    check_verdict(gallery(example)[name], gallery(example)["plain"])


def test_looking_back_is_equal_to_its_own_text() -> None:
    text = forgotten(load("scan_vector").of_threads())
    check_verdict(text, gallery("scan_vector")["look-back"])


PAIRS = [
    (example, one, two)
    for example in NAMES
    for one, two in itertools.combinations([n for e, n in schedules() if e == example], 2)
]


@pytest.mark.slow
@pytest.mark.parametrize(("example", "one", "two"), [marked(*p) for p in PAIRS])
def test_two_schedules_of_one_text(example: str, one: str, two: str) -> None:
    check_verdict(gallery(example)[one], gallery(example)[two])


@pytest.mark.slow
def test_gallery_is_fast() -> None:
    """Of this process's own time: the median, and nearly all."""
    seconds = []
    for example, name in schedules():
        if (example, name) in OPEN:
            continue  # all that is allowed is spent on it
        made = gallery(example)
        _, taken = timed(functools.partial(lk.verify, made["plain"], made[name]))
        seconds.append(taken)
    seconds.sort()
    assert seconds[len(seconds) // 2] < 0.5
    assert seconds[-2] < 2.0


def in_parts(outward: bool = True) -> lk.Kernel:
    """A sum, and that of its parts."""
    knl = make("y[0] = sum(i, x[i])").split_iname("i", 8)
    return (knl.split_reduction_outward if outward else knl.split_reduction_inward)("i_inner")


EQUAL = {
    "a sum of partial sums": lambda: (make("y[0] = sum(i, x[i])"), in_parts()),
    "a sum of inner sums": lambda: (in_parts(outward=False), make("y[0] = sum(i, x[i])")),
    "partial sums of threads in shared memory": lambda: (
        in_parts()
        .privatize_temporaries_with_inames("i_inner", "acc_part")
        .set_temporary_address_space("acc_part", "shared")
        .duplicate_inames("i_inner", "id:insn_update_part", new_inames="all")
        .tag_inames("i_inner: l.0"),
        make("y[0] = sum(i, x[i])"),
    ),
    "a sum over blocks": lambda: (
        make("y[0] = sum(i, x[i])"),
        make("y[0] = sum(i, x[i])")
        .split_iname("i", 8)
        .realize_reduction(by="atomic", inames="i_outer")
        .tag_inames("i_outer: g.0, i_inner: l.0"),
    ),
    "other tiles": lambda: (tiled(product()), tiled(product(), 8)),
    "tiles and other depths": lambda: (tiled(product()), tiled(product(), 16, depth=8)),
    "a condition that always holds": lambda: (
        make("y[i] = x[i]", assumptions="1 <= n <= 5"),
        make("y[i] = if(i < 5, x[i], 0)", assumptions="1 <= n <= 5"),
    ),
    "both with a last step apart": lambda: (
        tiled(product()).peel_iname("k_outer", last=1),
        tiled(product(), 8).peel_iname("k_outer", last=1),
    ),
    "factors the other way round": lambda: (
        product(),
        product("c[i, j] = sum(k, b[k, j] * a[i, k])"),
    ),
    "the sum backwards": lambda: (
        make("y[i] = sum(j, x[j])"),
        make("y[i] = sum(j, x[n - 1 - j])"),
    ),
    "names that mislead": lambda: (
        make("<> s = 2*x[i] {id=a}\n<> t = s + x[i + 1] {id=b}\ny[i] = t {id=c}"),
        make("<> t = 2*x[j] {id=b}\n<> s = t + x[j + 1] {id=a}\ny[j] = s {id=c}"),
    ),
    "names of inames that mislead": lambda: (
        product(),
        product(
            "c[j, i] = sum(k, a[j, k] * b[k, i])",
            "{ [i, j, k]: 0 <= j < n and 0 <= i < m and 0 <= k < l }",
        ),
    ),
    "backwards": lambda: (make("y[i] = x[i]"), make("y[n - 1 - i] = x[n - 1 - i]")),
    "even and odd": lambda: (
        make("y[i] = 2*x[i]"),
        make(
            "y[2*i] = 2*x[2*i]\ny[2*j + 1] = 2*x[2*j + 1]",
            "{ [i, j]: 0 <= 2*i < n and 0 <= 2*j + 1 < n }",
        ),
    ),
    "a temporary for a common part": lambda: (
        make("y[i] = (x[i] + x[i + 1]) * (x[i] + x[i + 1])"),
        make("<float32> t = x[i] + x[i + 1]\ny[i] = t * t"),
    ),
    "an array of them": lambda: (
        make("<float32> t[i] = x[i] + x[i + 1]\ny[j] = t[j] * t[j]"),
        make("y[i] = (x[i] + x[i + 1]) * (x[i] + x[i + 1])"),
    ),
    "a store that is overwritten": lambda: (
        make("y[i] = x[i]\ny[i] = x[i + 1]"),
        make("y[i] = x[i + 1]"),
    ),
    "a temporary that nobody reads": lambda: (
        make("<> t = 2*x[i]\ny[i] = x[i]"),
        make("y[i] = x[i]"),
    ),
    "zero, written in two ways": lambda: (make("y[i] = 0"), make("y[i] = 0.0")),
    "a condition on data": lambda: (
        make("if x[i + 1] > 3\n  y[i] = x[i]\nend"),
        make("if x[i + 1] > 3\n  y[i] = x[i]\nend").split_iname("i", 8, inner_tag="l.0"),
    ),
    "time in tiles": lambda: (
        sweeps(),
        sweeps()
        .map_domain("{ [t, i] -> [w, t]: w = 2*t + i }")
        .split_iname("t", 2)
        .split_iname("w", 4)
        .prioritize_loops("t_outer, w_outer, t_inner, w_inner"),
    ),
    "a buffer": lambda: (
        make("y[i] = y[i] + x[j]"),
        make("y[i] = y[i] + x[j]").split_iname("i", 4).buffer_array("y", ["i_inner"]),
    ),
    "rows of a sparse matrix": lambda: (sparse(), sparse().split_iname("r", 16, inner_tag="l.0")),
    # Inames and sizes are numbers without a type, as literals are.
    "an iname in place of a number": lambda: (
        make("y[i] = x[i] * 2", "{ [i, j]: 0 <= i < n and j = 2 }"),
        make("y[i] = x[i] * j", "{ [i, j]: 0 <= i < n and j = 2 }"),
    ),
    "an iname in place of another that is wider": lambda: (wide("i"), wide("n - (n - i)")),
}


@pytest.mark.parametrize("name", EQUAL)
def test_equal(name: str) -> None:
    before, after = map(forgotten, EQUAL[name]())
    for one, two in ((before, after), (after, before)):
        verdict = lk.verify(one, two)
        assert verdict.answer == "equal", str(verdict)


PARTIAL = {
    "starts from one": ("counts_buf[start] = 0", "counts_buf[start] = 1"),
    "adds two": ("counts_buf[values[i]] += 1", "counts_buf[values[i]] += 2"),
    "adds elsewhere": ("counts_buf[values[i]]", "counts_buf[255 - values[i]]"),
    "is flushed elsewhere": ("counts[flushed] +=", "counts[255 - flushed] +="),
    "is flushed doubled": ("+= counts_buf[flushed]", "+= 2*counts_buf[flushed]"),
    "is flushed in part": ("0 <= flushed < 256", "0 <= flushed < 255"),
    "is flushed twice": ("0 <= again < 1", "0 <= again < 2"),
    "is right": ("", ""),
}


@pytest.mark.parametrize("fault", PARTIAL)
def test_partial_sums(fault: str) -> None:
    """Partial sums count as equal only where each update is flushed to its cell, once."""
    head = ["{ [i]: 0 <= i < n }", "{ [start]: 0 <= start < 256 }"]
    head += ["{ [flushed]: 0 <= flushed < 256 }", "{ [again]: 0 <= again < 1 }"]
    text = """
        for start
            counts_buf[start] = 0
        end
        for i
            counts_buf[values[i]] += 1 {atomic}
        end
        for again, flushed
            counts[flushed] += counts_buf[flushed] {atomic}
        end
        """
    old, new = PARTIAL[fault]
    assert old in text or any(old in line for line in head)
    if old:
        text, head = text.replace(old, new), [line.replace(old, new) for line in head]
    arrays = [
        lk.GlobalArg("counts", "int32", shape="256"),
        lk.GlobalArg("values", "int32", shape="n"),
    ]
    buffer = lk.TemporaryVariable("counts_buf", "int32", shape=256)
    partial = lk.make_kernel(head, text, [*arrays, buffer, ...], assumptions="n >= 1")
    plain = lk.make_kernel(
        head[:1], "counts[values[i]] += 1 {atomic}", [*arrays, ...], assumptions="n >= 1"
    )
    given = (k.assume_within("values", 0, 256) for k in (plain, partial))
    verdict = lk.verify(*map(forgotten, given))
    assert (verdict.answer == "equal") == (fault == "is right"), str(verdict)


def sweeps() -> lk.Kernel:
    return make(
        "for t, i\n  y[i + 1] = y[i] + y[i + 2]\nend", "{ [t, i]: 0 <= t < 9 and 0 <= i < n }"
    )


def sparse(operator: str = "*", last: str = "ptr[r + 1]") -> lk.Kernel:
    return make(
        f"""
        for r
            <> lo = ptr[r]
            <> hi = {last}
            y[r] = sum(e, v[e] {operator} x[col[e]])
        end
        """,
        ["{ [r]: 0 <= r < n }", "{ [e]: lo <= e < hi }"],  # type: ignore[arg-type]
        shapes={"ptr": "n + 1", "v": "m", "col": "m", "x": "n", "y": "n"},
        types={"ptr": "int32", "col": "int32"},
        assumptions="n, m >= 1",
    )


# }}}

# {{{ different

DIFFERENT: dict[str, Any] = {
    "a term that is in no partial sum": (
        lambda: (
            make("y[0] = sum(i, x[i])"),
            make(
                "y[0] = sum(b, sum(k, x[4*b + k]))", "{ [b, k]: 0 <= 4*b < n - 3 and 0 <= k < 4 }"
            ),
        ),
        ({"n": 1}, "y", (0,), "x[0]", "0"),
    ),
    "an index shifted": (
        lambda: (make("y[i] = x[i]"), make("y[i] = x[i + 1]")),
        ({"n": 1}, "y", (0,), "x[0]", "x[1]"),
    ),
    "a bound too large": (
        lambda: (make("y[i] = x[i]"), make("y[i] = x[i]", "{ [i]: 0 <= i <= n }")),
        ({"n": 1}, "y", (1,), "y[1]", "x[1]"),
    ),
    "a bound too small": (
        lambda: (make("y[i] = x[i]"), make("y[i] = x[i]", "{ [i]: 0 <= i < n - 1 }")),
        ({"n": 1}, "y", (0,), "x[0]", "y[0]"),
    ),
    "a wrong operator": (
        lambda: (tiled(product()), product("c[i, j] = sum(k, a[i, k] + b[k, j])")),
        ({"n": 1, "m": 1, "l": 1}, "c", (0, 0), "a[0, 0]*b[0, 0]", "a[0, 0] + b[0, 0]"),
    ),
    "another reduction": (
        lambda: (product(), product("c[i, j] = max(k, a[i, k] * b[k, j])")),
        (
            {"n": 1, "m": 1, "l": 2},
            "c",
            (0, 0),
            "a[0, 0]*b[0, 0] + a[0, 1]*b[1, 0]",
            "max(a[0, 0]*b[0, 0], a[0, 1]*b[1, 0])",
        ),
    ),
    "a term more": (
        lambda: (product(), tiled(product("c[i, j] = 1 + sum(k, a[i, k] * b[k, j])"))),
        ({"n": 1, "m": 1, "l": 1}, "c", (0, 0), "a[0, 0]*b[0, 0]", "1 + a[0, 0]*b[0, 0]"),
    ),
    "the last term missing": (
        lambda: (
            tiled(product()),
            product(domain="{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l - 1 }"),
        ),
        ({"n": 1, "m": 1, "l": 1}, "c", (0, 0), "a[0, 0]*b[0, 0]", "0"),
    ),
    "another start": (
        lambda: (
            make("<float32> s = 0\nfor j\n  s = s + x[j]\nend\ny[i] = s"),
            make("<float32> s = 1\nfor j\n  s = s + x[j]\nend\ny[i] = s"),
        ),
        ({"n": 1}, "y", (0,), "0 + x[0]", "1 + x[0]"),
    ),
    "operands that do not commute": (
        lambda: (make("y[i] = x[i] - x[i + 1]"), make("y[i] = x[i + 1] - x[i]")),
        ({"n": 1}, "y", (0,), "x[0] - x[1]", "x[1] - x[0]"),
    ),
    "a store to the wrong cell": (
        lambda: (make("y[i] = x[i]"), make("y[i + 1] = x[i]")),
        ({"n": 1}, "y", (0,), "x[0]", "y[0]"),
    ),
    "another factor": (
        lambda: (make("y[i] = 2*x[i]"), make("y[i] = 3*x[i]")),
        ({"n": 1}, "y", (0,), "2*x[0]", "3*x[0]"),
    ),
    "another function": (
        lambda: (make("y[i] = sin(x[i])"), make("y[i] = cos(x[i])")),
        ({"n": 1}, "y", (0,), "sin(x[0])", "cos(x[0])"),
    ),
    "another condition": (
        lambda: (
            make("y[i] = if(i > 0, x[i], 0)"),
            make("y[i] = if(i > 1, x[i], 0)"),
        ),
        ({"n": 2}, "y", (1,), "x[1]", "0"),
    ),
    "another condition on data": (
        lambda: (
            make("if x[i + 1] > 3\n  y[i] = x[i]\nend"),
            make("if x[i + 1] > 4\n  y[i] = x[i]\nend"),
        ),
        ({"n": 1}, "y", (0,), "x[0]", "y[0]"),
    ),
    "another index array": (
        lambda: (indirect("y[i] = x[p[i]]"), indirect("y[i] = x[q[i]]")),
        ({"n": 2}, "y", (0,), "x[1]", "x[0]"),
    ),
    "loops exchanged": (
        lambda: (wave(), wave().prioritize_loops("j, i", unchecked=True)),
        ({"n": 2}, "y", (2, 0), "y[0, 2] + 1 + 1", "y[1, 1] + 1"),
    ),
    "a scatter over threads": (
        lambda: (indirect("y[p[i]] = x[i]"), tagged(indirect("y[p[i]] = x[i]"), "l.0")),
        ({"n": 5}, "y", (4,), "x[4]", "x[3]"),
    ),
    "a histogram over threads": (
        lambda: (
            indirect("y[p[i]] = y[p[i]] + 1"),
            tagged(indirect("y[p[i]] = y[p[i]] + 1"), "l.0"),
        ),
        ({"n": 5}, "y", (4,), "y[4] + 1 + 1", "y[4] + 1"),
    ),
    "a condition beyond some number": (
        lambda: (make("y[i] = x[i]"), make("y[i] = if(i < 5, x[i], 0)")),
        ({"n": 6}, "y", (5,), "x[5]", "0"),
    ),
    "a recurrence over threads": (
        lambda: (make("y[i + 1] = y[i] + 1"), tagged(make("y[i + 1] = y[i] + 1"), "l.0")),
        ({"n": 2}, "y", (2,), "y[0] + 1 + 1", "y[1] + 1"),
    ),
    "a shift in place over blocks": (
        lambda: (make("y[i] = y[i + 1]"), tagged(make("y[i] = y[i + 1]"), "g.0")),
        ({"n": 2}, "y", (0,), "y[1]", "y[2]"),
    ),
    "a sum by hand over threads": (
        lambda: (
            make("y[0] = y[0] + x[i]", "{ [i]: 0 <= i < n }"),
            tagged(make("y[0] = y[0] + x[i]", "{ [i]: 0 <= i < n }"), "l.0"),
        ),
        ({"n": 2}, "y", (0,), "y[0] + x[0] + x[1]", "y[0] + x[1]"),
    ),
    "bounds that data decide in one of them": (
        lambda: (make("y[i] = x[i]"), bounded()),
        ({"n": 1}, "y", (0,), None, None),
    ),
    "bounds that data decide": (
        lambda: (sparse(), sparse(last="ptr[r + 1] - 1")),
        ({"n": 2, "m": 2}, "y", (1,), None, None),
    ),
}


def indirect(text: str, **options: Any) -> lk.Kernel:
    return make(
        text,
        shapes={"x": "n", "p": "n", "q": "n", "y": "n"},
        types={"p": "int32", "q": "int32"},
        **options,
    )


def scattered(temporary: str) -> lk.Kernel:
    t = lk.TemporaryVariable(temporary, "float32", shape=(8,))  # type: ignore[arg-type]
    return indirect(
        f"{temporary}[j] = 0\n{temporary}[p[i]] = x[i]\ny[k] = {temporary}[p[k]]",
        domain="{ [i, j, k]: 0 <= i, k < n and 0 <= j < 8 }",
        temporary_variables=[t],
        assumptions="1 <= n <= 8",
    )


def wide(factor: str) -> lk.Kernel:
    return make(
        f"y[i] = x[i] * ({factor})",
        shapes={"x": "n", "y": "n"},
        types={"x": "float16", "y": "float64"},
        dtypes={"n": "int64"},
    )


def bounded() -> lk.Kernel:
    """Copies only as many elements as ``x[n + 1]`` says."""
    return make(
        "<int32> most = x[n + 1]\ny[i] = x[i]",
        ["{ [i]: 0 <= i < n and i < most - 100 }"],  # type: ignore[arg-type]
    )


def wave() -> lk.Kernel:
    return make(
        "y[i, j] = y[i - 1, j + 1] + 1",
        "{ [i, j]: 1 <= i <= n and 0 <= j <= n }",
        shapes={"y": "n + 1, n + 2"},
    )


def tagged(kernel: lk.Kernel, tag: str) -> lk.Kernel:
    return kernel.tag_inames({"i": tag}, unchecked=True)


@pytest.mark.parametrize("name", DIFFERENT)
def test_different(name: str) -> None:
    kernels, (sizes, array, cell, before, after) = DIFFERENT[name]
    verdict = lk.verify(*map(forgotten, kernels()))
    assert verdict.answer == "different" and not verdict, str(verdict)
    witness = verdict.witness
    assert witness is not None
    assert (dict(witness.sizes), witness.array, witness.cell) == (sizes, array, cell), str(verdict)
    if before is not None:
        assert (witness.before, witness.after) == (before, after)


# }}}

# {{{ undecided

UNDECIDED = {
    "additions in another order": (
        lambda: (
            make("y[i] = x[i] + x[i + 1] + x[i + 2]"),
            make("y[i] = x[i] + (x[i + 1] + x[i + 2])"),
        ),
        "replaces one of another type",
    ),
    "a factor drawn out of a sum": (
        lambda: (
            make("y[i] = sum(j, 2*x[j])"),
            make("y[i] = 2*sum(j, x[j])"),
        ),
        "no proof was found",
    ),
    "a histogram backwards": (
        lambda: (
            indirect("y[p[i]] = y[p[i]] + 1"),
            indirect("y[p[n - 1 - i]] = y[p[n - 1 - i]] + 1"),
        ),
        "'insn' (i=1) might read y[p[1]] before 'insn' (i=0) has written it",
    ),
    "a temporary that data index": (
        lambda: (scattered("t"), scattered("t").split_iname("i", 4)),
        "data decide which cells of 't' are touched",
    ),
    "a coarser type between": (
        lambda: (make("y[i] = 2*x[i]"), make("<float16> t = x[i]\ny[i] = 2*t")),
        "'t' holds the value of 'insn' in another type",
    ),
    "a finer type between": (
        lambda: (
            make("y[i] = x[i]*x[i] + x[i]"),
            make("<float64> t = x[i]*x[i]\ny[i] = t + x[i]"),
        ),
        "'t' holds the value of 'insn' in another type",
    ),
    "a number of another type": (
        lambda: (
            make("y[i] = x[i] * 3", types={"x": "int64"}),
            make("y[i] = x[i] * 3.0", types={"x": "int64"}),
        ),
        "3.0 replaces 3",
    ),
    "an order that was free, then fixed": (
        lambda: (
            make("y[i] = sum(j, x[j])"),
            make("<float32> s = 0\nfor j\n  s = s + x[j]\nend\ny[i] = s"),
        ),
        "has no counterpart",
    ),
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_undecided(name: str) -> None:
    kernels, why = UNDECIDED[name]
    verdict = lk.verify(*map(forgotten, kernels()))
    assert verdict.answer == "undecided" and not verdict, str(verdict)
    assert why in verdict.why
    assert verdict.witness is None


# }}}

# {{{ the cases of the checker


@pytest.mark.parametrize("family", FAMILIES)
def test_legal_schedules_are_equal(family: str) -> None:
    """All legal schedules that the checker is tested with; none is taken for different."""
    open_ = []
    for case in FAMILIES[family]:
        plain = (case.legal_kernel or case.kernel)()
        after = schedule(plain, case.legal)
        if plain.arg_by_name.keys() != after.arg_by_name.keys():
            continue
        verdict = lk.verify(forgotten(plain), forgotten(after))
        assert verdict.answer != "different", f"{case.name}: {verdict}"
        if not verdict and case.name not in still_open.EQUAL:
            open_.append(case.name)
    assert not open_


@pytest.mark.parametrize("family", FAMILIES)
def test_illegal_schedules_are_never_equal(family: str) -> None:
    for case in FAMILIES[family]:
        if not case.is_wrong:
            continue
        before = case.kernel()
        after = case.illegal.apply(case.before(), unchecked=True)
        try:
            verdict = lk.verify(forgotten(before), forgotten(after))
        except lk.InvalidArgumentError:
            continue
        assert verdict.answer != "equal", f"{case.name}: {verdict}"


# }}}

# {{{ the answer


def test_verdict_as_text() -> None:
    verdict = lk.verify(make("y[i] = x[i]"), make("y[i] = x[i]", "{ [i]: 0 <= i <= n }"))
    assert str(verdict) == ("different: y[1] differs for n = 1\n  before: y[1]\n  after:  x[1]")
    verdict = lk.verify(product(), tiled(product()))
    assert str(verdict) == (
        "equal: every output cell has the same value for all sizes with "
        "n >= 1 and m >= 1 and l >= 1"
    )


def test_race_as_text() -> None:
    recurrence = make("y[i + 1] = y[i] + 1")
    assert str(lk.verify(recurrence, tagged(recurrence, "l.0"))) == (
        "different: y[2] differs for n = 2\n"
        "  before: y[0] + 1 + 1\n"
        "  after:  y[1] + 1\n"
        "  after, when it runs the last threads first"
    )


def test_verdict_is_a_value() -> None:
    verdict = lk.verify(make("y[i] = x[i]"), make("y[i] = 2*x[i]"))
    assert isinstance(verdict, lk.Verdict) and isinstance(verdict.witness, lk.Difference)
    with pytest.raises(dataclasses.FrozenInstanceError):
        verdict.answer = "equal"  # type: ignore[misc]


@pytest.mark.parametrize(("value", "answer"), [("a[k]", "equal"), ("a[k] + i", "different")])
def test_one_cell_for_all_values_of_ilp(value: str, answer: str) -> None:
    """Every value of ``i_inner`` writes the cell before any reads it: what is written tells."""
    plain = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 3 }"],
        f"""
        for i, k
          <> s[k] = {value}
          u[i] = s[k] + a[i]
        end
        """,
        dtypes={"a, u": "int32"},
    )
    shared = plain.set_temporary_address_space("s", "local")
    kernel = shared.split_iname("i", 4, inner_tag="ilp", unchecked=True)
    assert lk.verify(plain, kernel).answer == answer


def test_kernel_with_a_race_has_no_one_meaning() -> None:
    racy = tagged(make("y[i + 1] = y[i] + 1"), "l.0")
    verdict = lk.verify(racy, racy)
    assert verdict.answer == "undecided"
    assert "'before' has no one meaning" in verdict.why


@pytest.mark.parametrize(
    ("one", "two"),
    [
        # What is not written keeps its value, whether or not the array is read.
        ("y[i] = x[i] {if=x[i] > 3}", "y[i] = x[i] if x[i] > 3 else y[i]"),
        # Of numbers below zero, both are no number.
        ("y[i] = sqrt(x[i])", "y[i] = x[i]**0.5"),
    ],
)
def test_no_difference_that_is_none(one: str, two: str) -> None:
    before, after = (make(text, "{ [i]: 0 <= i < n }") for text in (one, two))
    assert lk.verify(before, after).answer != "different"


def test_what_cancels_out_is_close() -> None:
    """Functions round, in one order of a sum otherwise than in another; integers do not."""
    from seams import TracedValue

    kind = np.dtype(np.float64)
    zero = TracedValue(0.0, "y", (0,))

    def near(value: float) -> bool:
        return TracedValue(value, "y", (0,), scale=2.0).is_close(zero, kind)

    assert near(math.sin(1) + math.sin(2) - math.sin(1) - math.sin(2))
    assert not near(1e-4) and not near(1e-12)
    assert not TracedValue(1, "y", (0,)).is_close(zero, np.dtype(np.int32))


@pytest.mark.parametrize("update", ["t*2 + x[i, j]", "t + x[i, j]", "x[i, j] - t"])
def test_what_is_fetched_and_carried_on(update: str) -> None:
    """A scalar that starts from an argument and is then computed further."""
    plain = make(
        f"""
        for i
          <> t = x[i, 0]
          for j
            t = {update}
            y[i, j] = t
          end
        end
        """,
        shapes={"x": "n, n", "y": "n, n"},
    )
    assert lk.verify(plain, plain)
    assert lk.verify(plain, forgotten(plain.split_iname("i", 4, inner_tag="l.0")))
    wrong = plain.split_iname("j", 4, inner_tag="l.0", unchecked=True)
    assert lk.verify(plain, wrong).answer == "different"


def test_what_never_runs_needs_no_counterpart() -> None:
    text = "y[i] = x[i]\ny[0] = x[1] {if=i < 0}"
    plain = make(text, "{ [i]: 0 <= i < n }")
    assert lk.verify(plain, make("y[i] = x[i]", "{ [i]: 0 <= i < n }"))
    assert lk.verify(plain, forgotten(plain.split_iname("i", 4, inner_tag="l.0")))


def test_cells_that_no_set_can_name() -> None:
    """What isl cannot hold makes the search rougher, and ends in an answer all the same."""
    text = "for i\n <> t[(i + 1) % n] = x[i] + 1\nend\nfor j\n y[j] = t[j]\nend"
    domains = ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n }"]

    def kernel(read: str) -> lk.Kernel:
        arrays = [lk.GlobalArg("x", "float32", "n"), lk.GlobalArg("y", "float32", "n")]
        t = lk.TemporaryVariable("t", "float32", "n")
        return lk.make_kernel(domains, text.replace("t[j]", read), [*arrays, t, ...])

    plain, other = kernel("t[j]"), kernel("t[n - 1 - j]")
    assert lk.verify(plain, plain.with_(name="again")).answer != "different"
    assert lk.verify(plain, other).answer != "equal"


def test_one_text_is_equal_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a proof; but literals of other types are another text."""
    from seams import Comparison as _Comparison

    for proof in ("proven_from", "proven_by_cells"):
        monkeypatch.setattr(_Comparison, proof, lambda *_: False)
    assert lk.verify(make("y[i] = 2*x[i]"), make("y[i] = 2*x[i]"))
    assert not lk.verify(make("y[i] = x[i] + 3"), make("y[i] = x[i] + 3.0"))


def test_reading_beyond_an_array_is_not_the_same_as_not_reading() -> None:
    """What is read there may be used by nobody."""
    plain = make("y[i] = x[i]", "{ [i]: 0 <= i < n }", shapes={"x": "n", "y": "n"})
    tiles = plain.split_iname("i", 4)
    text = """
    <> fetched[i_inner] = x[4*i_outer + i_inner]
    y[4*i_outer + i_inner] = fetched[i_inner] {if=4*i_outer + i_inner < n}
    """
    domain = "{ [i_outer, i_inner]: 0 <= 4*i_outer < n and 0 <= i_inner < 4 }"
    wide = make(text, domain, shapes={"x": "n + 3", "y": "n"})
    narrow = wide.with_(
        args=tuple(
            dataclasses.replace(a, shape=tiles.arg_by_name["x"].shape) if a.name == "x" else a
            for a in wide.args
        )
    )
    verdict = lk.verify(tiles, narrow)
    assert verdict.answer == "different"
    assert str(verdict).splitlines() == [
        "different: x[1] is outside of the array for n = 1",
        "  before: nothing outside of an array is touched",
        "  after:  'insn' (i_outer=0, i_inner=1) touches it",
    ]
    assert lk.verify(narrow, tiles).answer == "different"
    assert lk.verify(narrow, narrow).answer == "undecided"


def test_bounds_that_threads_load() -> None:
    """Each thread has bounds of its own, where both kernels are run too."""
    plain = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        """
        for i
          <> lo = ptr[i]
          <> hi = ptr[i + 1]
          for r
            u[i] = u[i] + g[r]
          end
        end
        """,
        [lk.GlobalArg("g", "int32", shape="n + 2"), ...],
        dtypes={"ptr, u": "int32"},
    )
    scheduled = (
        plain.split_iname("i", 40, outer_tag="g.2", inner_tag="l.2")
        .map_domain("{ [r] -> [w]: w = 3*r }")
        .add_prefetch("ptr", [], default_tag=None)
        .split_iname("w", 1)
    )
    assert lk.verify(plain, scheduled).answer != "different"


@pytest.mark.timeout(60)
def test_readers_behind_readers_end() -> None:
    """A cell that is read, added to and written again and again, on threads that race."""
    plain = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 1 <= j < n }",
        """
        for i
            for j
                o[perm[i]] = (d[j, i + 1] - d[i + 1, j]) - d[n - 1 - i, j + 1]
            end
            for j
                <> t = c[i, j] + 5
                v[i] = t - v[i] + j
            end
        end
        """,
        [lk.GlobalArg("o", "int32", shape="n"), lk.GlobalArg("perm", "int32", shape="n"), ...],
        dtypes={"c, d, o, perm, v": "int32"},
        assumptions="n >= 1",
    )
    racing = (
        plain.split_iname("j", 8, inner_tag="unr")
        .buffer_array("v", ["j_inner"])
        .split_iname("i", 8)
        .split_iname("j_outer", 2, inner_tag="l.0", unchecked=True)
    )
    assert lk.verify(plain, racing).answer == "different"


@pytest.mark.parametrize(
    ("name", "operations"), [("EQUIVALENCE", 5_000), ("EQUIVALENCE_EXAMPLES", 500)]
)
def test_budgets_are_named(monkeypatch: pytest.MonkeyPatch, name: str, operations: int) -> None:
    """A computation that grows too large ends, and nothing is said that was not seen."""
    import islpy as isl

    monkeypatch.setattr(f"loopkit._budget.{name}", operations)
    plain, other = gallery("stencil_25")["tiled"], gallery("stencil_25")["planes"]
    if name == "EQUIVALENCE_EXAMPLES":
        monkeypatch.setattr("loopkit._budget.EQUIVALENCE", 5_000)
    verdict = lk.verify(plain, other)
    assert verdict.answer == "undecided"
    assert f"{operations:,} operations" in verdict.why
    assert isl.DEFAULT_CONTEXT.get_max_operations() == 0


def test_cells_in_one_place_are_no_equal() -> None:
    """Whichever of the two kernels it is."""
    plain = make("y[i, j] = y[i, j] + 1", shapes={"y": "n, n"}, assumptions="1 <= n <= 9")
    mixed = plain.tag_array_axes("y", "stride:2, stride:2", unchecked=True)
    for one, two in ((plain, mixed), (mixed, plain)):
        assert lk.verify(forgotten(one), forgotten(two)).answer != "equal"


def test_assumptions_of_both_hold() -> None:
    one = make("y[i] = x[i + n // 4 % 2]")
    two = make("y[i] = x[i]", assumptions="1 <= n <= 3")
    verdict = lk.verify(one, two)
    assert verdict.answer == "equal", str(verdict)
    assert "n <= 3" in verdict.why
    assert lk.verify(one, make("y[i] = x[i]")).answer == "different"


def test_assertions_are_named() -> None:
    plain = indirect("y[p[i]] = x[i]").assume_injective("p")
    verdict = lk.verify(forgotten(plain), forgotten(plain.tag_inames({"i": "l.0"})))
    assert verdict.answer == "equal", str(verdict)
    assert "p" in verdict.why.split("for data with")[1]


def test_approximate_arithmetic_is_no_equal() -> None:
    plain = make("y[i] = x[i]")
    fast = plain.with_(options=lk.Options(fast_math=True))
    assert "fast_math" in lk.verify(plain, fast).why


def shifted(kernel: lk.Kernel) -> lk.Kernel:
    """A kernel whose arrays begin one element later."""
    arrays = {a.name: dataclasses.replace(a, offset=1) for a in kernel.args if a.name in "xy"}
    return kernel.with_(args=tuple(arrays.get(a.name, a) for a in kernel.args))


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: make("y[i] = x[i]", shapes={"x": "n + 1", "y": "n + 2"}), "the shape of 'x'"),
        (lambda: make("y[i] = x[i]", types={"x": "float64"}), "the type of 'x'"),
        (lambda: make("y[i] = x[i] + z", dtypes={"z": "float32"}), "only 'after' has z"),
        (lambda: make("x[i] = y[i]"), "the use of 'x'"),
        (lambda: shifted(make("y[i] = x[i]")), "the offset of 'x': 0 in before, 1 in after"),
    ],
)
def test_arguments_must_match(other: Any, words: str) -> None:
    with pytest.raises(lk.InvalidArgumentError, match=words):
        lk.verify(make("y[i] = x[i]"), other())


def test_kernels_are_asked_for() -> None:
    with pytest.raises(lk.InvalidArgumentError, match="compares kernels, not 'y"):
        lk.verify(make("y[i] = x[i]"), "y[i] = x[i]")  # type: ignore[arg-type]


# }}}


def bytes_over(text: str) -> lk.Kernel:
    data = [lk.GlobalArg(name, "int8", shape="n") for name in ("a", "d")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lk.make_kernel("{ [i]: 0 <= i < n }", text, [*data, ...])


def test_a_difference_is_one_in_the_types_of_the_kernels() -> None:
    # Of a byte, both are 0: sixteen bits are shifted out.
    one, two = bytes_over("d[i] = (a[i]*16*16)//2"), bytes_over("d[i] = (a[i]*a[i]*16*16)//2")
    assert lk.verify(one, two).answer == "equal"
    assert lk.verify(bytes_over("d[i] = a[i] + 1"), bytes_over("d[i] = a[i] + 2")).witness


def test_what_nobody_wrote_is_equal_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proof alone says so, whether or not examples show the difference."""
    case = FAMILIES["temporaries"][0]
    before, after = case.kernel(), case.illegal.apply(case.before(), unchecked=True)
    monkeypatch.setattr("loopkit._verify.equivalence.quick_difference", lambda *_: None)
    monkeypatch.setattr("loopkit._verify.equivalence.look_for_difference", lambda *_: Outcome())
    for pair in ((before, after), (after, before)):
        assert lk.verify(*map(forgotten, pair)).answer == "undecided"


def test_bytes_that_data_hold_fit_a_byte() -> None:
    arguments = [lk.GlobalArg(name, "int8", shape="n + 200") for name in "ac"]
    before, after = (
        lk.make_kernel("{ [i]: 0 <= i < n }", f"c[i] = a[i] + {more}", [*arguments, ...])
        for more in (0, 1)
    )
    assert lk.verify(before, after).answer == "different"


def test_an_answer_shows_what_is_decided_without_data() -> None:
    before, after = (
        lk.make_kernel(
            "{ [i]: 0 <= i < n }",
            f"c[i] = (1 | 2 if i == 0 else i) + {name}[i]",
            [lk.GlobalArg("a", "int32", shape="n"), lk.GlobalArg("b", "int32", shape="n"), ...],
        )
        for name in "ab"
    )
    witness = lk.verify(before, after).witness
    assert witness is not None
    assert witness.before.endswith(" + a[0]")


def test_data_may_keep_an_access_inside_of_its_array() -> None:
    """Of what is read there nothing may be used; that it is read is not the same as not reading."""

    def guarded(index: str) -> lk.Kernel:
        text = f"<> t = b[i] if c[i] > 2 else b[{index}]\ny[i] = x[i]"
        return make(
            text, "{ [i]: 0 <= i < n }", shapes={"b": "n + 4", "c": "n", "x": "n", "y": "n"}
        )

    for one, two in (("i + 1", "i - 1"), ("i - 1", "i + 1"), ("i - 1", "i - 2")):
        verdict = lk.verify(guarded(one), guarded(two))
        assert verdict.answer == "undecided" and "data decide whether" in verdict.why
    for one, two in (("i + 1", "i + 2"), ("i - 1", "i - 1 + 0")):
        assert lk.verify(guarded(one), guarded(two)).answer == "equal"
    plain = guarded("i - 1")
    assert lk.verify(plain, plain.split_iname("i", 4)).answer == "equal"


def test_numbers_that_grow_without_end() -> None:
    """Exact fractions whose digits double at every step are not followed."""
    text = "u[i + 3] = u[i]*u[i]/(u[i + 1] + u[i + 2]*u[i]) + {c}*u[i]*u[i]"
    one, two = (make(text.format(c=c), shapes={"u": "n + 3"}) for c in ("3.0", "3.5"))
    assert lk.verify(one, two).answer == "different"
    three = make(text.format(c="3.0") + " + (u[i] - u[i])*0", shapes={"u": "n + 3"})
    assert lk.verify(one, three).answer != "different"


def test_how_a_value_came_about_is_cut_off() -> None:
    text = "v[n - 1 - k] = v[k] + e[k, i, j] + i + j"
    domains = ["{ [i]: 0 <= i < n }", "{ [j]: 0 <= 2*j <= i }", "{ [k]: 0 <= k < n }"]
    lines = f"for i\nfor j\nfor k\n{text}\nend\nend\nend"
    plain = lk.make_kernel(domains, lines, dtypes={"e": "uint8", "v": "uint64"})
    tagged = plain.split_iname("j", 9, outer_tag="g.0", unchecked=True)
    verdict = lk.verify(plain, tagged)
    assert verdict.answer == "different" and "..." in str(verdict)


@pytest.mark.parametrize("dtype", ["int32", "float32"])
@pytest.mark.parametrize(
    "text",
    [
        "y[i] = g(x[i])",
        "y[i] = sum(k, g(x[k])*x[i])",
        "<> t = g(x[i])\ny[i] = t*t + x[i]",
        "y[i] = 1 if g(x[i]) > 0 else 2",
    ],
)
def test_functions_of_one_name_are_compared_by_what_they_are(dtype: str, text: str) -> None:
    def kernel(add: int) -> lk.Kernel:
        body, meaning = f"return a + {add};", f"a + {add}"
        g = lk.register_callable("g", {"a": dtype}, dtype, body=body, meaning=meaning)
        dtypes = {"x, y": dtype}
        return lk.make_kernel("{ [i, k]: 0 <= i, k < n }", text, dtypes=dtypes, functions=[g])

    one, two, split = kernel(1), kernel(2), kernel(1).split_iname("i", 16)
    assert [lk.verify(one, k).answer for k in (kernel(1), split)] == ["equal", "equal"]
    for a, b in ((one, two), (two, one), (two, split)):
        verdict = lk.verify(a, b)
        assert verdict.answer == ("undecided" if "else" in text else "different")
        if verdict.witness is not None:
            assert verdict.witness.before != verdict.witness.after


def test_conditions_that_loops_made_are_asked_first() -> None:
    base = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "if x[i] > 0\ny[i] = 1\nend",
        [lk.GlobalArg("x, y", "int32", shape="n"), ...],
        assumptions="n >= 0",
    )
    peeled = base.peel_iname("i", first=1).unroll("i_first")
    assert lk.verify(base, peeled).answer == "equal" and peeled.prove().ok


@pytest.mark.parametrize(
    ("fill", "tags"),
    [
        ("<int32> s[p] = x[b, p]{}", "q: g.0, p: l.0"),
        ("<int32> s[p] = sum(k, x[b, k]{})", "q: g.0, p: l.0"),
        ("<int32> s[p] = x[b, p]\ns[p] = s[p] + (x[b, 7 - p]{})", "q: g.0"),
    ],
)
def test_each_block_fills_its_own_shared_array(fill: str, tags: str) -> None:
    def kernel(operation: str) -> lk.Kernel:
        return lk.make_kernel(
            "{ [b, p, q, k]: 0 <= b < n and 0 <= p, q, k < 8 }",
            f"for b\n{fill.format(operation)}\ny[b, q] = s[7 - q]\nend",
            [lk.GlobalArg("x, y", "int32", shape="n, 8"), ...],
            assumptions="n >= 0",
        )

    one, tagged = kernel("//2"), kernel(">>1").tag_inames(tags)
    assert "different" not in (lk.verify(one, tagged).answer, lk.verify(tagged, one).answer)
    assert lk.verify(one, kernel(">>2").tag_inames(tags)).answer == "different"


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("(a[i] > 0) + (b[i] > 0)", "int64(a[i] > 0) + int64(b[i] > 0)"),
        ("(a[i] > 1)*(b[i] > 0)*(a[i] > 0)", "a[i] + 1"),
        ("any(j, a[j] > 0)", "all(j, a[j] > 0)"),
        ("sum(j, a[j] > 0)", "sum(j, int64(a[j]))"),
    ],
)
def test_sums_of_truth_values_say_how_they_came_about(text: str, other: str) -> None:
    """Both sides of such a sum are computed, whatever the first one is."""
    data = [lk.GlobalArg("y", "int64", shape="n"), lk.GlobalArg("a, b", "int32", shape="n"), ...]
    domain = "{ [i, j]: 0 <= i, j < n }"
    one, two = (lk.make_kernel(domain, f"y[i] = {t}", data) for t in (text, other))
    assert lk.verify(one, two).answer == "different"


@pytest.mark.parametrize(
    "text",
    [
        "x[i, q] = reduce(segmented(sum), d, c[i, d], d == 1)*{}",
        """
        for i
            x[i, q] = sum(d, c[i, d])*{}
            <> t = c[i, 0]
            for k
                break if t > 2
                t = t + c[i, k]
            end
        end
        """,
    ],
)
def test_each_thread_of_a_scan_sees_what_threads_up_to_it_have(text: str) -> None:
    """In any order of threads, and where data decide which loops go on."""
    domains = ["{ [i, q, k]: 0 <= i < n and 0 <= q, k < 4 }", "{ [d]: 0 <= d <= q }"]
    one, two = (
        lk.make_kernel(domains, text.format(factor), [lk.GlobalArg("c", "int32", "n, 4"), ...])
        for factor in ("1", "(1 + i//3)")
    )
    scanned = two.realize_reduction(force_scan=True).split_iname("q", 4, inner_tag="l.0")
    found = lk.verify(one, scanned).witness
    assert found is not None and found.cell == (3, 1)


@pytest.mark.parametrize("space", ["private", "shared"])
def test_what_ends_with_a_launch_is_lost(space: str) -> None:
    text = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        """
        for i
            <> t = a[i]
            <> s = b[i]
            y[i] = s + t
        end
        """,
        dtypes={"a, b": "int32"},
    )
    spoiled = (
        text.assignment_to_subst("s")  # one statement less than the text has
        .set_temporary_address_space("t", space)
        .add_barrier("id:insn", "id:insn_1", within_inames=["i"], unchecked=True)
    )
    assert lk.verify(text, spoiled).answer == "different"
    for pair in ((spoiled, text), (spoiled, spoiled)):
        assert lk.verify(*pair).answer != "equal"


STRAYS = [
    ("w[i, j] = b[i]", "w[i, 0] = b[i]"),
    ("w[i, j] = b[i]", "w[i, j - 1] = b[i]"),
    ("w[i, j] = b[i]", "z[i, 0] = b[i]"),
    ("w[i, j] = b[i]", "w[a[i], 0] = b[i]"),
    ("w[a[i], j] = b[i]", "w[a[i], 0] = b[i]"),
    ("w[a[i], j] = b[i]", "w[c[i], j] = b[i]"),
    ("w[i, j] = b[i] {if=(a[i] > 2)}", "w[i, 0] = b[i] {if=(a[i] > 2)}"),
    ("<> t = b[i]", "w[i, 0] = b[i]"),
]


@pytest.mark.parametrize(("one", "two"), STRAYS)
def test_cells_that_one_kernel_alone_writes(one: str, two: str) -> None:
    """A value that is overwritten, or not used, may not be left in another cell."""

    def made(line: str) -> lk.Kernel:
        return lk.make_kernel(
            "{ [i, j]: 0 <= i < n and 1 <= j < 3 }",
            f"for i, j\n {line}\n w[i, j] = c[i]\n z[i, j] = a[i] + b[i]\nend",
            [lk.GlobalArg("w, z", shape="n, 3"), lk.GlobalArg("a, b, c", shape="n"), ...],
            dtypes={"a, b, c, w, z": "int32"},
            assumptions="n >= 1",
        )

    for before, after in ((one, two), (two, one)):
        answer = lk.verify(made(before), made(after)).answer
        # Few values lie above a bound, and those tried may all lie below.
        assert answer == "different" or ("if=" in one and answer == "undecided")
    assert lk.verify(made(two), made(two)).answer == "equal"
    if one == "w[i, j] = b[i]":  # in a cell that is overwritten, too, nobody sees it
        assert lk.verify(made("<> t = b[i]"), made(one)).answer == "equal"
