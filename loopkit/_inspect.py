"""Views of a kernel: its text, source, binaries, launch parameters and proof.

Code generation, the proof and the compiler are imported on first use.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from loopkit import _history
from loopkit._errors import InvalidArgumentError, check_known
from loopkit._expression import variable_names
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel
from loopkit._launches import is_one_launch
from loopkit._printed import Printed
from loopkit._slabs import settled
from loopkit._spelling import shown
from loopkit._target import CUDA

if TYPE_CHECKING:
    import os
    from pathlib import Path

    from loopkit._costs.costs import Costs
    from loopkit._costs.devices import Device
    from loopkit._costs.sizes import Sizes
    from loopkit._program import Program
    from loopkit._run.nvrtc import CompiledProgram, Resources
    from loopkit.codegen.proof import Proof

DEFAULT_ARCH = "sm_90a"
_ARCH = re.compile(r"sm_[0-9]{2,4}[a-z]?", re.ASCII)


@dataclass(frozen=True)
class LaunchConfig:
    """Grid and block extents (x, y, z), and dynamic shared memory in bytes a block.

    ``name`` is the function's, where a call launches several.
    """

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared_bytes: int
    name: str = ""

    def __repr__(self) -> str:
        said = f"grid={self.grid}, block={self.block}, shared_bytes={self.shared_bytes}"
        return f"LaunchConfig({said}{f', name={self.name!r}' if self.name else ''})"


class Source(Printed, str):
    """CUDA C: a string that shows itself in the colours of its kernel where HTML can be shown."""

    kernel: Kernel

    def __new__(cls, text: str, kernel: Kernel) -> Source:
        made = super().__new__(cls, text)
        made.kernel = kernel
        return made

    def __reduce__(self) -> tuple[type[str], tuple[str]]:
        return str, (str(self),)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """In a terminal of IPython, which has its own way with strings."""
        printer.text(str(self))

    def _html(self) -> Any:
        from loopkit._display.nest_html import source_html

        return source_html(self.kernel)


def mimebundle(
    kernel: Kernel, include: Collection[str] | None = None, exclude: Collection[str] | None = None
) -> dict[str, str]:
    """The nest for notebooks: as HTML in which loops fold, and as text."""
    from loopkit._display.ipython import load, shell
    from loopkit._display.markup import bundle
    from loopkit._display.nest_html import kernel_html

    if (running := shell()) is not None:
        load(running)
    return bundle(lambda: kernel_html(kernel), lambda: show(kernel), include, exclude)


def show(kernel: Kernel) -> str:
    """The loop nest as text, with what each line is for beside it."""
    from loopkit._show import show

    return show(kernel)


def program(kernel: Kernel, strided: frozenset[str] = frozenset()) -> Program:
    """The generated program: its source, tree, arguments and launch.

    ``strided`` names arrays whose strides are arguments of the call.  Raises
    :class:`TypeInferenceError` where types are missing, :class:`ResourceError` for a block that no
    GPU can hold, and :class:`AssumptionError` where 64 bits may not hold an index.
    """
    from loopkit.codegen.lower import program_of

    return program_of(kernel, strided)


def cuda(kernel: Kernel) -> str:
    """The CUDA C source, a string.  Raises what :meth:`program` raises."""
    return Source(program(kernel).source, kernel)


def ptx(kernel: Kernel, arch: str | None = None) -> str:
    """PTX, compiled by NVRTC for ``arch`` (default: the GPU here, or sm_90a).

    Raises :class:`MissingDependencyError` without NVRTC, :class:`CompileError` with its log, and
    what :meth:`program` raises.
    """
    return _compiled(kernel, arch).ptx


def cubin(kernel: Kernel, arch: str | None = None) -> bytes:
    """The binary for ``arch`` (default: the GPU here, or sm_90a).  Raises as :meth:`ptx`."""
    return _compiled(kernel, arch).cubin


def sass(kernel: Kernel, arch: str | None = None) -> str:
    """The machine code of the binary for ``arch``, disassembled.  Raises as :meth:`ptx`."""
    from loopkit._run.nvrtc import disassemble

    return disassemble(cubin(kernel, arch))


def resources(kernel: Kernel, arch: str | None = None) -> Resources | tuple[Resources, ...]:
    """Registers a thread, and bytes of shared memory and of spills, of the binary for ``arch``.

    A tuple of those of each launch, where there are several.  Raises as :meth:`ptx`.
    """
    found = tuple(part.resources for part in _compiled(kernel, arch).parts)
    return found[0] if is_one_launch(kernel) else found


def _compiled(kernel: Kernel, arch: str | None) -> CompiledProgram:
    from loopkit._run.nvrtc import compile_program

    return compile_program(program(kernel), _arch(arch))


def _arch(asked: str | None) -> str:
    from loopkit._run.driver import current_arch

    if asked is None:
        return current_arch() or DEFAULT_ARCH
    if not isinstance(asked, str) or not _ARCH.fullmatch(asked):
        raise InvalidArgumentError(
            f"{shown(asked)} is no architecture of GPUs", instead=f"for example, '{DEFAULT_ARCH}'"
        )
    return asked


def launch_config(kernel: Kernel, /, **sizes: int) -> LaunchConfig | tuple[LaunchConfig, ...]:
    """Grid and block, on x, y and z, and bytes of dynamic shared memory of a launch.

    ``sizes`` are those that the grid depends on.  Of a kernel of several launches it is a tuple of
    what a call launches, in order; those that have no blocks for these sizes are left out.
    Raises :class:`UnknownNameError` and :class:`InvalidArgumentError` for sizes that are unknown,
    missing or impossible.
    """
    configs = launch_configs(kernel, sizes)
    return configs[0] if is_one_launch(kernel) else configs


def launch_configs(kernel: Kernel, sizes: Mapping[str, int]) -> tuple[LaunchConfig, ...]:
    """:func:`launch_config` as a tuple in any case."""
    from loopkit._program import check_grid
    from loopkit._run.launch_sequence import grid_of, turns_of
    from loopkit._run.plan import ArgumentPlan

    made = program(kernel)
    decided = frozenset().union(*(variable_names(e) for e in made.extents))
    needed = decided & {*kernel.sizes}
    check_known("size", sizes, kernel.sizes)
    sizes = kernel.with_computed(sizes)
    missing = sorted(needed - sizes.keys())
    if missing:
        raise InvalidArgumentError(
            f"launch_config needs the sizes {', '.join(missing)}",
            instead=f"launch_config({', '.join(f'{m}=...' for m in missing)})",
        )
    values = ArgumentPlan(made).check_sizes(sizes)
    if not made.launches:
        grid = grid_of(made, values)
        check_grid(made, grid, CUDA)
        return (LaunchConfig(grid, made.block, made.dynamic_shared),)
    turns = [*turns_of(made, values)]
    for turn in turns:
        check_grid(turn.program, turn.grid, CUDA)
    return tuple(
        LaunchConfig(t.grid, t.program.block, t.program.dynamic_shared, t.program.name)
        for t in turns
    )


def launches(kernel: Kernel) -> tuple[Kernel, ...]:
    """The launches of a kernel as kernels of their own, in the order in which they run.

    Inames of loops around launches are sizes there, and temporaries that outlive a launch are
    arguments.  A kernel that is one launch is its own.

    :returns: kernels, each of one launch.
    :raises IllegalTransformError: where what passes from one launch to another has no place.
    """
    kernel = settled(kernel)
    if is_one_launch(kernel):
        return (kernel,)
    from loopkit.codegen.launches import parts_in, parts_of

    return tuple(part.kernel for part in parts_in(parts_of(kernel)))


def costs(
    kernel: Kernel,
    /,
    *,
    device: Device | str | None = None,
    arch: str | None = None,
    sizes: Mapping[str, Any] | None = None,
    **more: Any,
) -> Costs:
    """What a launch with these sizes does, counted exactly: see ``loopkit._costs``.

    Operations by kind and type; bytes that an array is touched in, and bytes of the sectors that
    warps ask for; for each access to global memory, requests and sectors of 32 bytes, and for
    each to shared memory, wavefronts: those that bank conflicts cost among them.  ``sizes`` and
    ``more`` are the kernel's integer parameters, together (``sizes={"n": 4096}``) or by name.
    Arrays, and numbers that are no sizes, are passed as in a call: what their data decide, loaded
    bounds, subscripts and conditions, is counted with them, and sizes follow from their shapes.

    ``device`` is what registers, occupancy, the waves of the grid and the roofline are of: a name
    (``"H100"``, ``"A100"``, ``"RTX 4090"``, ...), or a :class:`Device`; the GPU here, or else an
    H100, if it is left out.  Its code is compiled for ``arch``, or for just this device.

    Returns plain data that prints as tables.  Where sizes are left out, its numbers are
    polynomials of them, each for sizes of some residue (``2*n**3 + n**2 for n % 16 == 0``),
    which are called with sizes: interpolated from exact counts, and verified at further sizes.
    Raises :class:`InvalidArgumentError` for sizes that no call may have, and where a number is no
    such polynomial, :class:`UnknownNameError` for other names.
    """
    from loopkit._costs.counted import costs_of
    from loopkit._costs.sizes import sizes_and_data, sizes_of
    from loopkit._make.check_bounds import check_settled

    check_settled(kernel)
    given = sizes_of(kernel, sizes, more)
    # The kernel's own sizes take precedence, unless `sizes` has them.
    if "device" in kernel.sizes and "device" not in given and device is not None:
        given["device"], device = device, None
    if "arch" in kernel.sizes and "arch" not in given and arch is not None:
        given["arch"], arch = arch, None
    arch = None if arch is None else _arch(arch)
    known, data = sizes_and_data(kernel, given)
    if not data.values and any(name not in known for name in kernel.sizes):
        from loopkit._costs.counted import open_costs_of

        return open_costs_of(kernel, known, device, arch)
    return costs_of(kernel, known, device, arch, data)


def prove(kernel: Kernel, *, text: bool = False) -> Proof:
    """Prove that the generated source executes this kernel: see ``loopkit.codegen.proof``.

    The tree of C that the source is printed from is compared with the kernel: instances,
    values, barriers, bounds, widths of index arithmetic, and what a call passes.  With
    ``text`` the printed source is read back, and that is compared.

    Returns a proof, true where it holds, which lists what was refuted, left open or trusted.
    Raises what :meth:`program` raises.
    """
    from loopkit.codegen.proof import prove

    return prove(kernel, text=text)


def view(
    kernel: Kernel,
    path: str | os.PathLike[str],
    /,
    *,
    arch: str | None = None,
    sizes: Sizes | None = None,
    **more: int,
) -> Path:
    """Write a page that shows the schedule, step by step, down to its machine code.

    One file of HTML that needs no server and no network: the nest, CUDA C, PTX and SASS side by
    side, in which lines that come from each other light up together.  ``sizes`` and ``more`` are
    the kernel's integer parameters, together or by name: with them, what each line costs.
    ``arch`` is the architecture of the machine code (default: that of the GPU here, or sm_90a).

    Returns the path of the file.  Raises :class:`InvalidArgumentError` for a path that cannot be
    written, and what :meth:`costs` raises; then there is no file, or the old one.
    """
    from loopkit._costs.sizes import sizes_of
    from loopkit._view.view import view

    return view(settled(kernel), path, _arch(arch), sizes_of(kernel, sizes, more))


def script(kernel: Kernel) -> str:
    """Python source that applies this kernel's history to a kernel ``knl``, a call a step."""
    return _history.script(kernel.history)
