"""Faults planted in printed texts: the proof finds every one of them.

Each is a small edit of what lowering printed.  A fault that is not found, or is
found as something else than it is, fails its test.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from gallery import kernels
from proof_kernels import (
    copy,
    dynamic,
    in_place,
    matmul,
    registers,
    reversed_rows,
    row_sums,
    sparse,
)
from seams import prove, prove_source

from loopkit import Kernel


@dataclass(frozen=True)
class Fault:
    """``old`` becomes ``new`` at its ``which``-th place; the finding's kind is one of ``kinds``."""

    name: str
    kernel: Callable[[], Kernel]
    old: str
    new: str
    kinds: tuple[str, ...]
    which: int = 0

    def planted(self) -> str:
        parts = self.kernel().cuda().split(self.old)
        assert len(parts) > self.which + 1, f"'{self.old}' is not in the text"
        split = self.which + 1
        return self.old.join(parts[:split]) + self.new + self.old.join(parts[split:])


def stencil() -> Kernel:
    return kernels("stencil_25")["tiled"]


def staged_gradient() -> Kernel:
    return kernels("dg_gradient")["staged"]


def transpose() -> Kernel:
    return kernels("transpose")["scheduled"]


def one_warp() -> Kernel:
    return reversed_rows(32)


def two_warps() -> Kernel:
    return reversed_rows(64)


def asserted() -> Kernel:
    return sparse(asserted=True)


def wide_copy() -> Kernel:
    return copy("1 <= n, m <= 65536")


