"""Random small kernels whose threads exchange data through shared and global memory."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import islpy as isl
import numpy as np
import pymbolic.primitives as prim
from seams import Domain, GroupAxis, LocalAxis, Loop

from loopkit import AddressSpace, ArrayArg, Kernel, Statement, TemporaryVariable, ValueArg

F32, I32 = np.dtype(np.float32), np.dtype(np.int32)
V = prim.Variable


def plus(*terms: Any) -> Any:
    """A sum, zeros left out."""
    kept = tuple(t for t in terms if not (isinstance(t, int) and t == 0))
    return kept[0] if len(kept) == 1 else prim.Sum(kept) if kept else 0


def at(name: str, *indices: Any) -> Any:
    return prim.Subscript(V(name), indices)


def make(
    domains: list[tuple[str, str]],
    statements: list[Statement],
    tree: Any,
    tags: dict[str, Any],
    shared: dict[str, int],
    *,
    private: tuple[str, ...] = (),
    outputs: tuple[str, ...] = (),
    assume: str = "n >= 1",
) -> Kernel:
    """A kernel of hand-made parts; a domain is an iname and its set."""
    return Kernel(
        "test",
        tuple(Domain((iname,), isl.Set(text)) for iname, text in domains),
        tuple(statements),
        (ValueArg("n", I32), *(ArrayArg(a, F32, (4096,)) for a in outputs)),
        (
            *(
                TemporaryVariable(name, F32, (64,) * rank, AddressSpace.LOCAL)
                for name, rank in shared.items()
            ),
            *(TemporaryVariable(name, F32, (), AddressSpace.PRIVATE) for name in private),
        ),
        tree,
        tags=tuple(sorted(tags.items())),
        assumptions=Domain((), isl.Set(f"[n] -> {{ : {assume} }}")),
    )


BLOCKS = ((4,), (5,), (2, 2), (3, 2), (2, 3))


@dataclass
class Draw:
    """Draws one kernel."""

    r: random.Random
    domains: list[tuple[str, str]] = field(default_factory=list)
    statements: list[Statement] = field(default_factory=list)
    threads: tuple[str, ...] = ()
    blocks: bool = False
    in_global: bool = False

    def kernel(self) -> Kernel:
        r = self.r
        shape = r.choice(BLOCKS)
        self.threads = tuple(f"t{axis}" for axis in range(len(shape)))
        tags: dict[str, Any] = {}
        for axis, extent in enumerate(shape):
            low = r.choice((0, 0, 0, 1))
            span = f"{low} <= t{axis} < {low + extent}"
            self.domains.append((f"t{axis}", f"[t{axis}] -> {{ : {span} }}"))
            tags[f"t{axis}"] = LocalAxis(axis)
        self.blocks = r.random() < 0.2
        if self.blocks:
            bound = r.choice(("2", "n"))
            self.domains.append(("g", f"[n, g] -> {{ : 0 <= g < {bound} }}"))
            tags["g"] = GroupAxis(0)
        self.in_global = r.random() < 0.15
        tree = self.body((), r.choice((1, 2, 3, 3)))
        names = tuple(f"s{k}" for k in range(3))
        return make(
            self.domains,
            self.statements,
            tree,
            tags,
            {} if self.in_global else dict.fromkeys(names, 1),
            private=("p",),
            outputs=names if self.in_global else (),
            assume=r.choice(("n >= 1", "n >= 1", "n >= 0", "n >= 2")),
        )

    def body(self, loops: tuple[str, ...], count: int) -> Any:
        r = self.r
        nodes: list[Any] = []
        for _ in range(count):
            deep = len(loops) >= 3 or len(self.statements) >= 5
            if not deep and r.random() < 0.45:
                iname = self.loop(loops)
                nodes.append(Loop(iname, self.body((*loops, iname), r.choice((1, 2, 2, 3)))))
            else:
                nodes.append(self.statement(loops))
        return tuple(nodes)

    def loop(self, loops: tuple[str, ...]) -> str:
        iname = f"i{len(self.domains)}"
        texts = [
            f"[n, {iname}] -> {{ : 0 <= {iname} < n }}",
            f"[n, {iname}] -> {{ : 0 <= {iname} < 2 }}",
            f"[n, {iname}] -> {{ : 1 <= {iname} < n }}",
            f"[n, {iname}] -> {{ : 0 <= {iname} <= n }}",
            f"[n, {iname}] -> {{ : 0 <= {iname} < n and {iname} mod 2 = 0 }}",
            f"[{iname}] -> {{ : 0 <= {iname} < 1 }}",
        ]
        for outer in loops:
            head = f"[n, {iname}, {outer}] -> {{ : "
            texts.append(head + f"0 <= {iname} <= {outer} }}")
            texts.append(head + f"0 <= {iname} < {outer} }}")
            texts.append(head + f"{outer} <= {iname} < n }}")
        self.domains.append((iname, self.r.choice(texts)))
        return iname

    def statement(self, loops: tuple[str, ...]) -> str:
        r = self.r
        name = f"S{len(self.statements)}"
        inames = {*loops, *self.threads}
        if self.blocks and r.random() < 0.9:
            inames.add("g")
        if r.random() < 0.2:
            inames.discard(r.choice(self.threads))
        target: Any = V("p")
        arrays = ["s0", "s1", "s2"]
        if r.random() < 0.75:
            written = r.choice(arrays)
            target = at(written, self.index(loops, inames))
            if r.random() < 0.9:
                # A statement that reads what it writes mostly races with itself.
                arrays.remove(written)
        rhs: Any = 1
        for _ in range(r.choice((0, 1, 1, 2))):
            rhs = plus(rhs, at(r.choice(arrays), self.index(loops, inames)))
        predicates = []
        names = [i for i in (*loops, *self.threads) if i in inames]
        if names and r.random() < 0.2:
            predicates.append(self.condition(V(r.choice(names))))
        whole = frozenset(inames)
        self.statements.append(Statement(name, target, rhs, whole, tuple(predicates)))
        return name

    def index(self, loops: tuple[str, ...], inames: set[str]) -> Any:
        r = self.r
        terms: list[Any] = []
        stride = 1
        for thread in self.threads:
            if thread in inames:
                terms.append(prim.Product((stride, V(thread))) if stride != 1 else V(thread))
            stride *= 3
        if len(terms) == 1 and r.random() < 0.1:
            terms = [prim.Product((-1, terms[0])), 7]
        kind = r.random()
        if loops and kind < 0.3:
            factor = r.choice((1, 1, 6, -1, 6))
            loop = V(r.choice(loops))
            terms.append(loop if factor == 1 else prim.Product((factor, loop)))
        elif loops and kind < 0.45:
            loop = V(r.choice(loops))
            terms.append(prim.Product((7, prim.Remainder(plus(loop, r.choice((0, 1))), 2))))
        if "g" in inames and (self.in_global or r.random() < 0.2):
            terms.append(prim.Product((12, V("g"))))
        terms.append(r.choice((0, 0, 0, 1, -1, 2)))
        return plus(*terms)

    def condition(self, name: Any) -> Any:
        return self.r.choice(
            (
                prim.Comparison(name, ">=", 1),
                prim.Comparison(name, "==", 1),
                prim.Comparison(prim.Remainder(name, 2), "==", 0),
            )
        )


def random_kernel(seed: int) -> Kernel:
    """A kernel for each seed."""
    return Draw(random.Random(seed)).kernel()
