"""Proof of a program of several launches: each launch, and that together they are the kernel.

CUDA executes launches of a stream one after the other. It is therefore enough to prove that each
launch executes its part, that the parts make up the kernel in the order of its loop tree, that the
loops around launches execute exactly the iterations with work, and that launches pass the same
memory to each other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import islpy as isl
import pymbolic.primitives as prim

from loopkit import _sets
from loopkit._arrays import (
    AddressSpace,
    ArrayArg,
    TemporaryVariable,
    ValueArg,
    storage_shape,
    strides_of,
)
from loopkit._errors import counted
from loopkit._expression import to_text
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel, Statement
from loopkit._launches import Launch, LaunchLoop, launch_of, launches_in, launches_of
from loopkit._linear import NotAffineError
from loopkit._make.type_inference import infer_types
from loopkit._nodes import Expression
from loopkit._places import decide_address_spaces
from loopkit._program import (
    ArrayParam,
    Check,
    Launches,
    Program,
    ProgramIf,
    ProgramLoop,
    ValueParam,
)
from loopkit._rules import expand_rules
from loopkit._same import key_of, same
from loopkit._tree import statements_in
from loopkit.codegen.c import tree as c
from loopkit.codegen.joined import joined
from loopkit.codegen.launches import Part, parts_in, parts_of
from loopkit.codegen.own_functions import lines_above
from loopkit.codegen.proof.recorder import Recorder
from loopkit.codegen.proof.subject import extents

_HEAD = re.compile(r'^(?=extern "C" )', re.MULTILINE)
"""Where the text of a launch begins."""


@dataclass(frozen=True, eq=False)
class Turn:
    """A launch to be proven: its kernel, its program, and the line at which its text begins."""

    kernel: Kernel
    program: Program
    shift: int


class SequenceCheck:
    """Compares a kernel's launches with those of a program."""

    def __init__(self, kernel: Kernel, program: Program, recorder: Recorder) -> None:
        self.kernel = decide_address_spaces(infer_types(expand_rules(kernel)))
        self.parts = {p.launch.number: p for p in parts_in(parts_of(kernel))}
        self.program = program
        self.recorder = recorder
        self.sizes = self.kernel.assumptions.set

    def turns(self, *, text: bool) -> tuple[Turn, ...]:
        """Each launch with the kernel that it must be; what is wrong between them is noted."""
        pairs = [*self.paired(launches_of(self.kernel), self.program.launches, self.called())]
        self.covered()
        self.passed()
        sources = None
        if len(pairs) == len(self.program.parts):  # else that is said already
            sources = self.sources(len(pairs), text=text)
        if sources is None:
            return ()
        turns = []
        for (part, own, known), (source, shift) in zip(pairs, sources, strict=True):
            if not _executed(own) <= part.kernel.statement_by_id.keys():
                self.wrong("order", f"'{own.name}' runs what belongs to another launch")
                continue
            self.same_part(part, known)
            self.handed(part, own)
            checks = self.checks(known, part.kernel)
            if source != own.source:
                own = replace(own, source=source, lines=())
            turns.append(Turn(part.kernel, replace(own, checks=checks), shift))
        return tuple(turns)

    def wrong(self, kind: str, what: str, array: str | None = None) -> None:
        """A finding about the call as a whole."""
        self.recorder.wrong(kind, what, 1, array=array)

    def called(self) -> isl.Set:
        """``{ sizes : a call lets them through }``; a superset."""
        return self.where(check.condition for check in self.program.checks)

    def where(self, conditions: Iterable[Expression]) -> isl.Set:
        """``{ sizes, inames around : all conditions hold }``, of those that sets can say."""
        result = _sets.universe()
        for condition in conditions:
            try:
                result = result & _sets.condition_set(condition)
            except NotAffineError:
                continue
        return result

    def paired(
        self, due: Sequence[Launch | LaunchLoop], given: Launches, known: isl.Set
    ) -> Iterator[tuple[Part, Program, isl.Set]]:
        """Launches of the kernel and the program, side by side, and what holds around them."""
        due = [node for node in due if self.ever_runs(node)]
        found = [*self.tested(given, known)]
        if len(due) != len(found):
            launches = counted(len(due), "launch", "launches")
            self.wrong("order", f"the kernel has {launches} here, but a call runs {len(found)}")
        for one, (other, here) in zip(due, found, strict=False):
            if isinstance(one, Launch) and isinstance(other, Program):
                if here is not known:
                    self.runs(one, one.loops, known, here)
                yield self.parts[one.number], other, here
            elif isinstance(one, LaunchLoop) and isinstance(other, ProgramLoop):
                if one.iname != other.iname or other.step < 1:
                    what = f"over '{other.iname}', which is '{one.iname}' in the kernel"
                    self.wrong("order", f"launches run in a loop {what}")
                inside = self.iterations(other) & here
                self.runs(one, self.loops_of(one), self.called(), inside)
                yield from self.paired(one.body, other.body, inside)
            else:
                self.wrong("order", "a launch and a loop around launches have changed places")

    def tested(
        self, given: Launches, known: isl.Set
    ) -> Iterator[tuple[Program | ProgramLoop, isl.Set]]:
        """What a call executes, in order, with the conditions, split into conjuncts."""
        for one in given:
            if not isinstance(one, ProgramIf):
                yield one, known
                continue
            if not _sets.is_condition(one.condition):
                text = to_text(one.condition)
                self.wrong("instances", f"which launches run where {text} is not known")
            yield from self.tested(one.body, known & self.where([one.condition]))

    def ever_runs(self, node: Launch | LaunchLoop) -> bool:
        """Whether a loop around launches has an iteration for some sizes; a launch need not."""
        domains = map(self.kernel.statement_domain, self.inside(node))
        return isinstance(node, Launch) or not all((d & self.sizes).is_empty() for d in domains)

    def inside(self, node: Launch | LaunchLoop) -> Iterator[Statement]:
        """The statements of launches, one for all that have the same instances."""
        ids = (s for launch in launches_in((node,)) for s in statements_in(launch.body))
        found = (self.kernel.statement_by_id[name] for name in ids)
        yield from {(s.inames, key_of(s.predicates)): s for s in found}.values()

    def loops_of(self, node: LaunchLoop) -> tuple[str, ...]:
        """A loop around launches, and those around it, outermost first."""
        inner = next(launches_in(node.body))
        return inner.loops[: inner.loops.index(node.iname) + 1]

    def reach(self, node: Launch | LaunchLoop, loops: Sequence[str]) -> isl.Set:
        """``{ inames of loops around, sizes : a statement inside may have an instance }``."""
        result = _sets.universe() - _sets.universe()
        for statement in self.inside(node):
            domain = self.kernel.statement_domain(statement) & self.sizes
            domain = domain & self.where(statement.predicates)
            result = result | _sets.project_out(domain, sorted(statement.inames - {*loops}))
        return result

    def iterations(self, loop: ProgramLoop) -> isl.Set:
        """``{ inames of loops around, sizes : the loop runs the iteration }``; a superset."""
        iname, ends = prim.Variable(loop.iname), ((">=", loop.lower), ("<", loop.upper))
        conditions = [prim.Comparison(iname, operator, bound) for operator, bound in ends]
        if loop.step != 1:
            past = prim.Sum((iname, prim.Product((-1, loop.lower))))
            conditions.append(prim.Comparison(prim.Remainder(past, loop.step), "==", 0))
        return self.where(conditions)

    def runs(
        self, node: Launch | LaunchLoop, loops: Sequence[str], known: isl.Set, inside: isl.Set
    ) -> None:
        """A launch runs, or a loop an iteration, wherever there is something to do."""
        of = f"launch {node.number + 1}" if isinstance(node, Launch) else f"'{node.iname}'"
        with self.recorder.question("instances", f"which launches {of} runs"):
            missing = (self.reach(node, loops) & known) - inside
            if not missing.is_empty():
                point = self.recorder.point(missing, sorted(_sets.involved_names(missing)))
                at = ", ".join(f"{name}={value}" for name, value in point.items())
                said = "" if isinstance(node, Launch) else "the iteration "
                self.wrong("instances", f"no launch runs in {said}{at} of {of}")

    def covered(self) -> None:
        """Each statement of the kernel is in one launch, in the order of the tree."""
        found = [s.id for part in self.parts.values() for s in part.kernel.statements]
        if found != [s.id for s in self.kernel.statements]:
            self.wrong("instances", "the launches run other statements than the kernel has")

    def same_part(self, part: Part, here: isl.Set) -> None:
        """The statements of a launch are the kernel's, with the same instances.

        They need no conditions that hold wherever the call runs the launch, and may test what
        domains say of the loops around it: conditions on sets are compared as sets.
        """
        loops = frozenset(part.launch.loops)
        for statement in part.kernel.statements:
            own = self.kernel.statement_by_id[statement.id]
            if not same(_said(own), _said(statement)) or own.inames - loops != statement.inames:
                self.wrong("value", f"a launch runs another '{own.id}' than the kernel has")
            known = part.kernel.assumptions.set & here
            names = {*own.inames, *self.kernel.sizes}
            mine = part.kernel.domain_around(statement.inames) & known
            mine = mine & self.where(statement.predicates)
            due = self.kernel.domain_around(own.inames) & known
            due = due & self.where(own.predicates)
            if not _sets.project_onto(mine, names).is_equal(_sets.project_onto(due, names)):
                self.wrong("instances", f"a launch runs '{own.id}' for other instances")

    def handed(self, part: Part, program: Program) -> None:
        """What a launch takes is there: an argument, an iname around it, memory of the call."""
        whole = {_key(p): p for p in self.program.params}
        for param in program.params:
            if isinstance(param, ValueParam) and param.name in part.launch.loops:
                continue
            given = whole.get(_key(param))
            if given is None or not _fits(param, given):
                self.wrong(
                    "call",
                    f"'{program.name}' takes '{param.name}', which the call passes as something "
                    "else, or not at all",
                    param.name,
                )
        for temporary in part.kernel.temporaries:
            launches = {launch_of(self.kernel)[s.id] for s in self.kernel.users(temporary.name)}
            is_own = temporary.address_space is not AddressSpace.GLOBAL
            # What a launch keeps to itself, the proof of that launch finds written there.
            if not is_own and (len(launches) > 1 or part.launch.loops):
                self.wrong("memory", f"launches do not share '{temporary.name}'", temporary.name)

    def passed(self) -> None:
        """What a call takes and allocates is what the kernel declares, as large as it does."""
        kernel, program = self.kernel, self.program
        if program.arguments != tuple(a.name for a in kernel.passed):
            self.wrong("call", "arguments by position are taken for others than the kernel's")
        strided = {p.array for p in program.params if isinstance(p, ValueParam) and p.array}
        params = {p.name: p for p in program.params}
        for data in (*kernel.args, *kernel.temporaries):
            given = params.get(data.name)
            if isinstance(data, TemporaryVariable):
                due = data.address_space is AddressSpace.GLOBAL
                if due != (given is not None and given.role == "scratch"):
                    self.wrong("memory", f"a call has no memory for '{data.name}'", data.name)
            if given is None or isinstance(data, ValueArg):
                continue
            if not isinstance(given, ArrayParam) or not _lies(data, given, data.name in strided):
                self.wrong("call", f"'{data.name}' is passed as another array", data.name)
                continue
            needed = data.is_input if isinstance(data, ArrayArg) else None
            written = data.name in kernel.writers
            if given.is_written != written or needed not in (None, given.is_read):
                self.wrong("call", f"a call takes '{data.name}' for what it is not", data.name)
        beyond = self.called() - self.sizes
        if not _of_types(self.kernel, beyond).is_empty():
            self.wrong("call", "a call lets sizes through that the assumptions exclude")

    def checks(self, known: isl.Set, kernel: Kernel) -> tuple[Check, ...]:
        """What holds of a launch's sizes, as the call tests it and its loops run."""
        names = {a.name for a in kernel.args}
        condition = _sets.conditions(
            _sets.project_out(known, sorted(_sets.involved_names(known) - names))
        )
        return () if condition is True else (Check(condition, to_text(condition)),)

    def sources(self, count: int, *, text: bool) -> tuple[tuple[str, int], ...] | None:
        """The text of each launch, under what stands above all, and how far down it stands."""
        program = self.program
        notes = [line for line in program.source.split("\n") if line.startswith("// not proven")]
        above, *functions = _HEAD.split(program.source)
        if not text and joined(program, notes, lines_above(self.kernel))[0] == program.source:
            found, line = [], above.count("\n")
            for part, function in zip(program.parts, functions, strict=True):
                found.append((part.source, line - _HEAD.split(part.source)[0].count("\n")))
                line += function.count("\n")
            return tuple(found)
        if len(functions) != count:
            self.wrong(
                "text", f"the text has {counted(len(functions), 'function')}, a call runs {count}"
            )
            return None
        found, line = [], 0
        for function in functions:
            found.append((above + function, line))
            line += function.count("\n")
        return tuple(found)


