"""The command line: ``loopkit demo``, ``show``, ``measure``, ``view`` and ``doctor``.

Nothing here is imported by ``import loopkit``; each command's work is in a module of its own.
No command ever asks a question or waits for a key.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import click

from loopkit import __version__
from loopkit._errors import InvalidArgumentError, LoopkitError, counted
from loopkit._execute import EXECUTORS
from loopkit._kernel import Kernel

VIEWS = {
    "nest": "The loop nest (default).",
    "cuda": "The CUDA C.",
    "ptx": "NVRTC's PTX.",
    "sass": "The machine code, disassembled.",
    "resources": "Registers, memory, spills.",
    "costs": "What a launch with these sizes costs, exactly.",
    "history": "Its steps; with sizes, what each did to the costs.",
}
"""What ``show`` can print."""
BELONGS = {
    "sizes say": ("give sizes to --history or --costs", ("history", "costs")),
    "--device says": ("it belongs to --costs", ("costs",)),
    "--arch says": (
        "it belongs to --ptx, --sass, --resources and --costs: all else is the same for all",
        ("ptx", "sass", "resources", "costs"),
    ),
}
"""Which views options are of, and what to do with other ones."""

SIZE = click.IntRange(min=1)
TARGET = click.argument("target", metavar="FILE.py:NAME")
SIZES = click.argument("words", nargs=-1, metavar="[n=4096]...")
EXECUTOR = click.option(
    "--executor",
    type=click.Choice(EXECUTORS),
    help="Where it runs; by default a GPU, or the CPU where there is none.",
)

#: Exit codes: something was wrong with what was asked, and the user stopped it.
WRONG = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Errors of loopkit are printed to stderr as a message.  With ``LOOPKIT_DEBUG=1``
    in the environment they come with their traceback.
    """
    debug = os.environ.get("LOOPKIT_DEBUG", "") not in ("", "0")
    try:
        code = loopkit.main(
            args=None if arguments is None else list(arguments),
            prog_name="loopkit",
            standalone_mode=False,
        )
        sys.stdout.flush()
    except click.ClickException as error:
        error.show(file=sys.stderr)
        return WRONG
    except (click.Abort, KeyboardInterrupt):
        if debug:
            raise
        print("loopkit: stopped", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has seen enough (``loopkit show ... | head``).
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except LoopkitError as error:
        if debug:
            raise
        sys.stdout.flush()
        print(f"loopkit: {error}", file=sys.stderr)
        return WRONG
    return code if isinstance(code, int) else 0


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="loopkit")
def loopkit() -> None:
    """Say what is computed, then how: transformed loop nests as readable CUDA C."""


@loopkit.command()
@click.option("--n", type=SIZE, help="Rows of a and c.")
@click.option("--m", type=SIZE, help="Columns of b and c.")
@click.option("--l", type=SIZE, help="Columns of a, rows of b.")
@EXECUTOR
def demo(**options: Any) -> int:
    """Follow a matrix product from its text to its result.

    Prints the loop nest before and after each transform and the CUDA C, runs it,
    and compares the result with NumPy's.
    """
    from loopkit._cli._demo import demo

    return demo(**options)


def _with_views(function: Callable[..., int]) -> Callable[..., int]:
    """A command with an option for each view."""
    for view, help_text in reversed(VIEWS.items()):
        function = click.option(f"--{view}", is_flag=True, help=help_text)(function)
    return function


