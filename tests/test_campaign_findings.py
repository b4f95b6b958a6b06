"""What the random campaign has found, each with the smallest kernel and steps that showed it.

``steps`` were accepted and computed something else, or ended in an exception
that is no error of loopkit's own, or were refused although they are legal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from campaign.compiled import compile_all, first_wrong
from campaign.data import Truth
from campaign.kernels import Drawn, Line
from campaign.steps import Call
from campaign.walk import fixed_by

import loopkit as lk

pytestmark = pytest.mark.host

LEGAL, ILLEGAL, EITHER = "legal", "illegal", "either"


@dataclass(frozen=True)
class Found:
    """A kernel, steps, and whether all of them are legal."""

    name: str
    answer: str
    domains: tuple[str, ...]
    text: str
    types: dict[str, str]
    steps: tuple[tuple[str, dict[str, Any]], ...]
    shapes: tuple[tuple[str, str], ...] = ()
    assumptions: str | None = None

    def drawn(self) -> Drawn:
        """As the campaign has it."""
        types = [(n, t) for names, t in self.types.items() for n in names.split()]
        lines = tuple(Line(line) for line in self.text.strip("\n").split("\n"))
        return Drawn(self.domains, lines, tuple(types), self.shapes, self.assumptions)

    def calls(self) -> tuple[Call, ...]:
        """The steps as the campaign has them."""
        return tuple(Call(name, arguments) for name, arguments in self.steps)


THREE_WRITERS: dict[str, Any] = {
    "domains": (
        "{ [i]: 0 <= i < m }",
        "{ [j]: 0 <= j < 8 }",
        "{ [i2]: 1 <= i2 <= n }",
        "{ [j2]: i <= j2 < i + 3 }",
        "{ [k2]: 0 <= k2 < n }",
    ),
    "text": """
for i
    for j
        <> s1[j] = d[j, i] + c[j + 1, i] + i
        x[j, i + 2] = s1[j] + i
    end
    for i2
        for j2
            f[m - 1 - i, 2*i2 + 1, j2] = z[i + 1, i2] + d[i2 + 1, i + 1]
            f[i, i2, j2 + 1], f[j2, m - 1 - i, i2] = argmax(k2, e[j2, i + 1, k2 + 1], 2*k2 + j2)
            f[i + 1, j2 + 1, i2 + 1] = d[j2, i2] - e[0, i2, j2 + 1]
        end
    end
end
""",
    "types": {"d": "int64", "c": "int32", "e f": "int16", "x z": "uint16"},
    "assumptions": "n, m >= 1",
}

BITS: dict[str, Any] = {
    "domains": (
        "{ [h]: 0 <= h < n and h & 5 != 1 and h >> 1 != 3 }",
        "{ [i2]: 0 <= i2 < n and i2 mod 3 = 1 }",
        "{ [j2]: 0 <= j2 < h }",
    ),
    "text": """
for h
    <> t2 = sum(i2, d[h + 1, i2] * a[i2] + max(i2, u[i2])) + h
    for j2
        <> t3 = if(not (j2 >= 1), a[h + 1], u[j2 - 1]) - c[h, j2]
        x[j2 + 2, 2*h + 1] = t3 + a[h]
    end
    u[h] = t2 + u[h + 1]
end
""",
    "types": {"a": "uint64", "c": "uint16", "d": "uint32", "u x": "uint8"},
    "assumptions": "n >= 1",
}

STRIDES: dict[str, Any] = {
    "domains": (
        "{ [i, j, k]: 1 <= i < n and 0 <= j < 2 and 0 <= k < m }",
        "{ [h]: 0 <= h < n and h mod 2 = 1 }",
        "{ [i2]: 0 <= i2 < m and i2 != i }",
    ),
    "text": """
for i, j, k
    for h
        x[j, i - 1] = b[2*h + 1] + g[col[h + 1]] - x[j, i - 1] + k + h
    end
    for i2
        x[j, 2*i2] = x[j, 2*i2] + c[1, j] {atomic}
    end
end
""",
    "types": {"b c g x": "int32", "col": "uint32"},
    "shapes": (("g", "n + 2"),),
    "assumptions": "n, m >= 2",
}

SPARSE: dict[str, Any] = {
    "domains": ("{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"),
    "text": """
    <> lo = ptr[i]
    <> hi = ptr[i + 1]
    v[i] = v[i] + g[r]
    """,
    "types": {"g ptr v": "int32"},
    "shapes": (("g", "n + 2"),),
    "assumptions": "n >= 1",
}

FOUND = (
    Found(
        "a launch ends between statements that keep their order",
        LEGAL,
        steps=(("add_barrier", {"insn_before": "id:insn_0", "insn_after": "id:insn_1"}),),
        **THREE_WRITERS,
    ),
    Found(
        "what a step takes away leaves all others as they were",
        LEGAL,
        steps=(("assignment_to_subst", {"lhs_name": "s1"}),),
        **THREE_WRITERS,
    ),
    Found(
        "writes of one cell in loops of their own",
        ILLEGAL,
        steps=(("duplicate_inames", {"inames": ["i2"], "within": "id:insn_2"}),),
        **THREE_WRITERS,
    ),
    Found(
        "writes of one cell, their loops exchanged",
        ILLEGAL,
        steps=(("prioritize_loops", {"loop_priority": ["j2", "i2"]}),),
        **THREE_WRITERS,
    ),
    Found(
        "a buffer for what two statements change in loops with strides",
        LEGAL,
        steps=(("buffer_array", {"var_name": "x", "buffer_inames": [], "partial": True}),),
        **STRIDES,
    ),
    Found(
        "two statements that change an array, in loops that change places",
        ILLEGAL,
        steps=(("prioritize_loops", {"loop_priority": ["k", "i"]}),),
        **STRIDES,
    ),
    Found(
        "loops with conditions on bits, exchanged",
        ILLEGAL,
        steps=(("prioritize_loops", {"loop_priority": ["j2", "h"]}),),
        **BITS,
    ),
    Found(
        "loops with conditions on bits, in the other direction",
        ILLEGAL,
        steps=(("map_domain", {"transform_map": "{ [h] -> [r]: r = n - h }"}),),
        **BITS,
    ),
    Found(
        "bounds that are loaded are read: interchange",
        ILLEGAL,
        steps=(("prioritize_loops", {"loop_priority": ["r", "i"]}),),
        **SPARSE,
    ),
    Found(
        "bounds that are loaded are read: distribution",
        ILLEGAL,
        steps=(("duplicate_inames", {"inames": ["i"], "within": "id:insn"}),),
        **SPARSE,
    ),
    Found(
        "bounds that are loaded are read: the loop alone",
        ILLEGAL,
        steps=(("duplicate_inames", {"inames": ["r", "i"], "within": "id:insn_1"}),),
        **SPARSE,
    ),
    Found(
        "copies of loaded bounds for each value of an ilp iname",
        EITHER,
        steps=(("split_iname", {"split_iname": "i", "inner_length": 3, "inner_tag": "ilp"}),),
        **SPARSE,
    ),
    Found(
        "an axis for a loaded bound",
        EITHER,
        steps=(
            ("split_iname", {"split_iname": "i", "inner_length": 2}),
            (
                "privatize_temporaries_with_inames",
                {"privatizing_inames": ["i_inner"], "only_var_names": ["hi"]},
            ),
        ),
        **SPARSE,
    ),
    Found(
        "a buffer stores what a guard kept from being written",
        EITHER,
        ("{ [j]: 0 <= j < 2 }",),
        """
if j % 2 == 0
    <> s1[j] = a[j + 1] + b[j + 2] + j
    u[j] = s1[j]
end
""",
        {"a b u": "int32"},
        (("buffer_array", {"var_name": "s1", "buffer_inames": [], "default_tag": "unr"}),),
    ),
    Found(
        "a bound that divides a negative number, inside a loop that passes its domain",
        LEGAL,
        ("{ [i]: 0 <= i < n }",),
        """
<> t1 = a[i] + d[i, i] - max(b[n - 1 - i], a[i]) + i
v[i] = t1 + t1
""",
        {"a b d v": "float64"},
        (
            ("split_iname", {"split_iname": "i", "inner_length": 2, "inner_tag": "l.0"}),
            ("map_domain", {"transform_map": "{ [i_outer] -> [ii]: ii = i_outer + -2 }"}),
            ("split_iname", {"split_iname": "ii", "inner_length": 3, "slabs": (0, 1)}),
            ("peel_iname", {"iname": "ii_outer"}),
            (
                "map_domain",
                {
                    "transform_map": "{ [ii_inner_last, ii_outer_last] -> [ii, ii_outer_last']: "
                    "ii = ii_inner_last + ii_outer_last and ii_outer_last' = ii_outer_last }"
                },
            ),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "a block axis that is empty for a fixed size",
        LEGAL,
        ("{ [i]: 2 <= i < n }", "{ [j]: 0 <= j < n }"),
        """