def _executed(program: Program) -> frozenset[str]:
    """The statements that a launch says its lines execute."""
    nodes = c.statements(program.tree.body) if program.tree is not None else ()
    found = (node.statement for node in nodes if isinstance(node, c.Assign))
    return frozenset(name for name in found if name is not None)


def _said(statement: Statement) -> object:
    return (
        statement.lhs,
        statement.rhs,
        tuple(p for p in statement.predicates if not _sets.is_condition(p)),
        statement.operation,
        statement.kind,
    )


def _key(param: ValueParam | ArrayParam) -> object:
    if isinstance(param, ValueParam) and param.role == "stride":
        return param.array, param.axis
    return param.name


def _fits(own: ValueParam | ArrayParam, given: ValueParam | ArrayParam) -> bool:
    """Whether what the call has is what a launch takes."""
    if isinstance(own, ValueParam) or isinstance(given, ValueParam):
        return type(own) is type(given) and own.dtype == given.dtype
    is_same = own.dtype == given.dtype and own.shape == given.shape
    return is_same and (given.is_written or not own.is_written)


def _lies(data: ArrayArg | TemporaryVariable, given: ArrayParam, is_strided: bool) -> bool:
    """Whether an array is passed with the type, the extents and the strides that it has."""
    if (data.dtype is not None and data.dtype != given.dtype) or storage_shape(data) != given.shape:
        return False
    return is_strided or strides_of(data) == given.strides


def _of_types(kernel: Kernel, where: isl.Set) -> isl.Set:
    """A set of sizes, as far as a call takes them as extents of arrays."""
    for name in extents(kernel):
        where = where & _sets.condition_set(prim.Comparison(prim.Variable(name), ">=", 0))
    return where
