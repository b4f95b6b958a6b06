"""The messages of errors, whole: what was asked, why it cannot be, what would help."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import loopkit as lk

MATMUL = "{ [i, j, k]: 0 <= i < n and 0 <= j < m and 0 <= k < l }"


def matmul(**options: object) -> lk.Kernel:
    return lk.make_kernel(
        MATMUL, "c[i, j] = sum(k, a[i, k] * b[k, j])", dtypes={"a, b, c": "float32"}, **options
    )


def copy(text: str = "b[i] = a[i]", domain: str = "{ [i]: 0 <= i < n }") -> lk.Kernel:
    return lk.make_kernel(domain, text, dtypes={"a, b": "float32"})


def blocks(knl: lk.Kernel, length: int = 128) -> lk.Kernel:
    return knl.split_iname("i", length, outer_tag="g.0", inner_tag="l.0")


def two_inames_on_one_axis() -> str:
    return (
        copy("b[i, j] = a[i, j]", "{ [i, j]: 0 <= i, j < 16 }").tag_inames("i: l.0, j: l.0").cuda()
    )


def big_shared() -> str:
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 256 }",
        "b[i, j] = a[i, 255 - j]",
        dtypes={"a, b": "float32"},
    )
    knl = knl.split_iname("i", 300, outer_tag="g.0").tag_inames("j:l.0")
    return knl.add_prefetch("a", ["i_inner", "j"], default_tag="l.auto").cuda()


def race() -> str:
    return (
        lk.make_kernel("{ [i]: 0 <= i < 32 }", "s[0] = a[i]", dtypes={"a, s": "float32"})
        .tag_inames("i:l.0")
        .cuda()
    )


F = np.float32
CASES: dict[str, Callable[[], object]] = {
    "unknown iname": lambda: matmul().split_iname("ii", 16),
    "unknown tag": lambda: matmul().tag_inames("i:l.7"),
    "an iname without a tag": lambda: matmul().tag_inames("i, j: g.0"),
    "unknown array": lambda: matmul().add_prefetch("aa", ["k"]),
    "unknown transform argument": lambda: matmul().split_iname("i", 16, inner="l.0"),
    "unbalanced bracket": lambda: copy("b[i = a[i]"),
    "missing operand": lambda: copy("b[i] = a[i] +"),
    "bad option": lambda: copy("b[i] = a[i] {depp=x}"),
    "bad domain": lambda: copy(domain="{ [i]: 0 <= i < }"),
    "unknown iname in the text": lambda: lk.make_kernel(
        "{ [i]: 0 <= i < n }", "b[ii] = a[i]", ["a, b", lk.ValueArg("n", np.dtype("int32"))]
    ),
    "prefetch that replaces nothing": lambda: matmul().add_prefetch(
        "a", ["j"], within="id:nothing"
    ),
    "two inames on one axis": two_inames_on_one_axis,
    "thread axis of no constant length": lambda: copy().tag_inames("i:l.0").cuda(),
    "split by zero": lambda: copy().split_iname("i", 0),
    "unwritten temporary": lambda: lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "for i\n  b[i] = t + 1\nend",
        [
            lk.TemporaryVariable("t", np.dtype("float32")),
            "...",
        ],
        dtypes={"b": "float32"},
    ),
    "block of 2048 threads": lambda: blocks(copy(), 2048).cuda(),
    "300 KiB of shared memory": big_shared,
    "several threads write one cell": race,
    "wrong dtype": lambda: copy().executor("host")(a=np.zeros(4)),
    "wrong shape": lambda: matmul().executor("host")(a=np.zeros((4, 7), F), b=np.zeros((8, 5), F)),
    "missing argument": lambda: matmul().executor("host")(a=np.zeros((4, 7), F)),
    "unknown argument": lambda: copy().executor("host")(a=np.zeros(4, F), aa=np.zeros(4, F)),
    "broken assumption": lambda: matmul(assumptions="l mod 16 = 0").executor("host")(
        a=np.zeros((4, 7), F), b=np.zeros((7, 5), F)
    ),
    "unknown executor": lambda: copy().executor("gpu"),
    "unknown size": lambda: blocks(copy()).launch_config(m=3),
    "missing type": lambda: lk.make_kernel("{ [i]: 0 <= i < n }", "b[i] = a[i]").cuda(),
    "unrolling a loop of no constant length": lambda: copy().tag_inames("i:unr").cuda(),
    "private array of no constant length": lambda: matmul().prioritize_loops("k, i").cuda(),
}


@pytest.mark.parametrize("case", CASES)
def test_message(case, golden, capsys):
    with pytest.raises(lk.LoopkitError) as caught:
        CASES[case]()
    text = f"{type(caught.value).__name__}\n{caught.value}\n"
    golden(f"message_{case.replace(' ', '_')}.txt", text)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        # A statement that goes on in further lines.
        (
            "y[i] = x[i] + \\\n\t  foo(x[i])  # here",
            (
                "    y[i] = x[i] + \\\n    ^^^^^^^^^^^^^^^\n"
                "       foo(x[i])  # here\n       ^^^^^^^^^\n"
            ),
        ),
        # A tab is one blank, and some letters are two wide.
        ("\ty[i] =\tx[i] +* 2", "     y[i] = x[i] +* 2\n                  ^"),
        ("y[i] = x[i] + (1)) # \u5bbd", "    y[i] = x[i] + (1)) # \u5bbd\n                     ^"),
        ("y[i] = (\u5bbd)) + 2", "    y[i] = (\u5bbd)) + 2\n               ^"),
        ("y[i] = 1 if x[i] > 0 && i > 2 else 0", "write 'and'"),
        ("y[i] = 1 if x[i] > 0 || i > 2 else 0", "write 'or'"),
        ("y[i] = min(x[i], FLT_MAX)", "there is no constant 'FLT_MAX'"),
        ("y[i] = M_SQRT2*x[i]", "there is no constant 'M_SQRT2'"),
    ],
)
def test_carets_stand_under_what_they_mean(text: str, shown: str) -> None:
    with pytest.raises(lk.LoopkitError) as caught:
        lk.make_kernel("{ [i]: 0 <= i < n }", text, dtypes={"x, y": "float32"})
    assert shown in str(caught.value), str(caught.value)