u[i] = c[i, i] + d[i, i + 2]
u[n - 1 - j] = b[j] + max(a[(j + 1) % 2], c[j, j])
""",
        {"a b c d u": "int32"},
        (
            ("split_iname", {"split_iname": "j", "inner_length": 5, "inner_tag": "ilp"}),
            ("map_domain", {"transform_map": "{ [i] -> [w]: w = -i }"}),
            ("split_iname", {"split_iname": "w", "inner_length": 5, "slabs": (0, 1)}),
            ("peel_iname", {"iname": "w_outer"}),
            ("fix_parameters", {"n": 1}),
            (
                "split_iname",
                {
                    "split_iname": "w_outer_last",
                    "inner_length": 4,
                    "inner_tag": "l.0",
                    "outer_tag": "g.0",
                },
            ),
            (
                "split_iname",
                {
                    "split_iname": "j_outer",
                    "inner_length": 1,
                    "inner_tag": "l.2",
                    "outer_tag": "g.2",
                },
            ),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "chunks of a loop of constant length",
        LEGAL,
        ("{ [i]: 0 <= i < 8 }",),
        "u[i] = a[i % 3] + b[i]",
        {"a b u": "float64"},
        (("chunk_iname", {"split_iname": "i", "num_chunks": 3}),),
    ),
    Found(
        "chunks of a split loop",
        LEGAL,
        ("{ [i]: 0 <= i < 3 }",),
        "y[i, i] = b[i] + i",
        {"y b": "int32"},
        (
            (
                "affine_map_inames",
                {"old_inames": ["i"], "new_inames": ["_x"], "equations": ["_x = i + 2"]},
            ),
            ("split_iname", {"split_iname": "_x", "inner_length": 4, "inner_tag": "unr"}),
            ("chunk_iname", {"split_iname": "_x_outer", "num_chunks": 3}),
        ),
    ),
    Found(
        "a buffer that begins with what the array holds",
        LEGAL,
        ("{ [i]: 0 <= i < 3 }",),
        "v[2*i + 1] = v[i] + a[i]",
        {"a v": "int32"},
        (
            (
                "buffer_array",
                {"var_name": "v", "buffer_inames": ["i"], "init_expression": "base"},
            ),
        ),
    ),
    Found(
        "thread axes beside a nest with an accumulator",
        LEGAL,
        ("{ [i]: 0 <= i < n }", "{ [j]: 1 <= j <= n }", "{ [h]: 0 <= h < 4 }"),
        """
for i
    u[i] = u[i] + max(j, w[j - 1])
end
for h
    for j
        x[j + 2, h + 2] = x[h, j] + g[j]
    end
end
""",
        {"u w x g": "float64"},
        (("prioritize_loops", {"loop_priority": ["j", "h"]}),),
        assumptions="n >= 1",
    ),
    Found(
        "a reduction where data decide",
        LEGAL,
        ("{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < m }"),
        """
for i
    if a[i] > 3
        v[i] = sum(j, g[i])
    end
end
""",
        {"a g v": "int32"},
        (("assume", {"assumptions": "n <= 64"}),),
        assumptions="n, m >= 1",
    ),
    Found(
        "a strided loop split by another length",
        LEGAL,
        ("{ [j]: 0 <= j < n and j mod 3 = 1 }",),
        "u[j] = a[j]",
        {"u a": "int32"},
        (("split_iname", {"split_iname": "j", "inner_length": 4}),),
    ),
    Found(
        "a strided loop that begins at a quotient of another",
        LEGAL,
        (
            "{ [k]: 2 <= k < p }",
            "{ [i]: 0 <= i < n and i mod 3 = 0 }",
            "{ [j]: 0 <= j < m and j mod 2 = 0 }",
        ),
        "q[col[k]] = c[i, 1] - q[col[k]] + i + j",
        {"c col q": "int32"},
        (
            ("split_iname", {"split_iname": "i", "inner_length": 16}),
            ("map_domain", {"transform_map": "{ [i_outer] -> [_x]: _x = 3*i_outer }"}),
        ),
        shapes=(("q", "n + 2"),),
        assumptions="n, m, p >= 1",
    ),
    Found(
        "a temporary of a negative extent is empty",
        LEGAL,
        ("{ [i]: 2 <= i < p }", "{ [j]: 0 <= j < 4 }"),
        """
for i
    for j
        if j + i < m
            <> s2[j] = b[j] + i
        else
            u[j] = x[i, j] + i
        end
    end
    u[0] = u[0] + u[i] + x[2*i + 0, i + 1] + i
end
""",
        {"b u x": "int32"},
        (
            ("split_iname", {"split_iname": "j", "inner_length": 1}),
            (
                "set_temporary_address_space",
                {"temp_var_names": "s2", "address_space": "global"},
            ),
        ),
        assumptions="m, p >= 1",
    ),
    Found(
        "loops that bound each other",
        ILLEGAL,
        ("{ [i]: 0 <= i < n }",),
        "v[n - 1 - i] = b[i + 2] - v[n - 1 - i]",
        {"b v": "int32"},
        (
            ("split_iname", {"split_iname": "i", "inner_length": 4}),
            (
                "map_domain",
                {
                    "transform_map": "{ [i_outer, i_inner] -> [i_outer', next]: "
                    "next = i_inner - i_outer and i_outer' = i_outer }"
                },
            ),
            ("buffer_array", {"var_name": "v", "buffer_inames": ["i_outer", "next"]}),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "a loaded bound that threads share",
        LEGAL,
        steps=(
            ("split_iname", {"split_iname": "i", "inner_length": 2}),
            (
                "set_temporary_address_space",
                {"temp_var_names": "hi", "address_space": "shared"},
            ),
        ),
        **SPARSE,
    ),
    Found(
        "sums under a condition on data, in another order",
        LEGAL,
        ("{ [i, j]: 1 <= i < m and 0 <= j < n }",),
        """
for i
    if a[i] > 3
        u[i] = sum(j, d[i, j])
    end
end
""",
        {"a d u": "int32"},
        (
            ("split_iname", {"split_iname": "i", "inner_length": 4}),
            ("prioritize_loops", {"loop_priority": ["i_inner", "i_outer", "j"]}),
        ),
        assumptions="n, m >= 1",
    ),
    Found(
        "sums under a condition that the block itself changes",
        LEGAL,
        ("{ [i]: 0 <= i < 2 }", "{ [j]: 0 <= j < n }", "{ [k]: 0 <= k < p }"),
        """
for i
    for j
        if x[j, i + 1] > 2
            u[j] = d[1, j + 1] + 2 - u[j] + i
        else
            x[i, j] = sum(k, c[j, i] * b[i])
        end
    end
end
""",
        {"b c d u x": "int32"},
        (
            (
                "privatize_temporaries_with_inames",
                {"privatizing_inames": ["i"], "only_var_names": ["acc"]},
            ),
        ),
    ),
    Found(
        "what a condition leaves from earlier iterations, in another order",
        ILLEGAL,
        ("{ [i]: 0 <= i < n }",),
        """
<> t = 0
for i
    if a[i] > 3
        t = b[i]
    end
    u[i] = t
end
""",
        {"a b u": "int32"},
        (
            ("split_iname", {"split_iname": "i", "inner_length": 2}),
            ("prioritize_loops", {"loop_priority": ["i_inner", "i_outer"]}),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "values under one condition on data that are read under another",
        ILLEGAL,
        ("{ [i]: 0 <= i < n }",),
        """
<> t = 0
for i
    if a[i] > 3
        t = b[i]
    end
    if b[i] > 3
        u[i] = t
    end
end
""",
        {"a b u": "int32"},
        (
            ("split_iname", {"split_iname": "i", "inner_length": 2}),
            ("prioritize_loops", {"loop_priority": ["i_inner", "i_outer"]}),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "a store that computes what a buffer held",
        LEGAL,
        ("{ [i]: 0 <= i < n }",),
        "u[i] = c[i, i + 1] + a[i]",
        {"a c u": "float64"},
        (
            ("split_iname", {"split_iname": "i", "inner_length": 2, "inner_tag": "l.0"}),
            ("buffer_array", {"var_name": "u", "buffer_inames": ["i_inner"]}),
            ("assignment_to_subst", {"lhs_name": "u_buf"}),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "numbers of inames that were kept as integers, computed in place in the same type",
        LEGAL,
        ("{ [i, j]: 0 <= i, j < n }",),
        """
