"""The command line: ``loopkit demo``, ``loopkit show`` and ``loopkit doctor``.

Nothing here is imported by ``import loopkit``, and click and rich only when a
command runs.  No command ever asks a question or waits for a key.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from loopkit._errors import LoopkitError

#: Exit codes: something was wrong with what was asked, and the user stopped it.
WRONG = 2
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code.

    Errors of loopkit are printed to stderr as a message.  With ``LOOPKIT_DEBUG=1``
    in the environment they come with their traceback.
    """
    import click

    from loopkit._cli._commands import loopkit

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
