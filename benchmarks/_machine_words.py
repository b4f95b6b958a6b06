"""The words of machine code that integers are made of: what each does to registers."""

from __future__ import annotations

import dataclasses
import operator
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from _machine import Launch

Array = np.ndarray[Any, np.dtype[Any]]
WARP = 32
WORD = 0xFFFFFFFF


@dataclasses.dataclass(frozen=True)
class Instruction:
    """One line of machine code; ``target`` is the position of the one that it names."""

    guard: str
    op: str
    parts: tuple[str, ...]
    args: tuple[str, ...]
    target: int | None
    text: str


def read(sass: str) -> list[Instruction]:
    """The instructions of disassembled code."""
    line = re.compile(r"/\*[0-9a-f]+\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][A-Z0-9_.]*)\s*(.*?)\s*;")
    found: list[tuple[str, str, str, str]] = []
    places: dict[str, int] = {}
    for text in sass.splitlines():
        if label := re.fullmatch(r"\s*([\w.$]+):\s*", text):
            places[label[1]] = len(found)
        elif made := line.search(text):
            found.append((made[1] or "", made[2], made[3], made[0].partition("*/")[2].strip()))
    code = []
    for guard, name, rest, text in found:
        op, *parts = name.split(".")
        target = re.search(r"`\(([\w.$]+)\)", rest)
        args = tuple(a.strip() for a in rest.split(",")) if rest else ()
        place = places.get(target[1]) if target else None
        code.append(Instruction(guard, op, tuple(parts), args, place, text))
    return code