for i
    for j
        <> t = i + 5 + i + j
        u[i, j] = t + 2
    end
end
""",
        {"u": "int32"},
        (("assignment_to_subst", {"lhs_name": "t"}),),
    ),
    Found(
        "the last iterations of a loop around launches, which have barriers of their own",
        LEGAL,
        ("{ [i]: 0 <= i < n }",),
        """
for i
    x[i, i + 1] = b[i]
    x[i, i] = x[i + 1, i] + b[i]
end
""",
        {"b x": "int32"},
        (
            ("add_barrier", {"insn_before": "id:insn", "insn_after": "id:insn_0"}),
            ("split_iname", {"split_iname": "i", "inner_length": 4, "slabs": (0, 1)}),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "a store that would compute it from what has changed since",
        ILLEGAL,
        ("{ [i]: 0 <= i < 4 }",),
        """
for i
    u[i] = a[i] + c[i]
    a[i] = 3
end
""",
        {"a c u": "float64"},
        (
            ("buffer_array", {"var_name": "u", "buffer_inames": ["i"]}),
            ("assignment_to_subst", {"lhs_name": "u_buf"}),
        ),
    ),
    Found(
        "a prefetch of cells whose subscripts use a rule",
        LEGAL,
        ("{ [i]: 0 <= i < n }", "{ [h]: 0 <= h < n }"),
        "u[0] = d[i, h] - 4 - u[0] + i",
        {"d u": "float64"},
        (
            ("extract_subst", {"subst_name": "rule", "template": "i", "parameters": []}),
            ("split_iname", {"split_iname": "h", "inner_length": 33, "inner_tag": "unr"}),
            ("add_prefetch", {"var_name": "d", "sweep_inames": ["h_inner"], "default_tag": None}),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "quotients of a strided loop, and a prefetch",
        EITHER,
        ("{ [i]: 0 <= i < m and i mod 2 = 1 }", "{ [k]: 0 <= k < m }"),
        "x[k, i] = a[k + 1] + a[k]",
        {"a x": "int32"},
        (
            (
                "map_domain",
                {"transform_map": "{ [i] -> [w0, w1]: w0 = i // 3 and w1 = i % 3 }"},
            ),
            (
                "add_prefetch",
                {
                    "var_name": "a",
                    "sweep_inames": ["w0"],
                    "default_tag": "unr",
                    "temporary_address_space": "shared",
                },
            ),
        ),
        assumptions="m >= 1",
    ),
    Found(
        "the smallest case of a refusal, in a strided domain",
        EITHER,
        ("{ [k]: 0 <= k < n }", "{ [i]: 0 <= i < n and i mod 2 = 0 }", "{ [j]: 0 <= j <= i }"),
        "y[k, j + 2] = g[col[k + 1]] - y[j // 2, i] + i",
        {"col g y": "int32"},
        (("tag_inames", {"iname_to_tag": {"j": "l.0"}}),),
        shapes=(("g", "n + 2"),),
        assumptions="n >= 1",
    ),
    Found(
        "barriers of a warp compile for the CPU",
        EITHER,
        ("{ [j, k]: 0 <= j < 5 and 0 <= k < n }",),
        "x[k, j] = x[j, k] + k",
        {"x": "int32"},
        (("split_iname", {"split_iname": "k", "inner_length": 8, "inner_tag": "l.0"}),),
        assumptions="n >= 1",
    ),
    Found(
        "chunks after a size was fixed",
        LEGAL,
        ("{ [i]: 0 <= i < 3 }", "{ [j]: 0 <= j < n }", "{ [i2]: j < i2 < n }"),
        "f[j, i, i2] = c[i2 + j, 2*i + 1] + (e[i + 1, j, i2] - e[i2, 2*j + 0, i + 2])",
        {"c e f": "float64"},
        (
            ("fix_parameters", {"n": 1}),
            ("chunk_iname", {"split_iname": "j", "num_chunks": 3, "outer_tag": "l.1"}),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "what block 0 stores is loaded there alone: a loop beside blocks",
        LEGAL,
        ("{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < n }", "{ [h]: 0 <= h < 3 }"),
        """
<> hi = ptr[i + 1]
x[k, 1] = x[k, h] + h
""",
        {"ptr x": "int32"},
        (
            (
                "split_iname",
                {"split_iname": "i", "inner_length": 32, "outer_tag": "g.0", "inner_tag": "l.0"},
            ),
            ("buffer_array", {"var_name": "x", "buffer_inames": ["h"], "default_tag": "unr"}),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "what block 0 stores is loaded there alone: two axes of blocks",
        LEGAL,
        ("{ [i]: 0 <= i < n }", "{ [j]: 0 <= j < n and j < p }", "{ [k]: 0 <= k < p }"),
        """
u[i] = u[i] + u[i] - u[i]
x[k + 1, j + 1] = min(a[j], d[j + 2, 0])
""",
        {"a d u x": "int32"},
        (
            (
                "split_iname",
                {"split_iname": "k", "inner_length": 16, "inner_tag": "l.1", "outer_tag": "g.1"},
            ),
            ("split_iname", {"split_iname": "i", "inner_length": 2}),
            (
                "buffer_array",
                {
                    "var_name": "x",
                    "buffer_inames": ["k_inner"],
                    "default_tag": "unr",
                    "init_expression": "base",
                },
            ),
            (
                "split_iname",
                {
                    "split_iname": "i_outer",
                    "inner_length": 4,
                    "outer_tag": "g.0",
                    "inner_tag": "l.0",
                },
            ),
        ),
        assumptions="n, p >= 1",
    ),
    Found(
        "what block 0 stores is loaded there alone: a buffer, then blocks",
        LEGAL,
        ("{ [i]: 0 <= i < 2 }", "{ [j]: 0 <= j < n }", "{ [k]: 0 <= k < n }"),
        """
<> t1 = a[i] + c[i % 3, 2*i + 1] + i
w[i] = t1 + 2
<> t3 = c[j, 0] + d[2*k + 0, n - 1 - j] + j
""",
        {"a c d w": "int32"},
        (
            (
                "buffer_array",
                {
                    "var_name": "w",
                    "buffer_inames": ["i"],
                    "default_tag": None,
                    "temporary_scope": "private",
                    "init_expression": "base",
                },
            ),
            (
                "split_iname",
                {"split_iname": "j", "inner_length": 3, "outer_tag": "g.0", "inner_tag": "l.0"},
            ),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "a buffer in global memory that is filled by one block and emptied by others",
        ILLEGAL,
        ("{ [i]: 0 <= i < m }", "{ [j]: 0 <= j < 5 }"),
        "<> s1[j] = d[j, i + 1] + a[j + 1] + i",
        {"a d": "int32"},
        (
            ("split_iname", {"split_iname": "i", "inner_length": 33}),
            ("buffer_array", {"var_name": "s1", "buffer_inames": ["i_inner", "j"]}),
            ("tag_inames", {"iname_to_tag": {"s1_store_dim_0": "g.0"}, "force": True}),
            (
                "set_temporary_address_space",
                {"temp_var_names": "s1_buf", "address_space": "global"},
            ),
        ),
        assumptions="m >= 1",
    ),
    Found(
        "loads that nobody looks at, in blocks beside the one that stores",
        ILLEGAL,
        ("{ [i]: 0 <= i < 2 }",),
        "u[i] = d[i + 2, i + 2] + i - b[i]",
        {"b d u": "int32"},
        (
            (
                "buffer_array",
                {"var_name": "u", "buffer_inames": ["i"], "init_expression": "base"},
            ),
            ("tag_inames", {"iname_to_tag": {"u_init_dim_0": "g.0", "u_store_dim_0": "ilp"}}),
        ),
    ),
    Found(
        "the corners of a bounding box, which other blocks write",
        ILLEGAL,
        ("{ [i]: 0 <= i < n and i mod 3 = 1 }", "{ [j]: 0 <= j < n }"),
        """
<> t1 = a[n - 1 - j] + c[i, j] + j
x[i, j] = t1 + x[i + 1, 2*j + 0]
""",
        {"a c x": "int32"},
        (
            (
                "split_iname",
                {"split_iname": "i", "inner_length": 8, "inner_tag": "l.0", "outer_tag": "g.0"},
            ),
            (
                "split_iname",
                {"split_iname": "j", "inner_length": 4, "inner_tag": "l.2", "outer_tag": "g.2"},
            ),
            (
                "add_prefetch",
                {
                    "var_name": "x",
                    "sweep_inames": ["j_inner", "i_inner"],
                    "default_tag": "unr",
                    "fetch_bounding_box": True,
                },
            ),
        ),
        assumptions="n >= 1",
    ),
    Found(
        "a read beyond what is written, for some sizes only, by a statement that knows no size",
        ILLEGAL,
        (
            "{ [i, j, k]: 0 <= i < n and 0 <= j < n and 0 <= k < 8 }",
            "{ [h]: k <= h < k + 3 }",
        ),
        """