SYNC = "        __syncthreads();"
FAULTS = (
    # {{{ barriers
    Fault("barrier after the fetch dropped", matmul, SYNC, "", ("barrier",)),
    Fault("barrier before the next fetch dropped", matmul, SYNC, "", ("barrier",), 1),
    Fault("barrier of the peeled step dropped", registers, SYNC, "", ("barrier",), 2),
    Fault("barrier of a stencil dropped", stencil, "    __syncthreads();", "", ("barrier",)),
    Fault("barrier of a transposition dropped", transpose, "__syncthreads();", ";;", ("text",)),
    Fault(
        "barrier moved behind the loop",
        two_warps,
        "        __syncthreads();                                                "
        "// s read above, written in the next t\n    }",
        "    }\n    __syncthreads();",
        ("barrier",),
    ),
    Fault(
        "barrier moved in front of the loop",
        two_warps,
        "    for (int t = 0; t < n; ++t) {\n        s[i] = a[64LL * t + i];",
        "    __syncthreads();\n    for (int t = 0; t < n; ++t) {\n        s[i] = a[64LL * t + i];",
        (),
    ),
    Fault(
        "barrier moved into the inner loop",
        matmul,
        "k_inner < min(16, l - 16 * k_outer); ++k_inner)\n",
        "k_inner < min(16, l - 16 * k_outer); ++k_inner) {\n        __syncthreads();\n    }\n"
        "        for (int k_inner = 0; k_inner < min(16, l - 16 * k_outer); ++k_inner)\n",
        (),
    ),
    Fault("a barrier for warps only", two_warps, "__syncthreads()", "__syncwarp()", ("barrier",)),
    Fault(
        "a barrier for warps at the end only",
        two_warps,
        "__syncthreads()",
        "__syncwarp()",
        ("barrier",),
        1,
    ),
    Fault(
        "barrier under a guard on threads",
        matmul,
        "__syncthreads();",
        "if (i_inner < 5) __syncthreads();",
        ("divergent barrier",),
    ),
    Fault(
        "barrier under a guard on sizes and blocks of the domain's edge",
        matmul,
        "__syncthreads();",
        "if (16 * j_outer + j_inner < m) __syncthreads();",
        ("divergent barrier",),
    ),
    Fault(
        "barrier under a guard that only some sizes pass",
        two_warps,
        "__syncthreads();",
        "if (n >= 4) __syncthreads();",
        ("barrier",),
    ),
    Fault(
        "barrier that every other iteration has",
        two_warps,
        "__syncthreads();",
        "if (t % 2 == 0) __syncthreads();",
        ("barrier",),
    ),
    Fault(
        "half a warp waits for itself",
        one_warp,
        "__syncwarp();",
        "if (i < 16) __syncwarp();",
        ("divergent barrier",),
    ),
    # }}}
    # {{{ instances
    Fault("guard one too wide", matmul, "j_inner < m &&", "j_inner <= m &&", ("instances",)),
    Fault("guard one too narrow", matmul, "j_inner < m &&", "j_inner + 1 < m &&", ("instances",)),
    Fault("guard of a fetch one too wide", matmul, "k_outer < l)", "k_outer <= l)", ("instances",)),
    Fault("guard gone", in_place, "if (128 * i_outer + i_inner < n)", "if (true)", ("instances",)),
    Fault(
        "loop from 1",
        copy_1000 := (lambda: copy("1 <= n, m <= 1000")),
        "j = 0;",
        "j = 1;",
        ("instances",),
    ),
    Fault("loop one too long", copy_1000, "j < m;", "j <= m;", ("instances",)),
    Fault("every other iteration", copy_1000, "++j)", "j += 2)", ("instances",)),
    Fault("steps rounded down", matmul, "(l + 15) / 16", "l / 16", ("instances",)),
    Fault("last step left out", registers, "(l - 1) / 16", "l / 16", ("instances",)),
    Fault("one thread too far right", in_place, "threadIdx.x;", "threadIdx.x + 1;", ("instances",)),
    Fault("threads of another axis", matmul, "= threadIdx.x;", "= threadIdx.y;", ("instances",)),
    Fault("blocks of another axis", matmul, "= blockIdx.x;", "= blockIdx.y;", ("instances",)),
    Fault(
        "done by all threads instead of one",
        row_sums,
        "blockIdx.x == 0 && threadIdx.x == 0",
        "blockIdx.x == 0",
        ("instances",),
    ),
    Fault("done by no thread", row_sums, "threadIdx.x == 0", "threadIdx.x == 64", ("instances",)),
    Fault(
        "sum begun on some threads only",
        row_sums,
        "acc = 0.0f;",
        "if (i_inner < 63) acc = 0.0f;",
        ("instances",),
    ),
    Fault(
        "sum begun anew in each step",
        matmul,
        "        __syncthreads();",
        "        acc = 0.0f;  // insn_init\n        __syncthreads();",
        ("instances", "order"),
    ),
    Fault(
        "one instance of a register tile too many",
        registers,
        "if (k_inner_last + 16 * k_outer_last < l)",
        "if (k_inner_last < l)",
        ("instances",),
    ),
    Fault(
        "loop over data from one later", asserted, "j = first;", "j = first + 1;", ("instances",)
    ),
    Fault("loop over data one too long", asserted, "j < last;", "j <= last;", ("instances",)),
    # }}}
    # {{{ order
    Fault(
        "use before the last update",
        matmul,
        "k_outer < (l + 15) / 16; ++k_outer) {",
        "k_outer < (l + 15) / 16; ++k_outer) {\n    if (16 * j_outer + j_inner < m && "
        "16 * i_outer + i_inner < n)\n        c[(long long)m * (16 * i_outer + i_inner) + "
        "16 * j_outer + j_inner] = acc;  // insn",
        ("instances", "order"),
    ),
    # }}}
    # {{{ cells
    Fault(
        "index one too far",
        matmul,
        "a_s[i_inner][k_inner]",
        "a_s[i_inner][k_inner + 1]",
        ("access",),
    ),
    Fault(
        "fetch from the next column",
        matmul,
        "16 * k_outer + a_dim_1]",
        "16 * k_outer + a_dim_1 + 1]",
        ("access",),
    ),
    Fault("the other tile", matmul, "* b_s[k_inner]", "* a_s[k_inner]", ("access",)),
    Fault("transposed cell", transpose, "a_s[i_inner][", "a_s[i_inner + 1][", ("access",)),
    Fault(
        "rows of another size",
        matmul,
        "(long long)m * (16 * i_outer",
        "(long long)n * (16 * i_outer",
        ("access",),
    ),
    Fault(
        "rows one element too long",
        registers,
        "64 * j_group + 4 * j_thread",
        "63 * j_group + 4 * j_thread",
        ("access",),
    ),
    Fault(
        "neighbour twice",
        stencil,
        "u_s[i_inner + 4][j_inner + 4][k_inner + 5]",
        "u_s[i_inner + 4][j_inner + 4][k_inner + 3]",
        ("access",),
    ),
    Fault("update that overwrites", matmul, "acc += ", "acc = ", ("access",)),
    # }}}
    # {{{ bounds
    Fault(
        "shared rows one too short", matmul, "a_s[16][16];", "a_s[16][15];", ("bounds", "access")
    ),
    Fault("shared tile one row too few", matmul, "a_s[16][16];", "a_s[15][16];", ("bounds",)),
    Fault(
        "registers one too few",
        registers,
        "acc[2][4][2][4];",
        "acc[2][4][2][3];",
        ("bounds", "access"),
    ),
    Fault(
        "stencil's tile without its halo",
        stencil,
        "u_s[12][16][40];",
        "u_s[11][16][40];",
        ("bounds",),
    ),
    Fault(
        "dynamic tile one row too few",
        dynamic,
        "shared_memory + 0",
        "shared_memory + 4",
        ("bounds",),
    ),
    Fault("padding lost", staged_gradient, "D_s[3][20][21];", "D_s[3][20][20];", ("access",)),
    # }}}
    # {{{ widths
    Fault(
        "32 bits for 65536 x 65536 elements",
        wide_copy,
        "(long long)m * i + j",
        "m * i + j",
        ("width",),
    ),
    Fault(
        "32 bits for a guard", registers, "128LL * k_outer_last", "128 * k_outer_last", ("width",)
    ),
    Fault("rows that 32 bits cannot hold", matmul, "a[(long long)l * (", "a[l * (", ("width",)),
    # }}}
    # {{{ blocks
    Fault(
        "all blocks write the first block's cells",
        in_place,
        "i_outer = blockIdx.x;",
        "i_outer = 0;",
        ("instances", "cross-block"),
    ),
    # }}}
)


@functools.cache
def proven(kernel: Kernel) -> bool:
    return prove(kernel).ok


def harmless(fault: Fault) -> bool:
    return not fault.kinds


@pytest.mark.parametrize(
    "fault", [f for f in FAULTS if not harmless(f)], ids=lambda fault: fault.name
)
def test_fault(fault: Fault) -> None:
    assert proven(fault.kernel())
    proof = prove_source(fault.kernel(), fault.planted())
    assert proof.findings, f"{fault.name} slipped through: {proof}"
    assert proof.findings[0].kind in fault.kinds, str(proof)


@pytest.mark.parametrize("fault", [f for f in FAULTS if harmless(f)], ids=lambda fault: fault.name)
def test_more_than_is_needed_is_no_fault(fault: Fault) -> None:
    proof = prove_source(fault.kernel(), fault.planted())
    assert proof.ok, str(proof)


def test_there_are_many() -> None:
    assert sum(not harmless(f) for f in FAULTS) >= 45
