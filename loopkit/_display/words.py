"""Which role each word of a nest or a source has, and text in the colours of its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from loopkit._arrays import ConstantTable, ValueArg
from loopkit._cached import memoised
from loopkit._display.markup import Part, inline
from loopkit._kernel import Kernel
from loopkit._places import space_of
from loopkit._tags import GroupAxis, InstructionParallel, LocalAxis, Unroll
from loopkit._target import CUDA

_OF_TAG = {
    GroupAxis: "block",
    LocalAxis: "thread",
    Unroll: "unrolled",
    InstructionParallel: "unrolled",
}

_OF_LANGUAGE = {
    **dict.fromkeys(CUDA.block_index, "block"),
    **dict.fromkeys(CUDA.thread_index, "thread"),
    **dict.fromkeys((CUDA.block_barrier, CUDA.warp_barrier), "barrier"),
    **dict.fromkeys(("__shared__", "shared_memory"), "shared"),
    **dict.fromkeys(("for", "if", "else", "while"), "loop"),
    **dict.fromkeys(("#pragma unroll", "unrolled"), "unrolled"),
}
_OF_PREFIX = {"atomic": "atomic", "__shfl": "combine", "__reduce": "combine"}
"""What begins like this is a family of CUDA's functions."""

_WORD = re.compile(r"#pragma unroll|[A-Za-z_]\w*(?:\.[xyz]\b)?", re.ASCII)


@memoised
def roles_of(kernel: Kernel) -> Mapping[str, str]:
    """The role of each name of a kernel: inames by their tags, arrays by where they live."""
    found = {
        name: _OF_TAG.get(type(kernel.iname_tags.get(name)), "loop") for name in kernel.all_inames
    }
    found |= {
        a.name: "constant" if isinstance(a, (ValueArg, ConstantTable)) else "global"
        for a in kernel.args
    }
    return found | {t.name: space_of(kernel, t).word for t in kernel.temporaries}


def coloured(text: str, roles: Mapping[str, str]) -> Iterator[Part]:
    """The text, its words in the looks of their roles."""
    done = 0
    for match in _WORD.finditer(text):
        word = match[0]
        role = roles.get(word) or _OF_LANGUAGE.get(word) or _of_family(word)
        if role is not None:
            yield text[done : match.start()]
            yield inline(role, word)
            done = match.end()
    yield text[done:]


def _of_family(word: str) -> str | None:
    return next((role for start, role in _OF_PREFIX.items() if word.startswith(start)), None)
