"""What the text declares: data of the kernel's types, in the kernel's places, and wide integers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from loopkit._arrays import AddressSpace, ArrayArg, TemporaryVariable, ValueArg
from loopkit._places import decide_address_spaces
from loopkit._promotion import dtype_name
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.types import TYPES
from loopkit.codegen.proof.names import CATEGORIES, INTEGERS
from loopkit.codegen.proof.recorder import Recorder
from loopkit.codegen.proof.report import Finding, Place
from loopkit.codegen.proof.subject import Subject
from loopkit.codegen.proof.tree import Site

Data = ArrayArg | ValueArg | TemporaryVariable

_INDEX_TYPES = ("int", "unsigned int", "unsigned", "long long", "unsigned long long")
_PLACES = {
    AddressSpace.PRIVATE: "private",
    AddressSpace.LOCAL: "shared",
    AddressSpace.GLOBAL: "global",
}


def check_declarations(subject: Subject, recorder: Recorder) -> None:
    """Compare the types and places of all names with those of the kernel."""
    kernel = decide_address_spaces(subject.kernel)
    data: Mapping[str, Data] = {d.name: d for d in (*kernel.args, *kernel.temporaries)}
    for parameter in subject.function.parameters:
        own = data.get(parameter.name)
        if own is not None:
            _type(recorder, own, parameter.ctype, parameter.line)
            place = "global" if parameter.is_pointer else "value"
            _place(recorder, own, place, parameter.line)
    counters: dict[str, str] = {}
    for node in c.statements(subject.function.body):
        if isinstance(node, c.Declaration):
            own = data.get(node.name)
            if own is not None:
                _type(recorder, own, node.ctype, node.line)
                _place(recorder, own, node.space, node.line)
        elif isinstance(node, (c.For, c.Let)):
            _counter(recorder, node, counters)
    for site in subject.sites:
        _casts(subject, recorder, site)


def _type(recorder: Recorder, own: Data, ctype: str, line: int) -> None:
    """Whether a name has the type that the kernel gives it."""
    wanted = own.dtype
    if wanted is None and isinstance(own, ValueArg):
        wanted = np.dtype(np.int32)
    if wanted is None or TYPES.get(ctype) == wanted:
        return
    what = f"'{own.name}' is declared {ctype}, but holds {dtype_name(wanted)} in the kernel"
    recorder.found(Finding("type", what, Place(line), array=own.name))


def _place(recorder: Recorder, own: Data, place: str, line: int) -> None:
    """Whether a name lies in the memory in which the kernel has it."""
    if isinstance(own, TemporaryVariable):
        wanted = _PLACES[own.address_space]
    else:
        wanted = "global" if isinstance(own, ArrayArg) else "value"
    if place != wanted:
        what = f"'{own.name}' lies in {_memory(place)}, but the kernel has it in {_memory(wanted)}"
        recorder.found(Finding("memory", what, Place(line), array=own.name))


def _memory(place: str) -> str:
    return "a value of the launch" if place == "value" else f"{place} memory"


def _counter(recorder: Recorder, node: c.For | c.Let, known: dict[str, str]) -> None:
    """Loop variables and constants are integers whose range the proof knows, of one type each."""
    if node.ctype not in _INDEX_TYPES:
        what = f"'{node.name}' is declared {node.ctype}, which is no type for indices"
        recorder.found(Finding("type", what, Place(node.line), array=node.name))
    elif known.setdefault(node.name, node.ctype) != node.ctype:
        what = f"'{node.name}' is declared {known[node.name]} in one place, {node.ctype} here"
        recorder.found(Finding("type", what, Place(node.line), array=node.name))


def _casts(subject: Subject, recorder: Recorder, site: Site) -> None:
    """Index arithmetic is of integers alone, and of none that is narrower than C's own.

    What guards cast so, and what is made of data, is compared with the kernel's own, types
    and all.
    """
    if site.is_guard:
        return
    pending = [site.expr]
    while pending:
        part = pending.pop()
        is_cast = isinstance(part, c.Cast)
        if _is_data(subject, part) and (is_cast or subject.names.type_of(part) not in INTEGERS):
            continue
        is_narrow = (
            isinstance(part, c.Cast)
            and part.ctype not in _INDEX_TYPES
            and CATEGORIES.get(part.ctype) != "other"
        )
        if is_narrow or subject.names.type_of(part) not in INTEGERS:
            ctype = part.ctype if isinstance(part, c.Cast) else "a floating-point number"
            what = f"an index is cast to {ctype}, which does not hold all of its values"
            recorder.found(Finding("type", what, Place(site.line)))
        else:
            pending += c.children(part)


def _is_data(subject: Subject, expr: c.CExpression) -> bool:
    """Whether the values of an expression are loaded, or are no integers."""
    places, types = subject.names.places, subject.names.types
    return any(
        isinstance(p, c.Element)
        or (
            isinstance(p, c.Name)
            and (places.get(p.name, "value") != "value" or types.get(p.name) not in INTEGERS)
        )
        for p in c.walk(expr)
    )