v[i] = y[(i + 1) % 2, i + 1] - d[i, i + 2]
u[h + 1] = u[h] + v[k] + k
""",
        {"d u v y": "float64"},
        (("assignment_to_subst", {"lhs_name": "v"}),),
    ),
    Found(
        "a buffer that each thread stores a part of, and one thread reads",
        ILLEGAL,
        ("{ [i]: 0 <= i < 4 }",),
        """
u[i] = u[i] + b[i]
""",
        {"b u": "float64"},
        (
            ("buffer_array", {"var_name": "u", "buffer_inames": ["i"], "default_tag": None}),
            (
                "buffer_array",
                {
                    "var_name": "u",
                    "buffer_inames": ["u_init_dim_0", "u_store_dim_0"],
                    "init_expression": "base",
                    "temporary_scope": "private",
                },
            ),
            ("tag_inames", {"iname_to_tag": {"u_store_dim_0": "l.0"}}),
        ),
    ),
    Found(
        "a buffer of one block in global memory",
        EITHER,
        ("{ [i, j, k]: 0 <= i < m and 0 <= j < 2 and 0 <= k < m }",),
        """
v[i] = a[i] + d[i, i]
<> t1 = min(c[k, j], d[k, j]) + min(a[j + 1], d[j + 2, k]) + k
u[k] = t1
""",
        {"a c d u v": "int32"},
        (
            (
                "split_iname",
                {"split_iname": "i", "inner_length": 5, "inner_tag": "l.2", "outer_tag": "g.2"},
            ),
            ("buffer_array", {"var_name": "t1", "buffer_inames": ["j"], "default_tag": None}),
            (
                "set_temporary_address_space",
                {"temp_var_names": "t1_buf", "address_space": "global"},
            ),
        ),
        assumptions="m >= 1",
    ),
)


@pytest.mark.parametrize("found", FOUND, ids=lambda f: f.name)
def test_found(found):
    plain = kernel = found.drawn().make()
    try:
        for call in found.calls():
            kernel = call.apply(kernel)
        # What is illegal is refused by a step, not by what comes after.
        assert found.answer != ILLEGAL
        program = kernel.program()
    except lk.LoopkitError as error:
        assert found.answer != LEGAL, str(error)
        return
    (binary,) = compile_all([program])
    cases = Truth(plain, 7).cases(kernel, 6, fixed_by(found.calls()))
    _, wrong = first_wrong(binary, cases, 1)
    assert wrong is None, f"{wrong}\n{program.source}"


PROVEN = (
    Found(
        "what only the first block looks at, behind its own guard",
        LEGAL,
        (
            "{ [i]: 0 <= i < 8 }",
            "{ [j]: 0 <= j < m }",
            "{ [k]: 0 <= k < m }",
            "{ [h]: k < h < n }",
        ),
        """
if u[i] > 2
    <> s1[i] = (a[i] - b[i + 2])
else
    u[i + 1] = b[i] - b[i + 2]
end
<> t2 = sum(h, b[h] * e[k, j, h + k]) + j + k
""",
        {"a b e u": "int32"},
        (("tag_inames", {"iname_to_tag": {"k": "g.1"}}),),
        assumptions="n, m >= 2",
    ),
    Found(
        "a copy that only the first block looks at, behind its own guard",
        LEGAL,
        ("{ [i]: 0 <= i < 4 }", "{ [i2]: 0 <= i2 < 4 }"),
        """
if a[i] > 3
    <> s1[i] = c[i, i]
end
u[i2 + 1] = c[i2 + 2, 2*i2 + 1] - i2
""",
        {"a c u": "int32"},
        (
            ("add_prefetch", {"var_name": "a", "sweep_inames": ["i"], "default_tag": "unr"}),
            (
                "split_iname",
                {
                    "split_iname": "i2",
                    "inner_length": 2,
                    "outer_tag": "g.0",
                    "inner_tag": "l.0",
                    "slabs": (0, 1),
                },
            ),
        ),
    ),
    Found(
        "a copy of what nothing has written, moved to global memory",
        LEGAL,
        ("{ [i, j]: -2 <= i < n and 0 <= j < 5 }",),
        """
<> s1[j] = d[i + 2, j] + i
y[i + 2, j % 3] = s1[j] + s1[j]
""",
        {"d y": "int32"},
        (
            (
                "buffer_array",
                {
                    "var_name": "s1",
                    "buffer_inames": ["j"],
                    "default_tag": None,
                    "fetch_bounding_box": True,
                    "init_expression": "base",
                },
            ),
            (
                "set_temporary_address_space",
                {"temp_var_names": "s1_buf", "address_space": "global"},
            ),
        ),
    ),
    Found(
        "threads that compute what only the first thread stores, from what they did not write",
        LEGAL,
        (
            "{ [i]: 0 <= i < n and i < m }",
            "{ [j]: 0 <= j < 3 }",
            "{ [k]: 0 <= k < m and k mod 2 = 0 }",
            "{ [h]: 0 <= h < m }",
        ),
        """
u[i + 1] = min(j, d[i + 2, j])
for k
    x[k + 1, i + 1] = min(h, g[col[k]])
