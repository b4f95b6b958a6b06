"""What a block does together, written by hand: sums, scans and sorts in shared memory."""

from __future__ import annotations

from collections.abc import Iterable

import loopkit as lk

LEVELS = 10
SIZE = 1 << LEVELS
NAMES = [f"t{level}" for level in range(LEVELS)]


def _block(
    inames: Iterable[str], lines: Iterable[str], outputs: str, shared: Iterable[str], size: int
) -> lk.Kernel:
    """Rows ``x[b, i]`` loaded into shared memory, worked on by ``lines``, and stored."""
    names = ["i", *inames]
    domains = ["{ [b]: 0 <= b < n }", *(f"{{ [{i}]: 0 <= {i} < {size} }}" for i in names)]
    first = next(iter(shared))
    text = "\n".join(["for b", f"{first}[i] = x[b, i] {{id=load}}", *lines, outputs, "end"])
    arrays = [
        lk.TemporaryVariable(name, "float32", (size,), lk.AddressSpace.LOCAL) for name in shared
    ]
    return lk.make_kernel(
        domains,
        text,
        [lk.GlobalArg("x", "float32", shape=f"n, {size}"), *arrays, ...],
        dtypes={"out": "float32"},
    )


def tree(form: str) -> lk.Kernel:
    """A sum over a block: halves are added, or neighbours at distances that double."""
    lines = []
    for level, t in enumerate(NAMES):
        if form == "halves":
            half = SIZE >> (level + 1)
            lines.append(f"s[{t}] = s[{t}] + s[{t} + {half}] {{id=level{level}, if={t} < {half}}}")
        elif form == "reckless":
            lines.append(f"s[{t}] = s[{t}] + s[{SIZE - 1} - {t}] {{id=level{level}}}")
        else:
            step = 1 << level
            lines.append(
                f"s[{t}] = s[{t}] + s[{t} + {step}] {{id=level{level}, if={t} % {2 * step} == 0}}"
            )
    return _block(NAMES, lines, "out[b] = s[0] {id=store}", ["s"], SIZE)


def tree_in_a_loop() -> lk.Kernel:
    """The same in a loop over levels, between two buffers; each level has its condition."""
    levels = "".join(
        f"if level == {k} and t < {SIZE >> (k + 1)}\n"
        f"s[{(k + 1) % 2}, t] = s[{k % 2}, t] + s[{k % 2}, t + {SIZE >> (k + 1)}] {{id=level{k}}}\n"
        "end\n"
        for k in range(LEVELS)
    )
    return lk.make_kernel(
        [
            f"{{ [b, i]: 0 <= b < n and 0 <= i < {SIZE} }}",
            f"{{ [level, t]: 0 <= level < {LEVELS} and 0 <= t < {SIZE} }}",
        ],
        "for b\nfor i\ns[0, i] = x[b, i] {id=load}\nend\n"
        f"for level\n{levels}end\nout[b] = s[0, 0] {{id=store}}\nend",
        [
            lk.GlobalArg("x", "float32", shape=f"n, {SIZE}"),
            lk.TemporaryVariable("s", "float32", (2, SIZE), lk.AddressSpace.LOCAL),
            ...,
        ],
        dtypes={"out": "float32"},
    )


def hillis_steele(form: str) -> lk.Kernel:
    """Sums of all that stands before, and itself: two buffers take turns."""
    lines = []
    for level, t in enumerate(NAMES):
        old, new = ("s0", "s1") if level % 2 == 0 else ("s1", "s0")
        step = 1 << level
        added, kept = f"{old}[{t}] + {old}[{t} - {step}]", f"{old}[{t}]"
        if form == "one":
            value = f"if({t} >= {step}, {added}, {kept})"
            lines.append(f"{new}[{t}] = {value} {{id=level{level}}}")
        else:
            lines.append(f"{new}[{t}] = {added} {{id=add{level}, if={t} >= {step}}}")
            lines.append(f"{new}[{t}] = {kept} {{id=keep{level}, if={t} < {step}}}")
    return _block([*NAMES, "o"], lines, "out[b, o] = s0[o] {id=store}", ["s0", "s1"], SIZE)


def blelloch(form: str) -> lk.Kernel:
    """Sums of all that stands before: up a tree, and down again."""
    lines = []
    down = [f"v{level}" for level in reversed(range(LEVELS))]
    for level, t in enumerate(NAMES):
        low, high, condition = _node(form, t, level)
        lines.append(f"s[{high}] = s[{high}] + s[{low}] {{id=up{level}, if={condition}}}")
    lines.append(f"s[{SIZE - 1}] = 0 {{id=zero}}")
    for level, t in zip(reversed(range(LEVELS)), down, strict=True):
        low, high, condition = _node(form, t, level)
        lines += [
            f"if {condition}",
            f"<> left{level} = s[{low}] {{id=left{level}}}",
            f"s[{low}] = s[{high}] {{id=down{level}}}",
            f"s[{high}] = s[{high}] + left{level} {{id=both{level}}}",
            "end",
        ]
    return _block([*NAMES, *down, "o"], lines, "out[b, o] = s[o] {id=store}", ["s"], SIZE)


def _node(form: str, t: str, level: int) -> tuple[str, str, str]:
    """The left child of a node of the tree and the node itself, and the threads that are one."""
    step = 1 << level
    if form == "remainders":
        return f"{t} - {step}", t, f"{t} % {2 * step} == {2 * step - 1}"
    node = f"{2 * step}*{t} + "
    return f"{node}{step - 1}", f"{node}{2 * step - 1}", f"{t} < {SIZE // (2 * step)}"


