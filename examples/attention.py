"""Attention: for each query the mean of values, weighted by softmax of its products with keys.

Keys come in blocks, and each is met once: the largest product so far, the sum of exponentials
and the weighted sum are kept, and made smaller when a larger product comes. Where all keys are
the same it is the mean of the values: of 1 and 3 that is 2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import loopkit as lk

#: Numbers in a query, a key or a value; keys in a block.
WIDTH, BLOCK = 32, 16


def plain() -> lk.Kernel:
    """Query ``i`` of ``head``: ``top`` and ``total`` are those of the blocks so far."""
    return lk.make_kernel(
        [
            "{ [head, i]: 0 <= head < heads and 0 <= i < n }",
            f"{{ [c, d, d0, d1]: 0 <= c, d, d0, d1 < {WIDTH} }}",
            f"{{ [b]: 0 <= b and {BLOCK}*b < m }}",
            f"{{ [j, l, p, q]: 0 <= j, l, p, q < {BLOCK} and j, l, p, q < m - {BLOCK}*b }}",
        ],
        f"""
        for head, i
            <float32> top = -3.4028235e38
            <float32> total = 0
            <float32> mean[d0] = 0
            for b
                <> score[j] = scale*sum(c, query[head, i, c]*key[head, {BLOCK}*b + j, c])
                <> highest = max(top, max(l, score[l]))
                <> shrunk = exp(top - highest)
                <> weight[p] = exp(score[p] - highest)
                total = total*shrunk + sum(q, weight[q])
                mean[d] = mean[d]*shrunk + sum(q, weight[q]*value[head, {BLOCK}*b + q, d])
                top = highest
            end
            out[head, i, d1] = mean[d1]/total
        end
        """,
        [lk.TemporaryVariable("score, weight", shape=BLOCK), ...],
        name="attention",
        dtypes={"query, key, value, out, scale": "float32"},
        assumptions="heads, n, m >= 1",
    )


def registers(threads: int = 128) -> lk.Kernel:
    """A thread for each query: it and its mean are in registers."""
    return (
        plain()
        .tag_inames("head: g.1")
        .split_iname("i", threads, outer_tag="g.0", inner_tag="l.0")
        .add_prefetch("query[head, i, :]", default_tag="unr")
        .tag_inames("c: unr, d: unr, d0: unr, d1: unr")
    )


def staged(threads: int = 128) -> lk.Kernel:
    """All threads of a block meet its keys and values in shared memory, and loops are unrolled."""
    keys = f"{BLOCK}*b : {BLOCK}*b + {BLOCK}"
    return (
        registers(threads)
        .add_prefetch(f"key[head, {keys}, :]", default_tag="l.auto")
        .add_prefetch(f"value[head, {keys}, :]", default_tag="l.auto")
        .tag_inames("j: unr, l: unr, p: unr, q: unr")
    )


def make() -> dict[str, lk.Kernel]:
    """All schedules, the text's own first."""
    return {"plain": plain(), "registers": registers(), "staged": staged()}


def inputs(heads: int = 2, n: int = 70, m: int = 45, seed: int = 0) -> dict[str, Any]:
    """Random arguments."""
    rng = np.random.default_rng(seed)
    shapes = {"query": (heads, n, WIDTH), "key": (heads, m, WIDTH), "value": (heads, m, WIDTH)}
    given: dict[str, Any] = {x: rng.normal(size=s).astype(np.float32) for x, s in shapes.items()}
    return {**given, "scale": np.float32(WIDTH**-0.5)}


def expected(query: Any, key: Any, value: Any, scale: Any) -> Any:
    """The same by NumPy, with all products at once."""
    scores = scale * (query.astype(np.float64) @ key.swapaxes(1, 2))
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return weights @ value / weights.sum(axis=2, keepdims=True)


def small() -> float:
    """The mean of the example: 2."""
    query, key = np.ones((1, 1, WIDTH), np.float32), np.ones((1, 2, WIDTH), np.float32)
    value = np.repeat(np.array([1, 3], np.float32), WIDTH).reshape(1, 2, WIDTH)
    return float(staged()(query=query, key=key, value=value, scale=1.0)[0, 0, 0])


if __name__ == "__main__":
    from _gallery import present

    present(make(), inputs(), expected(**inputs()))
    print(small())