end
""",
        {"col d g u x": "int32"},
        (
            ("split_iname", {"split_iname": "k", "inner_length": 16, "inner_tag": "ilp"}),
            ("extract_subst", {"subst_name": "rule", "template": "2147483647", "parameters": []}),
            (
                "split_iname",
                {
                    "split_iname": "k_outer",
                    "inner_length": 4,
                    "outer_tag": "g.1",
                    "inner_tag": "l.1",
                },
            ),
            ("precompute", {"subst_use": "rule", "sweep_inames": []}),
        ),
        shapes=(("g", "n + 2"),),
        assumptions="n, m >= 1",
    ),
)


@pytest.mark.parametrize("found", PROVEN, ids=lambda f: f.name)
def test_proven(found):
    """Right sources in which the proof found fault."""
    kernel = found.drawn().make()
    for call in found.calls():
        kernel = call.apply(kernel)
    proof = kernel.prove()
    assert proof.ok, str(proof)


def test_sums_of_narrow_terms_are_wide():
    """``m*k`` and ``i`` fit 32 bits each for every size, their sum does not."""
    kernel = lk.make_kernel(
        "{ [i, k]: 0 <= i < m and 0 <= k < 2 }",
        "f[k, i] = e[k, i]",
        dtypes={"e, f": "int32"},
        assumptions="m >= 2",
    )
    assert "[m * k" not in kernel.cuda()


@pytest.mark.parametrize("space", ["private", "shared", "global"])
def test_negative_extents_are_empty(space):
    """Where a size is fixed so that nothing runs, too."""
    kernel = lk.make_kernel(
        "{ [i, j]: 2 <= i < p and 0 <= j < 4 and i + j < m }",
        "<> s[j] = b[j] + i\nv[j] = s[j]",
        dtypes={"b, v": "int32"},
        assumptions="m, p >= 1",
    )
    kernel = kernel.fix_parameters(m=1).set_temporary_address_space("s", space)
    assert kernel.prove().ok
    nothing = np.zeros(0, np.int32)
    for executor in ("host", "reference"):
        result = kernel.executor(executor)(b=nothing, v=nothing, p=3)
        assert result.shape == (0,)


def test_an_example_is_found_where_isl_misjudges_the_smallest() -> None:
    kernel = lk.make_kernel(
        "{ [j]: -2 <= j < n }",
        """
        if j % 2 == 0
            q[col[j + 2]] = x[j + 3, j + 2] - q[col[j + 2]]
        end
        """,
        [lk.GlobalArg("q", "float64", shape="n + 2"), ...],
        dtypes={"col": "int32", "q, x": "float64"},
    )
    with pytest.raises(lk.UndecidedError, match="assume_injective"):
        kernel.split_iname("j", 3, outer_tag="g.1", inner_tag="l.1")


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_bounds_from_data_are_whole_numbers(dtype: str) -> None:
    """What a domain asks for never wraps around: ``lo + 1 < hi`` of the largest byte, either."""
    kernel = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        "<> lo = ptr[i]\ny[i] = sum(r, g[r])",
        [lk.GlobalArg("g", "int32", shape="hi"), ...],
        dtypes={"ptr": dtype},
    ).split_iname("r", 1, slabs=(1, 1))
    assert kernel.prove().ok
    ptr = np.array([np.iinfo(dtype).max, 2, 4, 5], dtype)
    given = {"ptr": ptr, "g": np.arange(1, 6, dtype=np.int32)}
    for executor in ("host", "reference"):
        assert kernel.executor(executor)(**given).tolist() == [0, 3 + 4 + 5, 5, 0]


def test_a_condition_on_data_is_in_its_type() -> None:
    kernel = lk.make_kernel(
        "{ [i]: 0 <= i < n }",
        "<> t = a[i]\ny[i] = 0\nif t + 1 < 5\n  y[i] = 1\nend",
        dtypes={"a": "int8", "y": "int32"},
    )
    for executor in ("host", "reference"):
        got = kernel.executor(executor)(a=np.array([127, 3, 4], np.int8))
        assert got.tolist() == [1, 1, 0]


def test_a_tile_of_a_loop_with_loaded_bounds_is_proven() -> None:
    kernel = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        "<> lo = ptr[i]\nx[i] = x[i] + g[r]",
        [lk.GlobalArg("g", "int32", shape="hi"), ...],
        dtypes={"ptr": "int64", "x": "int32"},
    ).split_iname("r", 2, inner_tag="unr")
    assert kernel.prove().ok


def test_shapes_of_unions_with_strides_whose_cases_have_no_end() -> None:
    knl = lk.make_kernel(
        [
            "{ [i]: 0 <= i < n and (i < 3 or i mod 2 = 1) }",
            "{ [j, k]: 0 <= j < n and 0 <= k < n }",
            "{ [h]: i < h < n }",
        ],
        """
        for i
            y[i % 3] = max((j, k), s[k])
            for h
                if i + i < n
                    e[h, i] = g[col[i]] - d[h, i]
                else
                    o[col[h]] = s[h] + b[i, h] + i
                end
            end
        end
        """,
        [lk.GlobalArg("g", shape="n + 2"), lk.GlobalArg("o", shape="n"), ...],
        dtypes={"b, d, e, g, o, s, y": "float32", "col": "int16"},
        assumptions="n >= 1",
    )
    assert str(knl.arg_by_name["y"].shape) == "(Min((3, Variable('n'))),)"


def test_hulls_of_strided_parts_hold_quotients_alone() -> None:
    plain = lk.make_kernel(
        "{ [c]: 0 <= c < m and c mod 2 = 0 }",
        """
        <> t = b[c] + c
        o[col[c]] = a[c + 1] - b[c]
        """,
        [
            lk.GlobalArg("o", "int32", shape="p"),
            lk.GlobalArg("a", "int32", shape="m + 1"),
            lk.GlobalArg("b", "int32", shape="m"),
            lk.GlobalArg("col", "int16", shape="m"),
            ...,
        ],
        assumptions="p, m >= 1",
    )
    knl = (
        plain.split_iname("c", 5)
        .duplicate_inames(["c_inner"], within="id:insn_0")
        .peel_iname("c_inner_0", first=1, last=0)
    )
    assert knl.prove().ok
    for m in (1, 2, 7, 12):
        data = {
            "a": np.arange(m + 1, dtype=np.int32),
            "b": np.full(m, 3, np.int32),
            "col": np.arange(m, dtype=np.int16),
        }
        made, meant = (np.full(m, -1, np.int32) for _ in range(2))
        knl.executor("host")(o=made, m=m, **data)
        plain.executor("reference")(o=meant, m=m, **data)
        np.testing.assert_array_equal(made, meant)


def test_what_is_computed_before_a_loop_that_bounds_another() -> None:
    """A statement stands inside 'r', and outside of the 'k' that bounds it."""
    plain = lk.make_kernel(
        ["{ [k]: 0 <= k < 2 }", "{ [r]: k <= r < k + 3 }"],
        """
        rule(a, b) := 2*x[a, b]
        y[r, k] = rule(k, r)
        """,
        dtypes={"x, y": "int32"},
    )
    knl = plain.tag_inames({"k": "ilp", "r": "l.0"}).precompute("rule", ["k"], default_tag=None)
    x = np.arange(8, dtype=np.int32).reshape(2, 4)
    meant = plain.executor("reference")(x=x, y=np.zeros((4, 2), np.int32))
    for name in ("reference", "host"):
        made = knl.executor(name)(x=x, y=np.zeros((4, 2), np.int32))
        np.testing.assert_array_equal(made, meant)
    assert lk.verify(plain, knl).answer == "equal"


@pytest.mark.parametrize("term", ["", " + time"])
def test_blocks_store_the_same_though_each_has_a_copy(term: str) -> None:
    """What a block keeps for itself hangs on its other axis alone."""
    plain = lk.make_kernel(
        "{ [i, k, p, time]: 0 <= i < n and 0 <= k, p < 8 and 0 <= time < m }",
        f"""
        for time, i
            for k
                <> s[k] = c[i, 7 - k]{term}
            end
            for k
                s[k] = s[k] + s[k]
            end
            for p
                x[i, p] = s[7 - p]
            end
        end
        """,
        dtypes={"c, x": "float64"},
        assumptions="n, m >= 1",
    )
    tags = {"time": "g.0", "k": "l.0", "p": "l.0"}
    if term:
        with pytest.raises(lk.RaceError):
            plain.tag_inames(tags)
        return
    knl = plain.tag_inames(tags).tag_inames("i: g.1")
    assert knl.prove().ok
    c = np.arange(24.0).reshape(3, 8)
    for order in ("ascending", "descending", "random"):
        made = knl.executor("host", order=order)(c=c, m=5)
        np.testing.assert_array_equal(made, 2 * c)


def test_a_loop_that_one_thread_alone_leaves() -> None:
    """What begins before the loop is the same for each thread, whoever goes through it."""
    plain = lk.make_kernel(
        "{ [i, h, p]: 0 <= i < n and 0 <= h, p < 3 }",
        """
        for i
            x[i, 2 - h] = h - b[i]
            <> t = b[i]
            for p
                t = t + c[i, p]
                break if b[i] > p
            end
            u[i] = t
        end
        """,
        dtypes={"b, c, u, x": "int32"},
        assumptions="n >= 1",
    )
    knl = plain.split_iname("p", 64).tag_inames("i: g.0, p_outer: l.0, h: l.0")
    assert "if (p_outer == 0)" in knl.cuda()
    for text in (False, True):
        assert knl.prove(text=text).ok
    b, c = np.array([0, 1, 2, 3, -1], np.int32), np.arange(15, dtype=np.int32).reshape(5, 3)
    for order in ("ascending", "descending", "random"):
        made = knl.executor("host", order=order)(b=b, c=c)
        for mine, its in zip(made, plain.executor("reference")(b=b, c=c), strict=True):
            np.testing.assert_array_equal(mine, its)


def test_slabs_of_loops_around_launches() -> None:
    """Each piece is a part of what one launch ran: no question about the whole kernel."""
    plain = lk.make_kernel(
        [
            "{ [i]: 0 <= i < n }",
            "{ [k1]: 0 <= k1 < 8 }",
            "{ [h2]: 0 <= h2 < 4 }",
            "{ [p3]: 0 <= p3 < 2 }",
            "{ [q4]: 0 <= q4 < 1 }",
            "{ [d5]: 0 <= d5 < 8 }",
            "{ [v6]: 0 <= v6 <= d5 }",
            "{ [w7]: 0 <= w7 < 8 }",
            "{ [j8]: 0 <= j8 <= w7 }",
            "{ [k9]: 0 <= k9 < 8 }",
            "{ [h10]: 0 <= h10 < 8 }",
            "{ [p11]: 0 <= p11 < 8 }",
            "{ [q12]: 0 <= q12 < 8 }",
        ],
        """
        for i
            for k1
                <int32> s1[k1] = c[i, (k1 + 1) % 8] + c[i, 7 - k1]
            end
            for h2
                s1[h2] = s1[h2] + s1[h2 + 4]
            end
            for p3
                s1[p3] = s1[p3] + s1[p3 + 2]
            end
            for q4
                s1[q4] = s1[q4] + s1[q4 + 1]
            end
            u[i] = s1[0]
            for d5
                x[i, d5] = max(v6, c[i, v6])
            end
            for w7
                x[i, w7] = sum(j8, c[i, j8])
            end
            for k9
                x[i, k9] = s1[k9]
            end
        end
        for i
            for h10
                <> s2[h10] = c[i, (h10 + 1) % 8] + h10
            end
            <> t3 = sum(d5, s2[d5])
            for p11
                <int32> s4[p11] = c[i, 7 - p11] + t3
            end
            for q12
                x[i, q12] = s2[(q12 + 1) % 8] + s4[7 - q12]
            end
            u[i] = t3
        end
        """,
        [lk.GlobalArg("c", "int32", shape="n, 8"), lk.GlobalArg("x", "int32", shape="n, 8"), ...],
        dtypes={"c, u, x": "int32"},
        assumptions="n >= 1",
    )
    knl = (
        plain.add_barrier(insn_before="id:insn_5", insn_after="id:insn_6")
        .split_iname("i", 8, slabs=(1, 0))
        .tag_inames({"p11": "l.0"})
        .split_iname("k9", 16, outer_tag="g.0", inner_tag="l.0")
    )
    c = np.arange(88, dtype=np.int32).reshape(11, 8)
    for order in ("ascending", "descending", "random"):
        made = knl.executor("host", order=order)(c=c)
        for mine, its in zip(made, plain.executor("reference")(c=c), strict=True):
            np.testing.assert_array_equal(mine, its)


def test_a_piece_whose_results_the_rest_of_it_needs_stays() -> None:
    """Where others execute what else a statement of the text is, its readers count on all of it."""
    knl = lk.make_kernel(
        "{ [h]: 0 <= h < k }",
        "<> t = a[h] + h {id=t}\nb[h] = t + 4 {id=u}",
        dtypes={"a, b": "float64"},
    ).peel_iname("h", at="4")
    with pytest.raises(lk.IllegalTransformError, match="would not be executed"):
        knl.remove_instructions("t_first")


def test_rows_of_a_size_that_is_divided():
    """What no set holds is refused with a case, and no other error escapes."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < m and i mod 2 = 0 }", "{ [j]: i < j < n }"],
        """
        for i
            v[i] = a[2*i + 0]
            for j
                x[i, j] = a[2*j + 1] - i - c[(i)*(n) + j]
            end
        end
        """,
        [lk.GlobalArg("c", "uint32", shape="(2*((m + 1) // 2) + -1)*(n)"), ...],
        dtypes={"a": "uint64", "c": "uint32", "v": "uint16", "x": "uint8"},
        assumptions="n, m >= 1",
    )
    with pytest.raises(lk.IllegalTransformError, match="for example: m = 1, n = 1"):
        knl.add_inames_to_insn("j", "id:insn")


