"""Proof that declarations of the text have the kernel's types and address spaces.

Index arithmetic must be of integer types at least as wide as ``int``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopkit._arrays import AddressSpace, ArrayArg, ConstantTable, TemporaryVariable, ValueArg
from loopkit._kernel import Kernel
from loopkit._promotion import INT32, INT64, UINT32, UINT64, dtype_name
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.proof.names import Names
from loopkit.codegen.proof.recorder import Recorder
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.text_tree import Site

Data = ArrayArg | ValueArg | TemporaryVariable

_INDEX_TYPES = (INT32, UINT32, INT64, UINT64)
_PLACES = {
    AddressSpace.PRIVATE: "private",
    AddressSpace.LOCAL: "shared",
    AddressSpace.GLOBAL: "global",
}


def check_declarations(subject: Subject, recorder: Recorder) -> None:
    """Compare the types and places of all names with those of the kernel."""
    kernel = subject.kernel
    data: Mapping[str, Data] = {d.name: d for d in (*kernel.args, *kernel.temporaries)}
    names, function = subject.names, subject.function
    declared: tuple[c.Parameter | c.Declaration, ...]
    declared = (*function.parameters, *names.declarations.values())
    for one in declared:
        own = data.get(one.name)
        if own is not None:
            _type(recorder, own, one.ctype, one.line)
            _place(recorder, own, names.places[own.name], one.line)
    for table in function.tables:
        held = data.get(table.name)
        due = held.contents if isinstance(held, ConstantTable) else None
        if due is None or due.data != table.data or due.dtype != TYPES[table.ctype]:
            what = f"the table '{table.name}' holds other elements than the kernel's"
            recorder.wrong("value", what, table.line, array=table.name)
    for node in c.statements(function.body):
        if isinstance(node, (c.For, c.Let)) and TYPES[node.ctype] not in _INDEX_TYPES:
            what = f"'{node.name}' is declared {node.ctype}, which is no type for indices"
            recorder.wrong("type", what, node.line, array=node.name)
    for site in subject.sites:
        _casts(subject, recorder, site)


def check_types(source: Kernel, kernel: Kernel, recorder: Recorder) -> None:
    """Report types given by the user that differ from those inferred without them."""
    typed = {d.name: d.dtype for d in (*kernel.args, *kernel.temporaries)}
    for one in (*source.args, *source.temporaries):
        if one.dtype is not None and typed.get(one.name, one.dtype) != one.dtype:
            what = f"'{one.name}' holds {dtype_name(one.dtype)}, and is taken for another type"
            recorder.wrong("type", what, 1, array=one.name)


def _type(recorder: Recorder, own: Data, ctype: str, line: int) -> None:
    """Whether a name has the type that the kernel gives it."""
    wanted = own.dtype
    if wanted is None and isinstance(own, ValueArg):
        wanted = np.dtype(np.int32)
    if wanted is None or TYPES[ctype] == wanted:
        return
    what = f"'{own.name}' is declared {ctype}, but holds {dtype_name(wanted)} in the kernel"
    recorder.wrong("type", what, line, array=own.name)


def _place(recorder: Recorder, own: Data, place: str, line: int) -> None:
    """Whether a name is in the address space in which the kernel has it."""
    if isinstance(own, TemporaryVariable):
        wanted = _PLACES[own.address_space]
    else:
        wanted = "global" if isinstance(own, ArrayArg) else "value"
    if place != wanted:
        what = f"'{own.name}' lies in {_memory(place)}, but the kernel has it in {_memory(wanted)}"
        recorder.wrong("memory", what, line, array=own.name)


def _memory(place: str) -> str:
    return "a value of the launch" if place == "value" else f"{place} memory"


def _casts(subject: Subject, recorder: Recorder, site: Site) -> None:
    """Index arithmetic is of integers alone, and of none that is narrower than C's own.

    What guards cast so, and what is made of data, is compared with the kernel's own, types
    and all.
    """
    if site.is_guard:
        return
    names = subject.names
    pending = [site.expr]
    while pending:
        part = pending.pop()
        is_cast = isinstance(part, c.Cast)
        if (is_cast or not names.is_integer(part)) and _is_data(names, part):
            continue
        if not names.is_integer(part) or (is_cast and names.type_of(part) not in _INDEX_TYPES):
            ctype = part.ctype if isinstance(part, c.Cast) else "a floating-point number"
            what = f"an index is cast to {ctype}, which does not hold all of its values"
            recorder.wrong("type", what, site.line)
        else:
            pending += c.children(part)


def _is_data(names: Names, expr: c.CExpression) -> bool:
    """Whether the values of an expression are loaded, or made of what are no integers."""
    return names.reads_memory(expr) or not all(map(names.holds_integer, names.used(expr)))
