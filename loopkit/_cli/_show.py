"""``loopkit show``: views of one kernel of a file."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import runpy
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from loopkit._changes import Diff
from loopkit._cli._output import Output
from loopkit._cli._sizes import sizes_of
from loopkit._errors import (
    InvalidArgumentError,
    LoopkitError,
    NotThereError,
    UnknownNameError,
    check_known,
)
from loopkit._kernel import Kernel

BINARY = frozenset(["ptx", "sass", "resources", "costs"])
"""Views of what is made for one architecture."""

# A colon inside of a path (a drive letter, an odd folder) is none of ours.
_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_TARGET = re.compile(r"(.+?\.py|.*[/\\][^:]*|[^:]*)(?::([^:/\\]+))?(?::([^/\\]+))?")

T = TypeVar("T")


def show(
    target: str,
    views: Sequence[str],
    arch: str | None,
    words: Sequence[str] = (),
    device: str | None = None,
    diff: tuple[str, str] | None = None,
) -> int:
    """Print ``views`` of the kernel that ``target`` (``FILE.py:NAME``) names.

    With ``diff``, what differs between those of two others: see :func:`stage`.
    """
    options: dict[str, dict[str, Any]] = {view: {} for view in views}
    if words or device is not None:
        if "costs" not in options and ("history" not in options or device is not None):
            raise InvalidArgumentError(
                f"{'sizes say' if words else '--device says'} nothing about --{views[0]}",
                instead="that belongs to --costs" + (", and sizes to --history" if words else ""),
            )
        for view in {"costs", "history"} & options.keys():
            options[view] |= sizes_of(words)
        if device is not None:
            options["costs"]["device"] = device
    kernel = load(target)
    if arch is not None:
        if not BINARY.intersection(views):
            raise InvalidArgumentError(
                f"--arch says nothing about --{views[0]}: it is the same for all architectures",
                instead="it belongs to --ptx, --sass, --resources and --costs",
            )
        for view in BINARY.intersection(views):
            options[view]["arch"] = arch
    output = Output()

    def texts(of: Kernel) -> list[str]:
        return [str(render(of, view, given)) for view, given in options.items()]

    counts, compiles = words or "costs" in views, BINARY.intersection(views)
    doing = "counting" if counts else "compiling" if compiles else None
    with output.working(doing) if doing else contextlib.nullcontext():
        if diff is None:
            rendered = texts(kernel)
        else:
            both = (texts(stage(kernel, target, which)) for which in diff)
            compared = zip(views, *both, strict=True)
            rendered = [str(Diff(view, old, new, diff)) for view, old, new in compared]
    # Only now, so that after an error nothing is on stdout.
    for number, (view, text) in enumerate(zip(views, rendered, strict=True)):
        if number:
            output.text()
        output.code(text, view if diff is None else "diff")
    return 0


def render(kernel: Kernel, view: str, options: Mapping[str, Any]) -> Any:
    """What a view prints."""
    if view == "history":
        return kernel.history.at(**options) if options else kernel.history
    if view != "costs":
        return kernel if view == "nest" else getattr(kernel, view)(**options)
    found = kernel.costs(**options)
    return str(found if found.asked is not None else found.on(found.device))


def stage(kernel: Kernel, target: str, which: str) -> Kernel:
    """One side of a diff: after a step of the kernel's, its ``text``, or another of the file's."""
    steps = kernel.history
    if which == "text":
        return steps[0].before if steps else kernel
    if not _NUMBER.fullmatch(which):
        parts = _TARGET.fullmatch(target)
        return load(f"{target if parts is None else parts[1]}:{which}")
    number = int(which)
    if not -len(steps) <= number < len(steps):
        raise InvalidArgumentError(
            f"there is no step {number}: {kernel.name} has {len(steps)}, counted from 0",
            instead="'text' is the kernel before its first step; --history shows all",
        )
    return steps[number].kernel


def load(target: str) -> Kernel:
    """The kernel that ``FILE.py:NAME``, ``FILE.py:NAME:KEY`` or ``FILE.py`` names."""
    parts = _TARGET.fullmatch(target)
    file, name, key = parts.groups() if parts is not None else (target, None, None)
    if name is not None and not name.isidentifier():
        raise InvalidArgumentError(
            f"'{name}' is not a Python name",
            asked=f"loopkit show {target}",
            instead="say FILE.py:NAME, NAME being a kernel or a function that returns one",
        )
    path = Path(file)
    if not path.is_file():
        error = UnknownNameError("file", path.name, [p.name for p in path.parent.glob("*.py")])
        raise InvalidArgumentError(
            f"there is no file {path}", instead=error.instead if error.known else ""
        )
    found = _find(_run(path), name, path)
    if isinstance(found, Kernel):
        if key is None:
            return found
        raise InvalidArgumentError(
            f"{target}: '{key}' is a key, but there is one kernel alone",
            instead=f"loopkit show {target.removesuffix(':' + key)}",
        )
    keys = [k for k, value in found.items() if isinstance(k, str) and isinstance(value, Kernel)]
    if key is None:
        raise InvalidArgumentError(
            f"{target} is several kernels: {', '.join(keys) or 'none'}",
            instead=f"loopkit show {target}:{keys[0]} shows one" if keys else "",
        )
    check_known("kernel", [key], keys)
    chosen: Kernel = found[key]
    return chosen


def _run(path: Path) -> dict[str, Any]:
    """What the file's names mean once it has run."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        return _running(str(path), lambda: runpy.run_path(str(path), run_name="__loopkit_show__"))
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _running(what: str, function: Callable[[], T]) -> T:
    """What the user's own ``function`` returns; what it prints goes to stderr.

    Its errors name the place in the user's own code, not in ours.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return function()
    except SystemExit as error:
        raise LoopkitError(f"{what} ends the program (exit code {error.code})") from error
    except Exception as error:
        if isinstance(error, LoopkitError) and not isinstance(error, NotThereError):
            raise
        said = "".join(traceback.format_exception_only(error)).rstrip()
        if isinstance(error, SyntaxError):
            raise LoopkitError(f"{what} is not valid Python\n{said}") from error
        here = str(Path(__file__).resolve().parents[1])
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if not frame.filename.startswith((here, "<frozen"))
            and os.path.basename(frame.filename) != "runpy.py"
        ]
        last = frames[-1] if frames else None
        place = what if last is None else f"{last.filename}, line {last.lineno}: {last.line}"
        raise LoopkitError(
            f"{what} fails: {said}\n    {place}",
            instead="LOOPKIT_DEBUG=1 in the environment shows the whole traceback",
        ) from error


def _find(namespace: dict[str, Any], name: str | None, path: Path) -> Kernel | Mapping[Any, Any]:
    """A kernel, or a dictionary that holds some."""
    kernels = [n for n, value in namespace.items() if isinstance(value, Kernel)]
    makers = [n for n, value in namespace.items() if _could_make_a_kernel(value)]
    if name is None and len(kernels) == 1:
        [name] = kernels
    if name is None:
        known = ", ".join(f"{path}:{n}" for n in [*kernels, *makers])
        raise InvalidArgumentError(
            f"{path} has {len(kernels) or 'no'} kernels at its top level; say which one",
            asked=f"loopkit show {path}",
            instead=f"there is {known}" if known else "",
        )
    if name not in namespace:
        error = UnknownNameError("kernel or function", name, [*kernels, *makers])
        if not error.known:
            error.instead = f"{path} makes none at its top level"
        raise error
    value = namespace[name]
    wrong = f"{name} in {path} is neither a kernel nor a function that returns one, but {_a(value)}"
    if callable(value) and not isinstance(value, Kernel):
        needed = _needs(value)
        if needed:
            raise InvalidArgumentError(
                f"{name} in {path} takes arguments: {', '.join(needed)}",
                instead="write a function without arguments that calls it",
            )
        value = _running(f"{path}:{name}", value)
        wrong = f"{name}() in {path} returns {_a(value)}, not a kernel"
    held = value.values() if isinstance(value, Mapping) else (value,)
    if not any(isinstance(one, Kernel) for one in held):
        raise InvalidArgumentError(wrong)
    found: Kernel | Mapping[Any, Any] = value
    return found


def _a(value: Any) -> str:
    noun = type(value).__name__
    if value is None:
        return "None"
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


def _needs(function: Any) -> list[str]:
    """The parameters that a call has to give."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variable]


def _could_make_a_kernel(value: Any) -> bool:
    return (
        inspect.isfunction(value)
        and value.__module__ == "__loopkit_show__"
        and not value.__name__.startswith("_")
        and not _needs(value)
    )
