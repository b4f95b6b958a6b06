"""The command line: ``loopkit demo``, ``show``, ``measure``, ``view`` and ``doctor``.

Nothing here is imported by ``import loopkit``; each command's work is in a module of its own.
No command ever asks a question or waits for a key.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Sequence

import click

from loopkit._errors import LoopkitError
from loopkit._execute import EXECUTORS

VIEWS = ("nest", "cuda", "ptx", "sass", "resources", "costs", "history")
SIZE = click.IntRange(min=1)

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
    except click.Abort:
        return _interrupted()
    except KeyboardInterrupt:
        if debug:
            raise
        return _interrupted()
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


def _interrupted() -> int:
    print("loopkit: stopped", file=sys.stderr)
    return INTERRUPTED


def _version() -> str:
    try:
        return importlib.metadata.version("loopkit")
    except importlib.metadata.PackageNotFoundError:
        return "from a checkout that is not installed"


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(_version(), prog_name="loopkit")
def loopkit() -> None:
    """Say what is computed, then how: transformed loop nests as readable CUDA C."""


@loopkit.command()
@click.option("--n", type=SIZE, help="Rows of a and c.")
@click.option("--m", type=SIZE, help="Columns of b and c.")
@click.option("--l", type=SIZE, help="Columns of a, rows of b.")
@click.option(
    "--executor",
    type=click.Choice(EXECUTORS),
    help="Where it runs; by default a GPU, or the CPU where there is none.",
)
def demo(n: int | None, m: int | None, l: int | None, executor: str | None) -> int:
    """Follow a matrix product from its text to its result.

    Prints the loop nest before and after each transform and the CUDA C, runs it,
    and compares the result with NumPy's.
    """
    from loopkit._cli._demo import demo

    return demo(n=n, m=m, l=l, executor=executor)


@loopkit.command()
@click.argument("target", metavar="FILE.py:NAME")
@click.argument("sizes", nargs=-1, metavar="[n=4096]...")
@click.option("--nest", is_flag=True, help="The loop nest (default).")
@click.option("--cuda", is_flag=True, help="The CUDA C.")
@click.option("--ptx", is_flag=True, help="NVRTC's PTX.")
@click.option("--sass", is_flag=True, help="The machine code, disassembled.")
@click.option("--resources", is_flag=True, help="Registers, memory, spills.")
@click.option("--costs", is_flag=True, help="What a launch with these sizes costs, exactly.")
@click.option("--history", is_flag=True, help="Its steps; with sizes, what each did to the costs.")
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
    sizes: tuple[str, ...],
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
    from loopkit._cli._show import show

    asked = [view for view in VIEWS if views[view]] or ["nest"]
    return show(target, asked, arch, sizes, device, diff)


@loopkit.command()
@click.argument("targets", nargs=-1, required=True, metavar="FILE.py:NAME... [n=4096]...")
@click.option("--no-flush", is_flag=True, help="Leave in L2 what the launch before left there.")
@click.option("--seconds", type=float, default=0.5, help="How long to measure each kernel.")
@click.option("--seed", type=int, default=0, help="Of the random numbers in arrays.")
@click.option(
    "--executor",
    type=click.Choice(EXECUTORS),
    help="Where it runs; by default a GPU, or the CPU where there is none.",
)
def measure(
    targets: tuple[str, ...], no_flush: bool, seconds: float, seed: int, executor: str | None
) -> int:
    """Time the kernel NAME in FILE.py on random data of the given sizes.

    On a GPU other data fill the L2 cache before each launch. Several kernels take turns,
    after their results were compared with those of the first.
    """
    from loopkit._cli._measure import measure

    return measure(targets, not no_flush, seconds, executor, seed)


@loopkit.command()
@click.argument("target", metavar="FILE.py:NAME")
@click.argument("sizes", nargs=-1, metavar="[n=4096]...")
@click.option("-o", "--output", metavar="OUT.html", help="By default the kernel's name.")
@click.option("--arch", metavar="sm_90a", help="Of the machine code; by default this machine's.")
def view(target: str, sizes: tuple[str, ...], output: str | None, arch: str | None) -> int:
    """Write a page that shows the kernel NAME in FILE.py, step by step, down to machine code.

    The page is one file, which needs no server and no network. With sizes it says what each
    line costs.
    """
    from loopkit._cli._view import view

    return view(target, sizes, output, arch)


@loopkit.command()
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
def doctor(as_json: bool) -> int:
    """Say what is installed, what works, and what to do about the rest.

    Everything is tried, not only looked for. The exit code is 1 where something
    is broken that loopkit cannot do without.
    """
    from loopkit._cli._doctor import doctor

    return doctor(as_json=as_json)