def width(instruction: Instruction) -> int:
    """Bytes that each thread loads or stores."""
    sizes = {"128": 16, "64": 8, "F64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
    return next((sizes[p] for p in instruction.parts if p in sizes), 4)


CONSTANT = re.compile(r"c\[(0x[0-9a-f]+)\]\[(?:RZ|URZ)?\+?(0x[0-9a-f]+)?\]")
"""A word of constant memory: the bank, and where it is there."""


def next_of(arg: str) -> str:
    """The register, or the word of constant memory, after one."""
    if arg in {"RZ", "URZ"}:
        return arg
    if constant := CONSTANT.fullmatch(arg):
        return f"c[{constant[1]}][{int(constant[2] or '0', 16) + 4:#x}]"
    if register := re.fullmatch(r"(-|~)?(U?R)(\d+)(\.reuse)?", arg):
        return f"{register[1] or ''}{register[2]}{int(register[3]) + 1}"
    return "0x0" if not arg.startswith("-") else "-0x1"


def _signed(found: Array) -> Array:
    return ((found & WORD) ^ (1 << 31)) - (1 << 31)


def _predicates(args: Sequence[str]) -> tuple[list[str], list[str]]:
    """The predicates that stand first, and the rest."""
    first = next((n for n, a in enumerate(args) if not re.fullmatch(r"!?U?P[\dT]", a)), len(args))
    return list(args[:first]), list(args[first:])


Action = Callable[["Launch", Instruction, Array, Array], None]


def _all(known: Sequence[Array]) -> Array:
    return np.logical_and.reduce(known)


def _iadd3(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    carries, args = _predicates(made.args[1:])
    ins, more = args[:3], args[3:]
    values, known = zip(*map(on.value, ins), strict=True)
    total, sure = sum(values), sure & _all(known)
    if "X" in made.parts:
        for arg in more:
            found, too = on.predicate(arg)
            total, sure = total + found, sure & too
    on.write(made.args[0], where, total, sure)
    for number, carry in enumerate(carries):
        on.write(carry, where, total >> 32 > number, sure)


def _add2(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    (a, known), (b, too) = map(on.value, made.args[1:3])
    on.write(made.args[0], where, a + b, sure & known & too)


def _imad(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    out, args = _predicates(made.args[1:])
    (a, known), (b, too) = map(on.value, args[:2])
    if "U32" not in made.parts or not {"WIDE", "HI"} & {*made.parts}:
        a, b = _signed(a), _signed(b)
    is_wide = "WIDE" in made.parts
    if "HI" in made.parts:
        c, third = on.value(args[2])
        c = c << 32
    else:
        c, third = (on.pair if is_wide else on.value)(args[2])
    total, sure = (a if "MOV" not in made.parts else 0 * a) * b + c, sure & known & too & third
    if "X" in made.parts:
        found, fourth = on.predicate(args[3])
        total, sure = total + found, sure & fourth
    if "HI" in made.parts:
        total = total >> 32
    (on.write_pair if is_wide else on.write)(made.args[0], where, total, sure)
    for carry in out:
        on.forget(carry, where)


def _lea(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    carries, args = _predicates(made.args[1:])
    (a, known), (b, too) = map(on.value, args[:2])
    sure = sure & known & too
    rest = args[2:]
    if "HI" in made.parts:
        a &= WORD
        if "SX32" in made.parts:
            a = _signed(a)
        else:
            high, known = on.value(rest.pop(0))
            a, sure = a | (high & WORD) << 32, sure & known
        a = (a >> 32 - int(rest[0], 0)) & WORD
    else:
        a = ((a & WORD) << int(rest[0], 0)) & WORD
    total = a + b
    if "X" in made.parts:
        found, known = on.predicate(rest[1])
        total, sure = total + found, sure & known
    on.write(made.args[0], where, total, sure)
    for carry in carries:
        on.write(carry, where, total >> 32 != 0, sure)


def _shf(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    (low, known), (by, too), (high, third) = map(on.value, made.args[1:4])
    kind = next(p for p in made.parts if re.fullmatch(r"[SU]\d\d", p))
    whole, by = low & WORD | (high & WORD) << 32, by & 63
    if made.parts[0] == "L":
        found = whole << by
    elif kind[0] == "S" or "W" in made.parts:
        found = whole >> by
    else:
        found = (whole.view(np.uint64) >> by.astype(np.uint64)).view(np.int64)
    on.write(
        made.args[0],
        where,
        found >> 32 if "HI" in made.parts else found,
        sure & known & too & third,
    )


def _lop3(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    out, args = _predicates(made.args)
    if made.op.removeprefix("U") == "PLOP3":
        pairs, table = list(map(on.predicate, out[2:])), int(args[0], 0)
        out = out[:2]
        ins = [np.where(found, 1, 0) for found, _ in pairs]
    else:
        pairs, table = list(map(on.value, args[1:4])), int(args[4], 0)
        ins = [found & WORD for found, _ in pairs]
    sure = sure & _all([known for _, known in pairs])
    one = 1 if made.op.removeprefix("U") == "PLOP3" else WORD
    total = np.zeros(on.count, np.int64)
    for row in range(8):
        if table >> row & 1:
            term = [v if row >> 2 - n & 1 else v ^ one for n, v in enumerate(ins)]
            total |= term[0] & term[1] & term[2]
    if one == 1:
        on.write(out[0], where, total, sure)
        on.write(out[1], where, 1 - total, sure)
        return
    on.write(args[0], where, total, sure)
    for predicate in out:
        on.write(predicate, where, total != 0, sure)


_COMPARE: dict[str, Callable[[Any, Any], Array]] = {
    name.upper(): getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")
}


def _isetp(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    (a, known), (b, too) = map(on.value, made.args[2:4])
    as_is = (lambda v: v & WORD) if "U32" in made.parts else _signed
    a, b, kind = as_is(a), as_is(b), made.parts[0]
    found = _COMPARE[kind](a, b)
    with_, third = on.predicate(made.args[4])
    sure = sure & known & too & third
    if "EX" in made.parts:
        lower, fourth = on.predicate(made.args[5])
        strict = _COMPARE[kind[0] + "T" if kind[0] in "LG" else "NE"](a, b)
        found = (found & lower) if kind == "EQ" else strict | (a == b) & lower
        sure = sure & fourth
    is_or = "OR" in made.parts
    for out, value in ((made.args[0], found), (made.args[1], ~found)):
        on.write(out, where, value | with_ if is_or else value & with_, sure)


def _select(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    *ins, chosen = made.args[1:]
    is_min, too = on.predicate(chosen)
    values, known = zip(*map(on.value, ins), strict=True)
    name = made.op.removeprefix("U")
    if name == "VIADDMNMX":
        values = (values[0] + values[1], values[2])
    if name == "SEL":
        found = np.where(is_min, values[0], values[1])
    else:
        a, b = (v & WORD if "U32" in made.parts else _signed(v) for v in values)
        found = np.where(is_min, np.minimum(a, b), np.maximum(a, b))
    on.write(made.args[0], where, found, sure & too & _all(known))


def _move(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    source = next(a for a in made.args[1:] if not re.fullmatch(r"U?P[\dT]", a))
    if source.startswith("SR"):
        known = np.full(on.count, source in on.special)
        found = np.broadcast_to(np.asarray(on.special.get(source, 0)), on.count)
    elif "64" in made.parts or made.op == "CS2R":
        on.write_pair(made.args[0], where, *_and(on.pair(source), sure))
        return
    else:
        found, known = on.value(source)
    on.write(made.args[0], where, found, known & sure)
    if made.op == "CS2R":
        on.write(next_of(made.args[0]), where, found >> 32, known & sure)


def _and(found: tuple[Array, Array], sure: Array) -> tuple[Array, Array]:
    return found[0], found[1] & sure


def _absolute(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    found, known = on.value(made.args[1])
    on.write(made.args[0], where, abs(_signed(found)), known & sure)


def _halves(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    """`HFMA2.MMA R1, -RZ, RZ, 0, 0` writes a constant; other arithmetic of this kind is of data."""
    if made.args[1:3] != ("-RZ", "RZ"):
        on.forget(made.args[0], where)
        return
    high, low = (int(np.float16(float(a)).view(np.uint16)) for a in made.args[3:5])
    on.write(made.args[0], where, np.full(on.count, high << 16 | low), sure)


def _pack(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    """All predicates of a thread as bits."""
    total = np.zeros(on.count, np.int64)
    mask = int(made.args[3], 0)
    for n in range(7):
        if mask >> n & 1:
            found, known = on.predicate(f"P{n}")
            total, sure = total | found << n, sure & known
    on.write(made.args[0], where, total, sure)


def _unpack(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    found, known = on.value(made.args[1])
    for n in range(7):
        if int(made.args[2], 0) >> n & 1:
            on.write(f"P{n}", where, found >> n & 1, known & sure)


def _vote(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    """Whether all threads of a warp, or any, have a predicate."""
    if made.parts[:1] not in {("ALL",), ("ANY",)}:
        on.forget_all(made, where)
        return
    found, known = on.predicate(made.args[-1])
    is_all = made.parts[0] == "ALL"
    rows = np.where(where, found, is_all).reshape(-1, WARP)
    voted = np.repeat(rows.all(axis=1) if is_all else rows.any(axis=1), WARP)
    surely = np.where(where, known & sure, True).reshape(-1, WARP).all(axis=1)
    for out in made.args[:-1]:
        if "P" in out:
            on.write(out, where, voted, np.repeat(surely, WARP))
        else:
            on.forget(out, where)


def _never(on: Launch, made: Instruction, where: Array, sure: Array) -> None:
    on.write(made.args[0], where, np.zeros(on.count, bool), sure)


ACTIONS: dict[str, Action] = {
    name: action
    for names, action in (
        ("IADD3", _iadd3),
        ("VIADD IADD", _add2),
        ("IMAD", _imad),
        ("LEA", _lea),
        ("SHF", _shf),
        ("LOP3 PLOP3", _lop3),
        ("ISETP", _isetp),
        ("SEL VIADDMNMX VIMNMX IMNMX", _select),
        ("MOV LDC S2R S2UR CS2R R2UR", _move),
        ("IABS", _absolute),
        ("HFMA2", _halves),
        ("P2R", _pack),
        ("R2P", _unpack),
        ("VOTE VOTEU", _vote),
        ("FCHK", _never),
    )
    for name in names.split()
}