def double_buffer() -> lk.Kernel:
    """A tiled product that loads the next tiles while it works on these."""
    return lk.make_kernel(
        [
            "{ [io, jo, ii, jj]: 0 <= io < rows and 0 <= jo < cols and 0 <= ii, jj < 16 }",
            "{ [ko]: 0 <= ko < steps }",
            "{ [kk]: 0 <= kk < 16 }",
        ],
        """
        for io, jo
            for ii, jj
                acc[ii, jj] = 0 {id=start}
                a_s[0, ii, jj] = a[16*io + ii, jj] {id=first_a}
                b_s[0, ii, jj] = b[ii, 16*jo + jj] {id=first_b}
            end
            for ko
                for ii, jj
                    if ko + 1 < steps
                        a_s[(ko + 1) % 2, ii, jj] = a[16*io + ii, 16*(ko + 1) + jj] {id=next_a}
                        b_s[(ko + 1) % 2, ii, jj] = b[16*(ko + 1) + ii, 16*jo + jj] {id=next_b}
                    end
                end
                for ii, jj, kk
                    acc[ii, jj] = acc[ii, jj] + a_s[ko % 2, ii, kk]*b_s[ko % 2, kk, jj] {id=add}
                end
            end
            for ii, jj
                c[16*io + ii, 16*jo + jj] = acc[ii, jj] {id=store}
            end
        end
        """,
        [
            lk.GlobalArg("a", "float32", shape="16*rows, 16*steps"),
            lk.GlobalArg("b", "float32", shape="16*steps, 16*cols"),
            lk.GlobalArg("c", "float32", shape="16*rows, 16*cols"),
            lk.TemporaryVariable("a_s", "float32", (2, 16, 16), lk.AddressSpace.LOCAL),
            lk.TemporaryVariable("b_s", "float32", (2, 16, 16), lk.AddressSpace.LOCAL),
            lk.TemporaryVariable("acc", "float32", (16, 16)),
            ...,
        ],
        assumptions="rows, cols, steps >= 1",
    )


def bitonic(form: str, size: int) -> lk.Kernel:
    """A sorting network: pairs at a distance are put in order, up or down."""
    lines, names = [], []
    for span in (1 << p for p in range(1, size.bit_length())):
        step = span // 2
        while step:
            t = f"t{len(names)}"
            names.append(t)
            lines += _compared(form, t, len(names), span, step)
            step //= 2
    return _block([*names, "o"], lines, "out[b, o] = s[o] {id=store}", ["s"], size)


def _compared(form: str, t: str, number: int, span: int, step: int) -> list[str]:
    """One stage: of each pair the thread of the lower element puts both in order."""
    if form == "bits":
        low, high = t, f"{t} ^ {step}"
        first, up = f"({t} ^ {step}) > {t}", f"({t} & {span}) == 0"
    else:
        low, high = t, f"{t} + {step}"
        first, up = f"{t} % {2 * step} < {step}", f"{t} // {span} % 2 == 0"
    return [
        f"if {first}",
        f"<> p{number} = s[{low}] {{id=low{number}}}",
        f"<> q{number} = s[{high}] {{id=high{number}}}",
        f"s[{low}] = if({up}, min(p{number}, q{number}), max(p{number}, q{number}))",
        f"s[{high}] = if({up}, max(p{number}, q{number}), min(p{number}, q{number}))",
        "end",
    ]


def bitonic_in_launches(form: str, size: int, barrier: str = "... gbarrier") -> lk.Kernel:
    """The same network over an array in global memory, one launch for each stage."""
    lines, names = [], []
    for span in (1 << p for p in range(1, size.bit_length())):
        step = span // 2
        while step:
            t = f"t{len(names)}"
            names.append(t)
            lines += [*_compared(form, t, len(names), span, step), barrier]
            step //= 2
    return lk.make_kernel(
        [f"{{ [{t}]: 0 <= {t} < {size} }}" for t in names],
        "\n".join(lines[:-1] if barrier else lines),
        [lk.GlobalArg("s", "float32", shape=size), ...],
    )


def histogram() -> lk.Kernel:
    """Each block counts in shared memory what it reads, and adds that to all in the end."""
    return lk.make_kernel(
        ["{ [b]: 0 <= b < n }", "{ [u, t, v]: 0 <= u, v < 256 and 0 <= t < 1024 }"],
        """
        for b
            h[u] = 0 {id=zero}
            h[x[1024*b + t]] = h[x[1024*b + t]] + 1 {atomic, id=count}
            out[v] = out[v] + h[v] {atomic, id=add}
        end
        """,
        [
            lk.GlobalArg("x", "int32", shape="1024*n"),
            lk.GlobalArg("out", "int32", shape=256),
            lk.TemporaryVariable("h", "int32", (256,), lk.AddressSpace.LOCAL),
            ...,
        ],
    ).assume_within("x", 0, 256)


def gather() -> lk.Kernel:
    """``y[i] = x[p[i]]``."""
    return _by_index("y[i] = x[p[i]]")


def scatter() -> lk.Kernel:
    """``y[p[i]] = x[i]``, where no number is twice in ``p``."""
    return _by_index("y[p[i]] = x[i]").assume_injective("p")


def _by_index(text: str) -> lk.Kernel:
    return lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        text,
        [
            lk.GlobalArg("x", "float32", shape="m"),
            lk.GlobalArg("y", "float32", shape="m"),
            lk.GlobalArg("p", "int32", shape="n"),
            ...,
        ],
        assumptions="n <= m",
    )
