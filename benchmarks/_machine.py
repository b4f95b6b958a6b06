"""What machine code asks of memory: a launch's integer part, executed thread by thread.

Which threads execute a load or a store, how wide it is, and where it goes, hangs on integers
alone: indices, sizes, loops. So the disassembled code (`knl.sass()`) is executed for all threads of
a launch at once, with what floating-point arithmetic and memory give left unknown; and each load
and store of a warp is the request that it is. What our kernels are made of on sm_80 and sm_90 is
known; of other code `UntoldError` says what is missing.

Threads of a warp go apart at branches and wait for each other where the code says so (`BSSY`,
`BSYNC`). Divisions are taken never to need their slow path (`FCHK`).
"""

from __future__ import annotations

import dataclasses
import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from _machine_words import ACTIONS, CONSTANT, Instruction, next_of, read, width

Array = np.ndarray[Any, np.dtype[Any]]
WARP = 32
WORD = 0xFFFFFFFF
PARAMETERS = {"8": 0x160, "9": 0x210}
"""Where a function's parameters begin in constant memory, by the generation that code is for."""


_MEMORY = {"LDG", "STG", "LDS", "STS", "RED", "REDG", "ATOM", "ATOMG", "ATOMS"}
_NOTHING = {"BAR", "NOP", "WARPSYNC", "YIELD", "MEMBAR", "ERRBAR", "CCTL", "DEPBAR"}
_FLOW = _NOTHING | {"BRA", "EXIT", "BSSY", "BSYNC", "CALL", "RET", "BREAK", "BRX", "JMP", "BMOV"}
_ENDS = {"EXIT", "RET", "BAR", "BREAK", "BRX", "JMP"}
"""What no way around a branch on data may have."""
STEPS = 20_000_000
"""Instructions that are executed before a launch is given up."""


class UntoldError(Exception):
    """What the code does is not known: an instruction, or a branch or an address made of data."""


@dataclasses.dataclass(frozen=True)
class Requests:
    """One execution of a load or store: a row for each warp, its threads' addresses in bytes.

    ``active`` says which threads take part: none, where a predicate stops them all.
    """

    instruction: Instruction
    addresses: Array
    active: Array

    @property
    def bytes(self) -> int:
        """Of each thread."""
        return width(self.instruction)


ARRAY = 1 << 36
"""How far the addresses of arrays are apart."""