def test_a_bound_that_two_accesses_share_is_one_value() -> None:
    """What an earlier launch has loaded is the same for two threads, and asserted of once."""
    text = """
        for i
            <> lo = ptr[i]
            ... gbarrier
            <> hi = ptr[i + 1]
            for r
                u[i] = u[i] + g[r]
            end
        end
    """
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }"],
        text,
        [lk.GlobalArg("g", "int32", shape="n + 2"), ...],
        dtypes={"u": "int32", "ptr": "uint8"},
    )
    knl = knl.split_iname("r", 33, inner_tag="ilp", within="id:insn_1")
    knl = knl.assume_increasing("ptr").split_iname("r_outer", 1, inner_tag="l.0")
    assert not knl.prove().findings


def test_launches_keep_what_an_inner_loop_says_of_the_loop_around_them() -> None:
    """A launch beside the inner loop runs where that loop's domain lets it, and nowhere else."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k, l]: 0 <= k, l < 5 }", "{ [t]: 0 <= t < m }"],
        """
        for t, i
            <> s[k] = c[i, k] + k {id=in}
            x[i, l] = s[4 - l] {id=out}
        end
        """,
        [lk.GlobalArg("c, x", "int64", shape="n, 5"), ...],
        assumptions="n, m >= 1",
    )
    knl = knl.split_iname("t", 4, slabs=(1, 1))
    knl = knl.buffer_array("x", ["l", "t_inner"], temporary_scope="private")
    knl = knl.save_and_reload_temporaries("id:out", "id:store_x", within_inames="t_outer")
    assert knl.prove().ok
    c = np.arange(15).reshape(3, 5)
    for m in (1, 3, 4, 5, 8, 9):
        expected = (c + np.arange(5))[:, ::-1]
        assert np.array_equal(knl.executor("host")(c=c, m=m), expected)


def test_what_launches_hand_on_has_no_copy_for_each_value_of_an_ilp_iname() -> None:
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < 3 }",
        "for i\nbreak if i + i < p\nv[i] = u[i]\nend",
        dtypes={"u, v": "float32"},
    )
    knl = knl.add_barrier("id:stop", "id:insn").split_iname("i", 16, inner_tag="ilp")
    (flag,) = (p for p in knl.program().params if p.name == "i_goes_on")
    assert flag.shape == () and knl.prove().ok


def test_a_bound_of_a_loop_becomes_no_rule() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: 0 <= r < hi }"],
        "<> hi = ptr[i + 1]\nu[i] = sum(r, g[r])",
        [lk.GlobalArg("g", "int32", shape="n + 2"), ...],
        dtypes={"u": "int32", "ptr": "uint32"},
    )
    with pytest.raises(lk.IllegalTransformError, match="it bounds a loop"):
        knl.assignment_to_subst("hi")


def test_a_segmented_sum_under_a_condition_on_data_meets_or_is_refused() -> None:
    knl = lk.make_kernel(
        "{ [i, h, p]: 0 <= i < n and 0 <= h < 33 and 0 <= p <= h }",
        "for i\nif b[i] > 3\nfor h\n"
        "x[i, h] = reduce(segmented(max), p, c[i, p], b[p] > 2)\nend\nend\nend",
        [
            lk.GlobalArg("c", "int32", shape="n, 33"),
            lk.GlobalArg("b", "int32", shape="n + 33"),
            ...,
        ],
        dtypes={"x": "int32"},
    )
    knl = knl.realize_reduction(force_scan=True)
    try:
        fast = knl.split_iname("h", 4, inner_tag="l.0")
    except lk.IllegalTransformError as error:
        assert "combine their parts" in str(error)
    else:
        assert fast.prove().ok


def test_ilp_copies_are_kept_beside_statements_outside() -> None:
    """A piece that was set apart uses the same temporary without the iname of the copies."""
    knl = lk.make_kernel(
        "{ [i]: 0 <= i < m }", "<> t = b[i]\nu[i] = t", dtypes={"b": "int32"}, assumptions="m >= 1"
    )
    knl = knl.split_iname("i", 3, inner_tag="l.1").peel_iname("i_outer", at="i_inner + 1")
    knl = knl.split_iname("i_outer", 4, inner_tag="ilp")
    b = np.arange(9, dtype="int32")
    for executor in ("reference", "host"):
        assert np.array_equal(knl.executor(executor)(b=b), b)


@pytest.mark.parametrize("start", (-2, 0, 1, 2))
def test_ilp_copies_are_none_of_what_lies_outside(start: int) -> None:
    """Wherever an iname begins, none of its copies is the accumulator of the peeled iteration."""
    knl = lk.make_kernel(
        f"{{ [i, j]: 0 <= i < n and {start} <= j < {start + 3} }}",
        f"u[i] = sum(j, a[i, j - {start}])",
        dtypes={"a, u": "int32"},
        assumptions="n >= 1",
    )
    peeled = knl.peel_iname("j", first=1)
    with pytest.raises(lk.IllegalTransformError, match="has its own 'acc'"):
        peeled.tag_inames({"j": "ilp"})
    assert peeled.tag_inames({"j": "unr"}).prove().ok


def test_blocks_that_share_an_array_are_in_other_iterations_at_one_time() -> None:
    """What each iteration sets anew is no matter of its own where blocks are in different ones."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [k]: 0 <= k < 8 }"],
        "for i\nfor k\n<> s[k] = c[i, k]\nend\nfor k\nx[i, k] = s[k]\nend\nend",
        dtypes={"c, x": "int32"},
        assumptions="n >= 1",
    )
    knl = knl.peel_iname("k", at="i").split_iname("i", 8)
    with pytest.raises(lk.RaceError, match="both write s"):
        knl.split_iname("k_first", 2, outer_tag="g.1", inner_tag="l.1")


def test_a_launch_asks_for_the_instances_of_loops_that_its_lines_are_outside_of() -> None:
    knl = lk.make_kernel(
        ["{ [j]: 0 <= j < n }", "{ [k]: 0 <= k < n and (k - j) mod 3 = 0 }"],
        "for j, k\nb[k, j] = a[k, j]\nend",
        dtypes={"a, b": "int32"},
    )
    knl = knl.split_iname("j", 4, outer_tag="g.1", inner_tag="l.1")
    knl = knl.add_prefetch(
        "a", "j_inner", fetch_bounding_box=True, temporary_address_space="private"
    )
    knl = knl.save_and_reload_temporaries("id:fetch_a", within_inames="k")
    a = np.arange(49, dtype="int32").reshape(7, 7)
    near = (np.subtract.outer(np.arange(7), np.arange(7)) % 3 == 0) * a
    for executor in ("reference", "host"):
        b = np.zeros_like(a)
        knl.executor(executor)(a=a, b=b)
        assert np.array_equal(b, near)


