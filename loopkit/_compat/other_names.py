"""Loopy's names of transforms that have another name in loopkit, which the history records."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import SimpleNamespace

from loopkit._arguments import checked_kernel
from loopkit._arrays import AddressSpace
from loopkit._called import fitting
from loopkit._kernel import Kernel, Statement
from loopkit._registry import transform_named


@fitting
def set_loop_priority(
    kernel: Kernel, loop_priority: str | Iterable[str], *, unchecked: bool = False
) -> Kernel:
    """An older name of :func:`prioritize_loops`: *loop_priority* is that, and errors are, too."""
    return transform_named("prioritize_loops")(kernel, loop_priority, unchecked=unchecked)


@fitting
def set_temporary_scope(
    kernel: Kernel,
    temp_var_names: str | Collection[str],
    scope: AddressSpace | str,
    *,
    unchecked: bool = False,
) -> Kernel:
    """An older name of :func:`set_temporary_address_space`, with the same errors.

    *temp_var_names* go to the memory *scope*.
    """
    renamed = transform_named("set_temporary_address_space")
    return renamed(kernel, temp_var_names, scope, unchecked=unchecked)


class GeneratedCode:
    """What :func:`generate_code_v2` returns."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel

    def device_code(self) -> str:
        """The CUDA C source."""
        return self._kernel.cuda()

    all_code = device_code

    @property
    def device_programs(self) -> list[SimpleNamespace]:
        """The source as one program, with its name."""
        return [SimpleNamespace(name=self._kernel.name, ast=self.device_code())]

    def host_code(self) -> str:
        """Nothing: launches are made by the executors."""
        return ""


@fitting
def generate_code_v2(kernel: Kernel) -> GeneratedCode:
    """Generate code, with the interface of Loopy's function of this name.

    Returns what has a method ``device_code()``; raises :class:`~loopkit.InvalidArgumentError` for
    what is no kernel.
    """
    made = "make_kernel, or merge([text, functions]), makes one"
    return GeneratedCode(checked_kernel(kernel, "generate_code_v2", made))


# Loopy's names for what a statement holds: attributes, and methods.
for _name, _look in {
    "assignee": lambda statement: statement.lhs,
    "assignees": lambda statement: (statement.lhs,),
    "expression": lambda statement: statement.rhs,
    "happens_after": lambda statement: statement.depends_on,
    "no_sync_with": lambda _: frozenset(),
    "within_inames": lambda statement: statement.inames,
}.items():
    setattr(Statement, _name, property(_look))
for _name, _look in {
    "assignee_var_names": lambda statement: (statement.written,),
    "dependency_names": lambda statement: statement.names,
    "read_dependency_names": lambda statement: frozenset(name for name, _ in statement.reads),
}.items():
    setattr(Statement, _name, _look)
