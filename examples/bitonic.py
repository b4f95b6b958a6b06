"""Sorting by a network (Batcher 1968): in each stage all pairs at one distance are put in order.

``[3, 1, 4, 1]`` takes three stages: pairs of neighbours rise and fall in turns, ``[1, 3, 4, 1]``;
then distances 2 and 1 make ``[1, 1, 4, 3]`` and ``[1, 1, 3, 4]`` of that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

SIZE = 64
"""How long the rows are that the gallery shows sorted: any power of two will do, up to 1,024."""


def stages(size: int) -> list[tuple[int, int]]:
    """How long the runs are that a stage works towards, and the distance of its pairs."""
    spans = [2 << level for level in range(size.bit_length() - 1)]
    return [(span, span >> k) for span in spans for k in range(1, span.bit_length())]


def stage(t: str, old: str, new: str, span: int, step: int) -> str:
    """Each element becomes the smaller or the larger one of its pair.

    The lower element of a pair in a rising run takes the smaller one, and so does the upper
    element in a falling one.
    """
    pair = f"{old}[{t}], {old}[{t} ^ {step}]"
    return f"{new}[{t}] = if(({t} & {span} == 0) == ({t} & {step} == 0), min({pair}), max({pair}))"


def plain(size: int = SIZE) -> lk.Kernel:
    """``y[b, :]`` is ``x[b, :]`` in order, for rows as long as a power of two, without NaN.

    Two arrays take turns: a stage reads one of them, and fills the other.
    """
    if size < 2 or size & (size - 1):
        raise ValueError(f"a network sorts as many numbers as a power of two, not {size}")
    network = stages(size)
    arrays = ["s0", "s1"]
    inames = ["first", *(f"t{k}" for k in range(len(network))), "last"]
    lines = [
        stage(f"t{k}", arrays[k % 2], arrays[1 - k % 2], *which) for k, which in enumerate(network)
    ]
    text = ["s0[first] = x[b, first]", *lines, f"y[b, last] = {arrays[len(network) % 2]}[last]"]
    return lk.make_kernel(
        ["{ [b]: 0 <= b < n }", *(f"{{ [{i}]: 0 <= {i} < {size} }}" for i in inames)],
        "\n".join(["for b", *text, "end"]),
        [
            lk.GlobalArg("x", shape=f"n, {size}"),
            *(lk.TemporaryVariable(a, "float32", (size,), lk.AddressSpace.LOCAL) for a in arrays),
            ...,
        ],
        name="bitonic",
        dtypes={"x, y": "float32"},
    )


def by_blocks(size: int = SIZE) -> lk.Kernel:
    """A block for each row, and a thread for each of its elements, in all stages."""
    knl = plain(size)
    return knl.tag_inames({i: "g.0" if i == "b" else "l.0" for i in sorted(knl.all_inames)})


def with_launches(size: int = SIZE) -> lk.Kernel:
    """The same in place, each stage a launch: pair ``p`` of a stage puts its two in order."""
    lines = []
    for number, (span, step) in enumerate(stages(size)):
        low = f"p + p // {step} * {step}"
        mine, its = f"a{number}", f"b{number}"
        both, rises = f"{mine}, {its}", f"p & {span // 2} == 0"
        lines += [
            "... gbarrier" if number else "",
            f"<> {mine} = {'y' if number else 'x'}[b, {low}]",
            f"<> {its} = {'y' if number else 'x'}[b, {low} + {step}]",
            f"y[b, {low}] = min({both}) if {rises} else max({both})",
            f"y[b, {low} + {step}] = max({both}) if {rises} else min({both})",
        ]
    return lk.make_kernel(
        f"{{ [b, p]: 0 <= b < n and 0 <= p < {size // 2} }}",
        "\n".join(lines),
        [
            lk.GlobalArg("x", shape=f"n, {size}"),
            lk.GlobalArg("y", shape=f"n, {size}", is_input=False),
            ...,
        ],
        name="bitonic",
        dtypes={"x, y": "float32"},
    )


def by_launches(size: int = SIZE, threads: int = 256) -> lk.Kernel:
    """A thread for each pair: rows may be longer than a block, and lie in global memory."""
    knl = with_launches(size).split_iname("p", threads, outer_tag="g.0", inner_tag="l.0")
    return knl.tag_inames("b: g.1")


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {
        "plain": plain(),
        "a block a row": by_blocks(),
        "a launch a stage": by_launches(threads=16),
    }


def inputs(n: int = 5, seed: int = 0) -> dict[str, Any]:
    """Whole numbers, so that some are equal."""
    rng = np.random.default_rng(seed)
    return {"x": rng.integers(-500, 500, (n, SIZE)).astype(np.float32)}


def expected(x: Any) -> Any:
    """The same by NumPy."""
    return np.sort(x, axis=1)


def small() -> list[float]:
    """The numbers of the example, in order."""
    x = np.array([[3, 1, 4, 1]], np.float32)
    return [float(v) for v in np.ravel(by_blocks(4)(x=x))]


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