def test_one_thread_alone_has_something_to_combine() -> None:
    """Of conditions that no two threads differ in, the step and lowering are of one mind."""
    knl = lk.make_kernel(
        "{ [a, i]: a = 2 and 0 <= i < 8 }",
        "if p[a] > 2\nx[a] = max(i, c[a, i])\nend",
        dtypes={"p, c, x": "int32"},
    )
    knl = knl.split_iname("a", 3, outer_tag="g.1", inner_tag="l.1").tag_inames("i: l.0")
    assert knl.prove().ok
    knl = lk.make_kernel(
        ["{ [j]: 1 <= j < n }", "{ [k]: k = 2*j + 1 }", "{ [h]: 0 <= h < n }"],
        "if u[j + 1] > 2\nx[j] = sum(k, q[k])\nend\nu[h + 1] = q[h + 1]",
        dtypes={"q, u, x": "int32"},
        assumptions="n >= 1",
    )
    assert knl.split_iname("k", 4, inner_tag="l.1").prove().ok


def test_threads_that_sum_other_terms_meet_as_well() -> None:
    """Two threads that never add the same term may still wait for each other."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < 16 }", "{ [j]: j = i }"],
        "if p[i] > 3\nb[i] = sum(j, c[j])\nend",
        dtypes={"p, b, c": "int32"},
    )
    knl = knl.tag_inames("i: l.1").split_iname("j", 2, inner_tag="l.0")
    assert knl.prove().ok
    p, c = np.arange(16, dtype="int32") % 7, np.arange(16, dtype="int32")
    b = np.full(16, -1, "int32")
    knl.executor("host")(p=p, b=b, c=c)
    assert b.tolist() == [i if i % 7 > 3 else -1 for i in range(16)]


def test_loops_that_bound_others_are_not_counted_in_another_way() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [j]: i <= j < n }"], "e[i, j] = j", dtypes={"e": "int32"}
    )
    for unchecked in (False, True):
        with pytest.raises(lk.IllegalTransformError, match="domains of i, j depend on each other"):
            knl.chunk_iname("i", 3, unchecked=unchecked)


def test_rules_use_the_cells_of_an_accumulator_that_blocks_add_to() -> None:
    knl = lk.make_kernel(
        "{ [i, h]: 0 <= i, h < n }", "u[i] = 1 + sum(h, e[h, i])", dtypes={"e, u": "int32"}
    )
    knl = knl.extract_subst("rule", "acc", []).realize_reduction(by="atomic", inames="h")
    e = np.arange(16, dtype="int32").reshape(4, 4)
    for executor in ("reference", "host"):
        assert np.array_equal(knl.executor(executor)(e=e), 1 + e.sum(0))


def test_rules_use_the_cells_of_an_accumulator_whose_loops_are_parted() -> None:
    text = "for i\n<> t = sum(j, a[i, j])\nb[i] = 2*t\nend"
    knl = lk.make_kernel("{ [i, j]: 0 <= i < 5 and 0 <= j < 4 }", text, dtypes={"a, b": "int32"})
    knl = knl.extract_subst("rule", "acc", []).duplicate_inames(
        "i", within="writes:acc and reads:a"
    )
    a = np.arange(20, dtype="int32").reshape(5, 4)
    assert knl.temporary_by_name["acc"].shape == (5,)
    assert np.array_equal(knl.executor("host")(a=a), 2 * a.sum(1))


def test_tables_are_no_data_of_a_replay() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [r]: lo <= r < hi }", "{ [k]: 0 <= k < 2 }"],
        "<> hi = ptr[i + 1]\n<> lo = ptr[i]\nv[i] = sum(r, g[r]) {id=all}\nu[k] = tab[k]",
        [
            lk.TemporaryVariable("tab", initializer=np.array([3, 1], "int8"), read_only=True),
            lk.GlobalArg("g", "int8", shape="n + 2"),
            ...,
        ],
        dtypes={"v": "int8", "ptr, u": "int32"},
    )
    with pytest.raises(lk.IllegalTransformError, match=r"leaves in v\[0\] would not be there"):
        knl.remove_instructions("all")


THREADS_APART = """
for i
    for k
        x[i, k] = sum(h, c[i, h])
    end
end
"""


@pytest.mark.parametrize("way", ["split first", "reduction first"])
def test_shuffles_that_do_not_reach_all_threads_are_refused_by_the_step(way: str) -> None:
    knl = lk.make_kernel(
        "{ [i, k, h]: 0 <= i < n and 0 <= k < 33 and 0 <= h < 64 }",
        THREADS_APART,
        dtypes={"c, x": "float32"},
    ).tag_inames("i: g.0, k: l.0")
    with pytest.raises(lk.IllegalTransformError, match="neither within a warp") as caught:
        if way == "split first":
            knl.split_iname("h", 16, inner_tag="l.1").realize_reduction(by="shuffle")
        else:
            knl.realize_reduction(by="shuffle").split_iname("h", 16, inner_tag="l.1")
    assert "gives a kernel for which no code can be generated" in str(caught.value)
    knl.split_iname("h", 16, inner_tag="l.1").realize_reduction(by="shared").cuda()


def test_lengths_that_later_steps_settle_keep_nobody_from_shuffles() -> None:
    knl = lk.make_kernel(
        "{ [i, k, h]: 0 <= i < n and 0 <= k < m and 0 <= h < 64 }",
        THREADS_APART,
        dtypes={"c, x": "float32"},
    ).tag_inames("i: g.0, k: l.1")
    knl = knl.split_iname("h", 16, inner_tag="l.0").realize_reduction(by="shuffle")
    assert "__shfl" in knl.fix_parameters(m=2).cuda()


def test_threads_that_would_wait_in_a_loop_that_ends_are_refused_by_the_step() -> None:
    knl = lk.make_kernel(
        "{ [i, h, p]: 0 <= i < n and 0 <= h, p < 4 }",
        "for i\n<> t = b[i]\nfor h\nbreak if t > 9 {id=stop}\nt = t + b[i] {id=add}\nend\n"
        "x[i, p] = t\nend",
        dtypes={"b, x": "int32"},
    ).tag_inames("p: l.0")
    assert knl.prove().ok
    with pytest.raises(lk.IllegalTransformError, match="would have to wait for each other there"):
        knl.set_temporary_address_space("t", "shared")


def test_stores_that_one_launch_does_not_see_to_be_equal_are_refused_by_the_step() -> None:
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", "{ [t]: 0 <= t < m }"],
        "for t, i\n<> s = b[i] {id=in}\nu[i] = s {id=out}\nend",
        dtypes={"b, u": "int32"},
        assumptions="n, m >= 1",
    )
    assert knl.split_iname("t", 2, inner_tag="l.1").prove().ok
    knl = knl.add_barrier("id:in", "id:out").privatize_temporaries_with_inames(
        "t", only_var_names="s"
    )
    with pytest.raises(lk.RaceError, match="no barrier fits between the two"):
        knl.split_iname("t", 2, inner_tag="l.1")


def test_a_flag_is_no_polynomial() -> None:
    """A rule for an iname stands around all values, those of flags included."""
    knl = lk.make_kernel(
        "{ [i, h]: 0 <= i, h < n }",
        "for i\nbreak if b[i] > 2\nx[i] = i\nend\ny[h] = h",
        dtypes={"b, x, y": "int32"},
    )
    knl = knl.extract_subst("rule", "i", ["i"]).split_iname("h", 16, inner_tag="l.0")
    with pytest.raises(lk.LoopkitError, match="precompute"):
        knl.precompute("rule", ["h_inner"], default_tag="unr", temporary_address_space="global")


ENDING_BEFORE_A_LAUNCH = """
for i
    <> s[k] = b[i] + c[i, k]
    <> t = b[i]
    for h
        t = t + s[h]
        break if t > 9
    end
    x[i, q] = s[q]
    ... gbarrier
    u[i] = t
