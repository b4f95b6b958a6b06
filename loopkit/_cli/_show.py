"""``loopkit show``: views of one kernel of a file."""

from __future__ import annotations

import contextlib
import inspect
import os
import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from loopkit._cli._output import Output
from loopkit._errors import InvalidArgumentError, LoopkitError, UnknownNameError
from loopkit._kernel import Kernel

BINARY = frozenset(["ptx", "sass", "resources"])
"""Views of what is made for one architecture."""

Found = Kernel | Mapping[Any, Any]
"""A kernel, or a dictionary that holds some."""


def show(target: str, views: Sequence[str], arch: str | None) -> int:
    """Print ``views`` of the kernel that ``target`` (``FILE.py:NAME``) names."""
    kernel = load(target)
    if arch is not None and not BINARY.intersection(views):
        raise InvalidArgumentError(
            f"--arch says nothing about --{views[0]}: it is the same for all architectures",
            instead="it belongs to --ptx, --sass and --resources",
        )
    rendered = [render(kernel, view, arch) for view in views]
    # Only now, so that after an error nothing is on stdout.
    output = Output()
    for number, (text, language) in enumerate(rendered):
        if number:
            output.text()
        output.code(text, language)
    return 0


def render(kernel: Kernel, view: str, arch: str | None) -> tuple[str, str]:
    """The text of a view and the language it is in."""
    made_for = {"arch": arch} if arch is not None and view in BINARY else {}
    made = kernel if view == "nest" else getattr(kernel, view)(**made_for)
    return str(made), view if view in ("cuda", "ptx") else "text"


def load(target: str) -> Kernel:
    """The kernel that ``FILE.py:NAME``, ``FILE.py:NAME:KEY`` or ``FILE.py`` names."""
    file, name = _split(target)
    key = None
    if name is not None and not file.endswith(".py") and _split(file)[1] is not None:
        (file, name), key = _split(file), name
    path = Path(file)
    if not path.is_file():
        raise _no_such_file(path)
    namespace = _run(path)
    return _one_of(_find(namespace, name, path), key, target)


def _one_of(found: Found, key: str | None, target: str) -> Kernel:
    """The kernel that was found, or the one of several that has a key."""
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
    if key not in keys:
        raise UnknownNameError("kernel", key, keys)
    chosen: Kernel = found[key]
    return chosen


def _split(target: str) -> tuple[str, str | None]:
    file, colon, name = target.rpartition(":")
    # A colon inside a path (a drive letter, an odd folder) is none of ours.
    if not colon or "/" in name or os.sep in name or name.endswith(".py"):
        return target, None
    if not name.isidentifier():
        raise InvalidArgumentError(
            f"'{name}' is not a Python name",
            asked=f"loopkit show {target}",
            instead="say FILE.py:NAME, NAME being a kernel or a function that returns one",
        )
    return file, name


def _no_such_file(path: Path) -> LoopkitError:
    try:
        beside = sorted(p.name for p in path.parent.glob("*.py"))
    except OSError:
        beside = []
    if not beside:
        return InvalidArgumentError(f"there is no file {path}")
    error = UnknownNameError("file", path.name, beside)
    error.why = f"there is no file {path}"
    return error


def _run(path: Path) -> dict[str, Any]:
    """What the file's names mean once it has run; what it prints goes to stderr."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return runpy.run_path(str(path), run_name="__loopkit_show__")
    except LoopkitError:
        raise
    except SystemExit as error:
        raise LoopkitError(f"{path} ends the program (exit code {error.code})") from error
    except Exception as error:
        raise _failed(str(path), error) from error
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def _failed(what: str, error: Exception) -> LoopkitError:
    """The user's own error, with the place in the user's own code, not in ours."""
    if isinstance(error, SyntaxError):
        said = "".join(traceback.format_exception_only(error)).rstrip()
        return LoopkitError(f"{what} is not valid Python\n{said}")
    here = str(Path(__file__).resolve().parent)
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((here, "<frozen"))
        and os.path.basename(frame.filename) != "runpy.py"
    ]
    place = f", line {frames[-1].lineno}: {frames[-1].line}" if frames else ""
    file = frames[-1].filename if frames else what
    said = "".join(traceback.format_exception_only(error)).rstrip()
    return LoopkitError(
        f"{what} fails: {said}\n    {file}{place}",
        instead="LOOPKIT_DEBUG=1 in the environment shows the whole traceback",
    )


def _find(namespace: dict[str, Any], name: str | None, path: Path) -> Found:
    kernels = {n: v for n, v in namespace.items() if isinstance(v, Kernel)}
    makers = [n for n, v in namespace.items() if _could_make_a_kernel(v)]
    if name is None:
        if len(kernels) == 1:
            [found] = kernels.values()
            return found
        known = ", ".join(f"{path}:{n}" for n in [*kernels, *makers])
        raise InvalidArgumentError(
            f"{path} has {len(kernels) or 'no'} kernel{'' if len(kernels) == 1 else 's'}"
            " at its top level; say which one",
            asked=f"loopkit show {path}",
            instead=f"there is {known}" if known else "",
        )
    if name not in namespace:
        error = UnknownNameError("kernel or function", name, [*kernels, *makers])
        if not error.known:
            error.instead = f"{path} makes none at its top level"
        raise error
    value = namespace[name]
    if _has_kernel(value):
        return value
    if not callable(value):
        raise InvalidArgumentError(
            f"{name} in {path} is neither a kernel nor a function that returns one,"
            f" but {_a(type(value).__name__)}",
        )
    return _call(name, value, path)


def _has_kernel(value: Any) -> TypeGuard[Found]:
    """Whether ``value`` is a kernel, or a dictionary that holds some."""
    held = value.values() if isinstance(value, Mapping) else (value,)
    return any(isinstance(one, Kernel) for one in held)


def _call(name: str, function: Any, path: Path) -> Found:
    needed = _needs(function)
    if needed:
        raise InvalidArgumentError(
            f"{name} in {path} takes arguments: {', '.join(needed)}",
            instead="write a function without arguments that calls it",
        )
    try:
        with contextlib.redirect_stdout(sys.stderr):
            made = function()
    except LoopkitError:
        raise
    except Exception as error:
        raise _failed(f"{path}:{name}", error) from error
    if _has_kernel(made):
        return made
    raise InvalidArgumentError(
        f"{name}() in {path} returns {_a(type(made).__name__)}, not a kernel"
    )


def _a(noun: str) -> str:
    if noun == "NoneType":
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
