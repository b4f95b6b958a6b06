"""Loopy's functions that query a kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from loopkit._errors import InvalidArgumentError
from loopkit._inspect import program
from loopkit._kernel import Kernel, Statement
from loopkit._tags import Tag


class Looks:
    """The questions of Loopy's kernels that one of loopkit's answers under other names."""

    kernel: Kernel

    @property
    def callables_table(self) -> Mapping[str, Any]:
        """The kernel, and the functions that it calls, by name."""
        return {self.kernel.name: self, **{f.name: f for f in self.kernel.functions}}

    @property
    def inames(self) -> Mapping[str, SimpleNamespace]:
        """Inames by name, each with its name and tags."""
        return {i: SimpleNamespace(name=i, tags=self.iname_tags(i)) for i in self.kernel.all_inames}

    def get_grid_size_upper_bounds(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """How many blocks there are along each axis, and how many threads."""
        made = program(self.kernel)
        sizes = (made.grid, made.block)
        return tuple(e[: max((n + 1 for n, x in enumerate(e) if x != 1), default=0)] for e in sizes)

    get_grid_size_upper_bounds_as_exprs = get_grid_size_upper_bounds

    def all_inames(self) -> frozenset[str]:
        """The names of all inames."""
        return frozenset(self.kernel.all_inames)

    def all_params(self) -> frozenset[str]:
        """The names of sizes."""
        return frozenset(self.kernel.sizes)

    outer_params = all_params

    def all_variable_names(self) -> frozenset[str]:
        """The names of all data."""
        return frozenset({*self.kernel.arg_by_name, *self.kernel.temporary_by_name})

    def get_written_variables(self) -> frozenset[str]:
        """The names of what is written."""
        return frozenset(self.kernel.writers)

    def get_read_variables(self) -> frozenset[str]:
        """The names of the data that is read."""
        return frozenset(self.reader_map())

    def reader_map(self) -> dict[str, set[str]]:
        """The ids of the statements that read, by name of the data."""
        return self._ids(self.kernel.readers)

    def writer_map(self) -> dict[str, set[str]]:
        """The ids of the statements that write, by name of the data."""
        return self._ids(self.kernel.writers)

    def _ids(self, users: Mapping[str, tuple[Statement, ...]]) -> dict[str, set[str]]:
        data = self.all_variable_names()
        return {name: {s.id for s in found} for name, found in users.items() if name in data}

    def insn_inames(self, insn: Statement | str) -> frozenset[str]:
        """The inames that a statement, or the one of an id, is inside."""
        return (insn if isinstance(insn, Statement) else self.kernel.statement(insn)).inames

    def iname_tags(self, iname: str) -> frozenset[Tag]:
        """The tag of an iname, if it has one."""
        found = self.kernel.iname_tags.get(self.kernel.check_iname(iname))
        return frozenset() if found is None else frozenset([found])

    def iname_tags_of_type(self, iname: str, tag_type: type[Tag], **limits: Any) -> frozenset[Tag]:
        """The tag of an iname, if it has one of this type."""
        return frozenset(tag for tag in self.iname_tags(iname) if isinstance(tag, tag_type))

    def get_constant_iname_length(self, iname: str) -> int:
        """How many values an iname has at most; an error where sizes say so."""
        first, last = self.kernel.range_of(self.kernel.check_iname(iname))
        if first is None or last is None:
            raise InvalidArgumentError(
                f"the length of '{iname}' is no number: sizes say what it is"
            )
        return last - first + 1

    def get_var_name_generator(self) -> Callable[[str], str]:
        """What makes names that nothing in the kernel has, each once."""
        taken: set[str] = set()

        def fresh(based_on: str = "var") -> str:
            name = self.kernel.fresh_name(based_on, taken)
            taken.add(name)
            return name

        return fresh

    get_instruction_id_generator = get_var_name_generator

    def stringify(self, what: Any = None, with_dependencies: bool = False) -> str:
        """The kernel as text, all of it."""
        return str(self.kernel)