@loopkit.command()
@TARGET
@SIZES
@_with_views
@click.option(
    "--diff",
    nargs=2,
    metavar="A B",
    help="What changed in these views from A to B: numbers of steps, 'text', or other NAMEs.",
)
@click.option("--device", metavar="H100", help="The GPU for --costs; by default this machine's.")
@click.option(
    "--arch",
    metavar="sm_90a",
    help="The architecture for --ptx, --sass, --resources and --costs; by default this machine's.",
)
def show(
    target: str,
    words: tuple[str, ...],
    arch: str | None,
    device: str | None,
    diff: tuple[str, str] | None,
    **views: bool,
) -> int:
    """Print views of the kernel NAME in FILE.py, the loop nest if no other is asked for.

    NAME is a kernel, or a function that needs no arguments and returns one. It may
    be left out where the file has just one kernel. Of several kernels in a dictionary
    NAME:KEY is one.
    """
    from loopkit._changes import Diff
    from loopkit._cli._kernels import load, numbers_of, stage
    from loopkit._cli._output import Output

    options: dict[str, dict[str, Any]] = {v: {} for v in VIEWS if views[v]} or {"nest": {}}
    given = (numbers_of(words, whole=True), {"device": device}, {"arch": arch})
    for (says, (instead, own)), values in zip(BELONGS.items(), given, strict=True):
        if [*values.values()] in ([], [None]):
            continue
        if options.keys().isdisjoint(own):
            why = f"{says} nothing about --{next(iter(options))}"
            raise InvalidArgumentError(why, instead=instead)
        for view in options.keys() & set(own):
            options[view] |= values
    kernel = load(target)
    output = Output()

    def texts(of: Kernel) -> list[str]:
        return [str(_rendered(of, view, asked)) for view, asked in options.items()]

    compiles = not options.keys().isdisjoint(BELONGS["--arch says"][1])
    doing = "counting" if words or "costs" in options else "compiling" if compiles else None
    with output.working(doing) if doing else nullcontext():
        if not diff:
            found = texts(kernel)
        else:
            both = (texts(stage(kernel, target, which)) for which in diff)
            compared = zip(options, *both, strict=True)
            found = [str(Diff(view, old, new, diff)) for view, old, new in compared]
    # Only now, so that after an error nothing is on stdout.
    for number, (view, text) in enumerate(zip(options, found, strict=True)):
        if number:
            output.text()
        output.code(text, "diff" if diff else view)
    return 0


def _rendered(kernel: Kernel, view: str, options: Mapping[str, Any]) -> Any:
    """What a view prints."""
    if view == "history":
        return kernel.history.at(**options) if options else kernel.history
    if view != "costs":
        return kernel if view == "nest" else getattr(kernel, view)(**options)
    found = kernel.costs(**options)
    return found if found.asked is not None else found.on(found.device)


@loopkit.command()
@click.argument("words", nargs=-1, required=True, metavar="FILE.py:NAME... [n=4096]...")
@click.option("--no-flush", is_flag=True, help="Leave in L2 what the launch before left there.")
@click.option("--seconds", type=float, default=0.5, help="How long to measure each kernel.")
@click.option("--seed", type=int, default=0, help="Of the random numbers in arrays.")
@EXECUTOR
def measure(
    words: tuple[str, ...], no_flush: bool, seconds: float, seed: int, executor: str | None
) -> int:
    """Time the kernel NAME in FILE.py on random data of the given sizes.

    On a GPU other data fill the L2 cache before each launch. Several kernels take turns,
    after their results were compared with those of the first.
    """
    from loopkit._cli._kernels import load, names_of, numbers_of
    from loopkit._cli._output import Output
    from loopkit._measure.compare import compared
    from loopkit._measure.measure import measured, options_of

    targets = [words[0], *(word for word in words[1:] if "=" not in word)]
    given = numbers_of(word for word in words[1:] if "=" in word)
    output = Output()
    options = options_of(seconds, not no_flush, executor, seed, output.working)
    kernels = {name: load(t) for name, t in zip(names_of(targets), targets, strict=True)}
    if len(kernels) > 1:
        output.text(str(compared(kernels, given, options)))
        return 0
    [kernel] = kernels.values()
    found = measured(kernel, given, options)
    with output.working("counting"):
        text = f"{found}\n\n{found.roofline}" if found.roofline is not None else str(found)
    output.text(text)
    return 0


@loopkit.command()
@TARGET
@SIZES
@click.option("-o", "--output", "to", metavar="OUT.html", help="By default the kernel's name.")
@click.option("--arch", metavar="sm_90a", help="Of the machine code; by default this machine's.")
def view(target: str, words: tuple[str, ...], to: str | None, arch: str | None) -> int:
    """Write a page that shows the kernel NAME in FILE.py, step by step, down to machine code.

    The page is one file, which needs no server and no network. With sizes it says what each
    line costs.
    """
    from loopkit._cli._kernels import load, numbers_of
    from loopkit._cli._output import Output

    sizes, kernel, output = numbers_of(words, whole=True), load(target), Output()
    steps = counted(len(kernel.history), "step")
    with output.working(f"replaying {steps}, compiling, counting"):
        written = kernel.view(to or f"{kernel.name}.html", arch=arch, sizes=sizes)
    output.text(str(written))
    return 0


@loopkit.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> int:
    """Say what is installed, what works, and what to do about the rest.

    Everything is tried, not only looked for. The exit code is 1 where something
    is broken that loopkit cannot do without.
    """
    from loopkit._cli._doctor import doctor

    return doctor(as_json=as_json)
