"""What a question about a schedule depends on, so that it is asked once.

Most steps of a schedule leave most of a kernel alone.  A question that was
answered for the kernel before, and depends on nothing that has changed since,
is not asked again.  What it depends on is gathered here generously: all
statements that touch one of the arrays through which a value may have come,
their domains, tags and relative order, and how they map to the text.
"""

from __future__ import annotations

from collections.abc import Iterable

from loopkit._cached import cached_property, memoised
from loopkit._check.read_ahead import accesses_by_data
from loopkit._check.schedule_check import Check
from loopkit._kernel import Statement
from loopkit._relations import reachable
from loopkit._same import Key as Identity
from loopkit._same import key_of

Key = tuple[object, ...]


class QuestionKeys:
    """Keys for questions: equal keys mean the same question, with the same answer."""

    def __init__(self, check: Check) -> None:
        self.check = check
        self.new = check.new
        self.root = check.root

    @cached_property
    def everywhere(self) -> Key:
        """What every question depends on."""
        kernel = self.new.kernel
        lineage = self.check.lineage
        axes = tuple(
            (str(axis), *(self._domains((i,)) for i in self.new.inames_on[axis]))
            for axis in self.new.axes
        )
        return (
            id(lineage.root),
            kernel.assumptions.text,
            kernel.assertions,
            lineage.fixed,
            axes,
        )

    @memoised
    def statement(self, name: str) -> Key:
        """A statement's text, loops, tags, domains, and what it stands for."""
        statement = self.new.statement[name]
        image = self.check.lineage.image_of.get(name)
        inames = tuple(sorted(statement.inames))
        return (
            name,
            what_it_says(statement),
            inames,
            self._domains(inames),
            tuple(str(self.new.kernel.iname_tags.get(i, "")) for i in inames),
            self.new.replicated_axes(statement.written),
            None if image is None else key_of((image.origin, image.values)),
        )

    def _domains(self, inames: tuple[str, ...]) -> Key:
        """The domains of some inames, and of those that their bounds use."""
        kernel = self.new.kernel
        home = kernel.home_domain

        def outer(index: int) -> list[int]:
            return [home[n] for n in kernel.domains[index].parameters if n in home]

        found = reachable([home[i] for i in inames], outer)
        return tuple(kernel.domains[i].text for i in sorted(found))

    def array(self, name: str) -> Key:
        """An array's declaration."""
        kernel = self.new.kernel
        return (name, key_of(kernel.temporary_by_name.get(name) or kernel.arg_by_name[name]))

    def order(self, statements: Iterable[str]) -> Key:
        """How some statements are nested and follow each other, others left out."""
        names = sorted(statements, key=lambda s: self.new.order.place(s)[0])
        return (*names, self.new.order.nest(names))

    def family(self, start: Iterable[str], statements: Iterable[str] = ()) -> Key:
        """All that the values in some arrays depend on, and what some statements compute."""
        arrays = reachable(start, lambda name: self._beside(name)[0])
        members = set(statements).union(*(self._beside(name)[1] for name in arrays))
        return (
            self.everywhere,
            tuple(self.array(a) for a in sorted(arrays) if self.new.kernel.is_array(a)),
            tuple(self.statement(s) for s in sorted(members)),
            self.order(members),
        )

    @memoised
    def _beside(self, name: str) -> tuple[frozenset[str], frozenset[str]]:
        """The arrays that values of an array may come through, and the statements that write it."""
        arrays: set[str] = set()
        members = {w.id for w in self.new.writers(name)}
        for copy in self.check.moves(name):
            arrays |= _reads(copy, self.new.data)
        for writer in self.root.writers(name):
            images = self.check.lineage.images_from[writer.id]
            for image in images:
                arrays.add(self.new.statement[image.statement].written)
                members.add(image.statement)
            if not images:
                arrays |= _reads(writer, self.root.data)
        return frozenset(arrays), frozenset(members)

    def of_storage(self, name: str) -> Key:
        """The key of how an array lies in memory."""
        return ("storage", self.everywhere, self.array(name))

    def of_instances(self, origin: str) -> Key:
        """The key of which instances a statement of the text executes."""
        images = self.check.lineage.images_from[origin]
        arrays = {self.new.statement[i.statement].written for i in images}
        return (
            "instances",
            origin,
            self.everywhere,
            tuple(self.statement(i.statement) for i in images),
            tuple(self.array(a) for a in sorted(arrays)),
        )

    def of_axes(self, statement: str) -> Key:
        """The key of whether a statement has one coordinate on each axis."""
        return ("axes", self.everywhere, self.statement(statement))

    def of_bounds(self, statement: str) -> Key:
        """The key of whether a statement stays in its arrays."""
        names = sorted(dict(self.new.statement[statement].accesses))
        arrays = tuple(self.array(n) for n in names if self.new.kernel.is_array(n))
        read: Key = ()
        if statement not in self.check.lineage.image_of:
            mine = accesses_by_data(self.new, self.new.statement[statement])
            read = self.family(_reads(self.new.statement[statement], self.new.data)) if mine else ()
        return ("bounds", self.everywhere, self.statement(statement), arrays, read)

    def of_races(self, array: str) -> Key:
        """The key of whether writes of an array, and what carries it off, are ordered."""
        images = self.check.lineage.image_of
        users = self.new.kernel.users(array)
        members = [s.id for s in users if s.written == array or s.id not in images]
        texts = tuple(self.statement(m) for m in members)
        return ("races", self.everywhere, self.array(array), texts, self.order(members))

    def of_statement(self, statement: str) -> Key:
        """The key of what a statement computes."""
        image = self.check.lineage.image_of[statement]
        names = _reads(self.new.statement[statement], self.new.data)
        names |= _reads(self.root.statement[image.origin], self.root.data)
        names |= set(self.root.bounds_from_data(image.origin))
        return ("statement", self.family(names, [statement]))

    def of_end(self, array: str) -> Key:
        """The key of what is left in an array."""
        return ("end", array, self.family([array]))


def _reads(statement: Statement, data: frozenset[str]) -> set[str]:
    return {name for name, _ in statement.reads if name in data}


@memoised
def what_it_says(statement: Statement) -> Identity:
    """What a statement computes, and when (remembered with it)."""
    said = (statement.lhs, statement.operation, statement.rhs, statement.predicates)
    return key_of((said, statement.kind))