def requests_of(
    kernel: Any,
    sizes: Mapping[str, int],
    arch: str | None = None,
    data: Mapping[str, Array] | None = None,
) -> Iterator[Requests]:
    """All loads, stores and updates of a launch, of global and of shared memory, as they come.

    ``data`` are arrays that are only read, by name: what is loaded from them is known. Raises
    :class:`UntoldError` where what the code does cannot be told.
    """
    program, launch = kernel.program(), kernel.launch_config(**sizes)
    sass = kernel.sass(arch=arch)
    made_for = re.search(r"sm_(\d+)\d", sass)
    begin = PARAMETERS.get(made_for[1] if made_for else "")
    if begin is None:
        raise UntoldError(f"where code for {arch} finds its parameters is not known")
    bank, memory = bytearray(begin), {}
    struct.pack_into("6i", bank, 0, *launch.block, *launch.grid)
    for number, param in enumerate(program.params):
        size = 8 if hasattr(param, "shape") else param.dtype.itemsize
        bank += bytes(-len(bank) % size)
        if hasattr(param, "shape"):
            bank += struct.pack("<q", (number + 1) * ARRAY)
            if data and param.name in data:
                raw = np.ascontiguousarray(data[param.name]).tobytes()
                memory[number + 1] = np.frombuffer(raw + bytes(-len(raw) % 4), "<u4")
        elif param.dtype.kind in "iu":
            bank += int(sizes[param.name]).to_bytes(size, "little", signed=True)
        else:
            bank += bytes(size)
    bank += bytes(-len(bank) % 4)
    words = {(0, n): word for n, word in enumerate(np.frombuffer(bank, "<u4").tolist())}
    tables = tables_of(kernel, arch).items()
    for number, (at, table) in enumerate(tables, start=len(program.params) + 1):
        address = number * ARRAY
        words[4, at // 4], words[4, at // 4 + 1] = address & WORD, address >> 32
        memory[number] = table
    yield from Launch(read(sass), launch.grid, launch.block, words, memory).run()


def tables_of(kernel: Any, arch: str | None) -> dict[int, Array]:
    """The words of a kernel's constant tables, by where constant memory has their address."""
    contents = {a.name: a.contents.data for a in kernel.args if getattr(a, "contents", None)}
    found: dict[int, Array] = {}
    if not contents:
        return found
    from loopkit._run.nvrtc import nvdisasm

    section = nvdisasm(kernel.cubin(arch=arch)).partition("\n.nv.constant4:")[2]
    words = re.findall(r"/\*([0-9a-f]{4})\*/\s+\.dword\s+(\w+)", section.partition("//---")[0])
    for at, symbol in words:
        for name, data in contents.items():
            if symbol.endswith(f"{len(name)}{name}"):
                raw = np.ascontiguousarray(data).tobytes()
                found[int(at, 16)] = np.frombuffer(raw + bytes(-len(raw) % 4), "<u4")
    return found


class Launch:
    """All threads of a launch, at some instruction each; those that do not exist have ended."""

    def __init__(
        self,
        code: Sequence[Instruction],
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        constants: Mapping[tuple[int, int], int],
        memory: Mapping[int, Array] | None = None,
    ) -> None:
        self.code = code
        self.constants = constants
        self.memory = memory or {}
        threads, blocks = prod(block), prod(grid)
        places = -(-threads // WARP) * WARP
        place = np.tile(np.arange(places), blocks)
        number = np.repeat(np.arange(blocks), places)
        self.count = len(place)
        self.at = np.where(place < threads, 0, len(code))
        self.waits = np.zeros(self.count, bool)
        self.together: dict[str, Array] = {}
        self.values: dict[str, Array] = defaultdict(lambda: np.zeros(self.count, np.int64))
        # What a register holds that nothing has written decides nothing: it may be taken for 0.
        self.known: dict[str, Array] = defaultdict(lambda: np.ones(self.count, bool))
        self.special: dict[str, Array | int] = {
            "SR_CgaCtaId": 0,
            "SRZ": 0,
            "SR_LANEID": place % WARP,
        }
        for axis, name in enumerate("XYZ"):
            self.special[f"SR_TID.{name}"] = place // prod(block[:axis]) % block[axis]
            self.special[f"SR_CTAID.{name}"] = number // prod(grid[:axis]) % grid[axis]

    def run(self) -> Iterator[Requests]:
        """Execute all; the instruction that comes first in the code is next."""
        end = len(self.code)
        for _ in range(STEPS):
            ready = np.where(self.waits, end, self.at)
            first = int(ready.min())
            if first == end:
                if (self.at < end).any():
                    raise UntoldError("threads wait for others that never come")
                return
            found = self.step(self.code[first], ready == first)
            if found is not None:
                yield found
        raise UntoldError(f"there is no end to it within {STEPS:,} instructions")

    def step(self, made: Instruction, here: Array) -> Requests | None:
        """Execute an instruction by the threads that are at it."""
        place = int(self.at[here][0])
        holds, sure = self.predicate(made.guard or "PT")
        runs = here & holds
        if made.op == "BRA" and not sure[here].all() and self.skip(made, here, place):
            return None
        self.at[here] = place + 1
        if made.op in _FLOW | _MEMORY and not sure[here].all():
            raise UntoldError(f"data decide whether '{made.text}' is executed")
        if made.op in _MEMORY:
            where = next(n for n, arg in enumerate(made.args) if "[" in arg)
            address, certain = self.address(made.args[where])
            if not certain[runs].all():
                raise UntoldError(f"data decide the address of '{made.text}'")
            if made.op.startswith("LD"):
                self.load(made, here, runs, address)
            elif where > 0:  # an update that gives back what was there
                self.forget(made.args[0], here, -(-width(made) // 4))
            rows, active = address.reshape(-1, WARP), runs.reshape(-1, WARP)
            some = here.reshape(-1, WARP).any(axis=1)
            return Requests(made, rows[some], active[some])
        if made.op in _FLOW:
            self.flow(made, here, runs, place)
            return None
        try:
            action = ACTIONS.get(made.op) or ACTIONS.get(made.op.removeprefix("U"))
            if action is None:
                self.forget_all(made, here)
            else:
                action(self, made, here & (holds | ~sure), sure)
        except (IndexError, KeyError, ValueError) as error:
            raise UntoldError(f"'{made.text}' is not understood: {error!r}") from error
        return None

    def skip(self, made: Instruction, here: Array, place: int) -> bool:
        """Go where a branch on data goes, if what it leaves out only computes; say whether it did.

        So neither slow paths of functions nor comparisons of data matter, whose results are not
        known anyway.
        """
        if made.target is None or made.target <= place:
            return False
        between = self.code[place + 1 : made.target]
        last = max((one.target or 0 for one in between if one.op == "BRA"), default=made.target)
        either = self.code[place + 1 : max(last, made.target)]
        if any(one.op in _ENDS | _MEMORY or (one.target or last) <= place for one in either):
            return False
        for one in between:
            if one.op not in _FLOW:
                self.forget_all(one, here)
        self.at[here] = made.target
        return True

    def load(self, made: Instruction, here: Array, runs: Array, address: Array) -> None:
        """Give registers the words of arrays whose data are known; leave others unknown."""
        register = made.args[0]
        for at in range(0, width(made), 4):
            found, known = np.zeros(self.count, np.int64), np.zeros(self.count, bool)
            for number, words in self.memory.items() if width(made) >= 4 else ():
                place = (address + at - number * ARRAY) // 4
                inside = runs & (place >= 0) & (place < len(words))
                found[inside], known[inside] = words[place[inside]], True
            self.write(register, here, found, known)
            register = next_of(register)

    def flow(self, made: Instruction, here: Array, runs: Array, place: int) -> None:
        """Branches, ends, and threads that wait for each other."""
        if made.op == "EXIT":
            self.at[runs] = len(self.code)
        elif made.op == "BRA":
            if made.target is None:
                raise UntoldError(f"where '{made.text}' goes is not known")
            if len(made.args) > 1:
                holds, sure = self.predicate(made.args[0])
                if not sure[runs].all():
                    raise UntoldError(f"data decide '{made.text}'")
                runs = runs & holds
            self.at[runs] = made.target
        elif made.op == "BSSY":
            group = self.together.setdefault(made.args[0], np.zeros(self.count, bool))
            warps = np.repeat(runs.reshape(-1, WARP).any(axis=1), WARP)
            group[warps] = runs[warps]
        elif made.op == "BSYNC":
            self.waits |= runs
            self.at[runs] = place
        elif made.op not in _NOTHING:
            raise UntoldError(f"'{made.text}' is not known")
        if made.op in {"EXIT", "BSYNC"}:
            self.release()

    def release(self) -> None:
        """Let warps go on whose threads have all come to where they wait for each other."""
        for place in np.unique(self.at[self.waits]).tolist():
            came = self.waits & (self.at == place)
            group = self.together[self.code[place].args[0]]
            missing = group & ~came & (self.at < len(self.code))
            late = np.repeat(missing.reshape(-1, WARP).any(axis=1), WARP)
            self.waits[came & ~late] = False
            self.at[came & ~late] = place + 1

    def value(self, arg: str) -> tuple[Array, Array]:
        """The 32 bits of an operand, and where they are known; -x is not yet reduced."""
        arg = arg.removesuffix(".reuse")
        if arg.startswith(("-", "~")) and not re.match(r"-0x|-\d", arg):
            found, known = self.value(arg[1:])
            return ((1 << 32) - found if arg[0] == "-" else WORD - found), known
        arg = arg.strip("|").removesuffix(".reuse")
        if arg in {"RZ", "URZ"}:
            return np.zeros(self.count, np.int64), np.ones(self.count, bool)
        if re.fullmatch(r"U?R\d+", arg):
            return self.values[arg], self.known[arg]
        if constant := CONSTANT.fullmatch(arg):
            bank, at = int(constant[1], 16), int(constant[2] or "0", 16)
            word = self.constants.get((bank, at // 4))
            return np.full(self.count, word or 0), np.full(self.count, word is not None)
        number = int(arg, 0) if re.fullmatch(r"-?(0x[0-9a-f]+|\d+)", arg) else None
        return np.full(self.count, (number or 0) & WORD), np.full(self.count, number is not None)

    def pair(self, arg: str) -> tuple[Array, Array]:
        """64 bits: an operand's register with the next one, or its constant."""
        low, known = self.value(arg)
        high, too = self.value(next_of(arg))
        return low & WORD | (high & WORD) << 32, known & too

    def predicate(self, arg: str) -> tuple[Array, Array]:
        """A predicate's values, and where they are known."""
        arg = arg.removesuffix(".reuse")
        if arg.startswith("!"):
            found, known = self.predicate(arg[1:])
            return ~found, known
        if arg in {"PT", "UPT"}:
            return np.ones(self.count, bool), np.ones(self.count, bool)
        return self.values[arg].astype(bool), self.known[arg]

    def address(self, arg: str) -> tuple[Array, Array]:
        """The address of ``[R4+0x10]``, ``[R4+UR5]``, ``desc[UR4][R6.64+0x200]``."""
        total, known = np.zeros(self.count, np.int64), np.ones(self.count, bool)
        inner = re.findall(r"\[([^][]*)\]", arg)[-1]
        for part in re.findall(r"[+-]?[^+-]+", inner):
            name, *how = part.lstrip("+").split(".")
            found, sure = self.pair(name) if "64" in how else self.value(name)
            if name.startswith("-"):
                found = found - (1 << 32)
            scale = next((int(h[1:]) for h in how if re.fullmatch(r"X\d+", h)), 1)
            total, known = total + found * scale, known & sure
        return total, known

    def write(self, arg: str, where: Array, found: Array, known: Array) -> None:
        """Give a register or predicate values where threads execute an instruction."""
        if arg in {"RZ", "URZ", "PT", "UPT"}:
            return
        self.values[arg] = np.where(where, found & WORD, self.values[arg])
        self.known[arg] = np.where(where, known, self.known[arg])

    def write_pair(self, arg: str, where: Array, found: Array, known: Array) -> None:
        """Give two registers values."""
        self.write(arg, where, found, known)
        self.write(next_of(arg), where, found >> 32, known)

    def forget(self, arg: str, where: Array, several: int = 1) -> None:
        """Leave registers from this one on unknown."""
        none = np.zeros(self.count, np.int64)
        for _ in range(several):
            self.write(arg, where, none, none.astype(bool))
            arg = next_of(arg)

    def forget_all(self, made: Instruction, where: Array) -> None:
        """Leave what an instruction on data gives unknown."""
        several = 4 if "MMA" in made.op and made.op[0] == "H" else 1 + made.op.startswith("D")
        for n, arg in enumerate(made.args[:2]):
            if re.fullmatch(r"U?P[\dT]", arg) or (n == 0 and re.fullmatch(r"U?R[\dZ]+", arg)):
                self.forget(arg, where, several if "R" in arg else 1)