end
"""


@pytest.mark.parametrize("unrolled", [False, True])
def test_a_loop_that_data_end_in_one_launch_of_several_is_refused_by_the_step(
    unrolled: bool,
) -> None:
    """Each launch sets the flag of its loop, also where copies of the loop set it in turn."""
    inner = "0 <= k < 3 and 0 <= h < 3 and 0 <= q < 3"
    types = {"b, c, u, x": "float64"}
    knl = lk.make_kernel(
        f"{{ [i, k, h, q]: 0 <= i < n and {inner} }}", ENDING_BEFORE_A_LAUNCH, dtypes=types
    )
    if unrolled:
        knl = knl.split_iname("i", 2).unroll("i_inner")
    with pytest.raises(
        lk.IllegalTransformError, match="gives a kernel for which no code can be generated"
    ):
        knl.tag_inames("k: l.0")


def test_loops_that_never_run_need_no_number_of_copies() -> None:
    """Between its first and last iteration, a loop with one iteration has none."""
    domains = [
        "{ [i]: 2 <= i < n }",
        "{ [j]: 0 <= j < n }",
        "{ [k]: 0 <= k < n - j }",
        "{ [h]: 0 <= h < n }",
    ]
    text = "x[i, j] = product(k, a[j, k] + sum(h, b[h]))"
    knl = lk.make_kernel(domains, text, dtypes={"a, b, x": "int32"}, assumptions="n >= 1")
    knl = knl.fix_parameters(n=1).split_iname("k", 16, inner_tag="l.0", slabs=(1, 1))
    knl = knl.tag_inames("h: g.0, k_outer: ilp")
    assert knl.prove().ok


@pytest.mark.parametrize("fixed", [False, True])
def test_races_of_blocks_show_before_arrays_of_a_thread_have_a_length(fixed: bool) -> None:
    """The accumulators have ``n*n*n`` elements until n is fixed: the blocks race before, too."""
    knl = lk.make_kernel(
        "{ [i, j, k, h]: 0 <= i < n and 0 <= j < n and j <= k < n and 0 <= h < n }",
        "<>_, x[k, j + i] = argmax(h, d[k], h)",
        dtypes={"d": "uint16", "x": "int64"},
    )
    knl = knl.prioritize_loops(["h", "j", "i"])
    knl = knl.fix_parameters(n=4) if fixed else knl
    with pytest.raises(lk.RaceError, match="nothing orders blocks"):
        knl.split_iname("i", 2, outer_tag="g.0")


def test_launches_of_a_loop_in_which_nothing_runs_are_proven() -> None:
    """A domain says that the loop runs once, and a condition on sizes that it does nothing then."""
    knl = lk.make_kernel(
        "{ [i, j]: i = q and 0 <= j < q }",
        "if i < q - 1\n<> t = sum(j, b[j])\nx[i] = t\nend",
        dtypes={"b, x": "int32"},
    )
    knl = knl.add_barrier("writes:t", "writes:x", within_inames=["i"])
    assert "if False" in knl.cuda() and knl.prove().ok and knl.prove(text=True).ok


def test_a_loop_that_several_flags_guard_is_left() -> None:
    """The flag of the innermost loop is set under two others, of loops that are not left."""
    knl = lk.make_kernel(
        "{ [i, j, k]: 0 <= i, k < n and 0 <= j < 4 }",
        "for i\nfor j\nbreak if b[j] > 2\nfor k\ny[i, j] = k\nbreak if b[k] > 1\nend\nend\n"
        "break if b[i] > 3\nend",
        [lk.GlobalArg("b", "int32", shape="n + 4"), ...],
        dtypes={"y": "int32"},
    )
    knl = knl.buffer_array("i_goes_on", ["j"]).add_inames_to_insn(["j"], "id:start_0")
    assert "bool k_goes_on" not in knl.cuda()
    assert knl.prove().ok and knl.prove(text=True).ok


def test_a_buffer_is_not_loaded_with_what_nothing_has_written() -> None:
    """Nothing is in the temporary before the loop, which data leave."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and i <= j < n }",
        "for i\n<> t, <> k = argmax(j, 2, j)\nbreak if i < n - 1\ny[i, i] = t + v[i + 2]\nend",
        dtypes={"v, y": "float64"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 4).buffer_array("t", ["i_inner"], fetch_bounding_box=True)
    assert "t_buf = t;" not in knl.cuda() and knl.prove().ok


@pytest.mark.parametrize("is_written", [False, True])
def test_a_buffer_stores_again_what_was_written_before(is_written: bool) -> None:
    """Where data let nothing be written in the tile, a value of t from before is kept."""
    first, last = ("t = i\n", "x[i, 0] = t\n") if is_written else ("", "")
    tile = "for j\nif b[j] > i\nt$m = b[j]\nx[i, j] = t$m\nend\nend\n"
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < 8 }",
        f"for i\n{first}{tile}{last}end",
        [lk.TemporaryVariable("t", "int32"), ...],
        dtypes={"b, x": "int32"},
    )
    knl = knl.buffer_array("t$m", ["j"], default_tag=None)
    assert ("t_m_buf = t;" in knl.cuda()) == is_written and knl.prove().ok


@pytest.mark.parametrize("condition", ["i < 0", "i > 2"])
def test_partial_results_are_combined_where_they_were_started(condition: str) -> None:
    """For sizes for which no update runs, the buffer is neither started nor combined."""
    knl = lk.make_kernel(
        "{ [i, j]: 0 <= i < n and 0 <= j < m }",
        f"s = 0\nfor i\nif {condition}\nfor j\ns = s + c[j + 1, i] {{atomic}}\nend\nend\n"
        "x[i] = i\nend\ny[0] = s",
        [lk.TemporaryVariable("s", "float64"), ...],
        dtypes={"c, x, y": "float64"},
        assumptions="n, m >= 1",
    )
    knl = knl.buffer_array("s", ["j", "i"], default_tag=None, partial=True)
    knl = knl.split_iname("j", 2, inner_tag="l.2")
    code = knl.cuda()
    assert knl.prove().ok and code.count("if (n >= 4)") == (2 if condition == "i > 2" else 0)
    assert ("s_buf_combine" in code) == (condition == "i > 2")


def test_conditions_of_stores_hold_where_their_values_are_made() -> None:
    """Copies of what a thread has made run on all threads, the rest where there is an iteration."""
    knl = lk.make_kernel(
        "{ [i, k, h, time]: 0 <= i < n and 0 <= k, h < 8 and 0 <= time < m }",
        """
        for time
            for i
                <> s1[k] = c[i, 7 - k] + c[i, k]
                for h
                    <int32> s2[h] = s1[h] + s1[h]
                end
                if i % 2 == 0
                    for h
                        s1[(h + 1) % 8] = s1[7 - h]
                    end
                end
                for h
                    x[i, h] = s1[h] + s2[h]
                end
            end
        end
        """,
        [lk.GlobalArg("c, x", "int32", shape="n, 8"), ...],
    )
    knl = knl.split_iname("time", 2, inner_tag="l.0", outer_tag="g.0")
    assert knl.split_iname("i", 3, inner_tag="ilp", slabs=(0, 1)).prove().ok


def test_blocks_that_write_a_shared_array_several_times_write_it_alike() -> None:
    """The last block does so as often as it has iterations."""
    knl = lk.make_kernel(
        "{ [i, k, h, time]: 0 <= i < n and 0 <= k, h < 8 and 0 <= time < m }",
        """
        for time
            <int64> s1[k] = c[i, 7 - k] + int64(c[i, k])
            x[i, h] = s1[h]
        end
        """,
        [lk.GlobalArg("c", "uint16", shape="n, 8"), lk.GlobalArg("x", "int32", shape="n, 8"), ...],
    )
    knl = knl.extract_subst("rule", "c[i, k]", ["i"]).split_iname("time", 8)
    knl = knl.precompute(
        "rule",
        ["time_inner"],
        default_tag=None,
        fetch_bounding_box=True,
        within="id:insn",
        temporary_address_space="private",
    )
    assert knl.tag_inames({"time_outer": "g.0", "k": "l.0"}).prove().ok


@pytest.mark.parametrize(
    ("first", "bounds"), [("", "0 <= r < m"), ("<> m = ptr[1]\n", "0 <= r < m")]
)
def test_a_copy_is_replaced_by_the_last_one_that_surely_follows(first: str, bounds: str) -> None:
    """Whether bounds are loaded or not: a copy of all iterations leaves the last one's values."""
    knl = lk.make_kernel(
        ["{ [i]: 0 <= i < n }", f"{{ [r]: {bounds} }}"],
        first + "u[i + 1] = u$near[i + 1] + g[r]",
        [lk.GlobalArg("g", shape="n + 2" if first else "m"), ...],
        dtypes={"g, u": "float32", "ptr": "int16"} if first else {"g, u": "float32"},
        assumptions="n >= 1",
    )
    knl = knl.split_iname("i", 5, outer_tag="g.0", inner_tag="l.0")
    knl = knl.add_prefetch("u$near", ["i_inner"], default_tag=None, fetch_outer_inames=["r"])
    with pytest.raises(lk.LoopkitError, match=r"read u\[1\] before"):
        knl.fission(["r"], "id:fetch_u_near")
