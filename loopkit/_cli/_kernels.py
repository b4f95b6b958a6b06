"""Arguments of commands: kernels in files, and numbers by name, as ``n=4096``."""

from __future__ import annotations

import contextlib
import inspect
import os
import re
import runpy
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from loopkit._errors import InvalidArgumentError, LoopkitError, NotThereError, UnknownNameError
from loopkit._kernel import Kernel
from loopkit._spelling import shown

# A colon inside of a path (a drive letter, an odd folder) is none of ours.
_NUMBER = re.compile(r"-?[0-9]{1,9}", re.ASCII)
_TARGET = re.compile(r"(.+?\.py|.*[/\\][^:]*|[^:]*)(?::([^:/\\]+))?(?::([^/\\]+))?")

T = TypeVar("T")


def numbers_of(words: Iterable[str], *, whole: bool = False) -> dict[str, Any]:
    """Numbers by name, all of them sizes with ``whole``.

    Raises :class:`InvalidArgumentError` for other words.
    """
    found: dict[str, int | float] = {}
    for word in words:
        name, _, value = word.partition("=")
        is_whole = whole or re.fullmatch(r"[+-]?[\d_]+", value)
        try:
            if not (name.isidentifier() and value.isascii()):
                raise ValueError
            number = (int if is_whole else float)(value.replace("_", ""))
        except ValueError:
            what = "size" if whole else "number with a name"
            why = f"{shown(word)} is no {what}"
            raise InvalidArgumentError(why, instead="for example, n=4096") from None
        if name in found:
            raise InvalidArgumentError(f"the size '{name}' is given twice")
        found[name] = number
    return found


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
    kernels = _find(_run(path), name, path)
    if key in kernels:
        return kernels[key]
    if None in kernels:
        raise InvalidArgumentError(
            f"{target}: '{key}' is a key, but there is one kernel alone",
            instead=f"loopkit show {target.removesuffix(f':{key}')}",
        )
    keys = [k for k in kernels if isinstance(k, str)]
    if key is not None:
        raise UnknownNameError("kernel", key, keys)
    raise InvalidArgumentError(
        f"{target} is several kernels: {', '.join(keys) or 'none'}",
        instead=f"loopkit show {target}:{keys[0]} shows one" if keys else "",
    )


def names_of(targets: Sequence[str]) -> list[str]:
    """What kernels are called beside others: the shortest end of a target that none shares."""
    return [_shortest(target, targets) for target in targets]


def _shortest(target: str, others: Sequence[str]) -> str:
    parts = target.split(":")
    for count in range(1, len(parts)):
        if sum(other.split(":")[-count:] == parts[-count:] for other in others) == 1:
            return ":".join(parts[-count:])
    return Path(target).name if others.count(target) == 1 else target


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
        ours = (str(Path(__file__).resolve().parents[1]), "<frozen")
        place = what
        for frame in traceback.extract_tb(error.__traceback__):
            name = frame.filename
            if not name.startswith(ours) and os.path.basename(name) != "runpy.py":
                place = f"{name}, line {frame.lineno}: {frame.line}"
        raise LoopkitError(
            f"{what} fails: {said}\n    {place}",
            instead="LOOPKIT_DEBUG=1 in the environment shows the whole traceback",
        ) from error


def _find(namespace: dict[str, Any], name: str | None, path: Path) -> Mapping[Any, Kernel]:
    """The kernels of a dictionary by key; a kernel that stands alone has the key None."""
    kernels = [n for n, value in namespace.items() if isinstance(value, Kernel)]
    known = kernels + [n for n, value in namespace.items() if _could_make_a_kernel(value)]
    if name is None:
        if len(kernels) != 1:
            raise InvalidArgumentError(
                f"{path} has {len(kernels) or 'no'} kernels at its top level; say which one",
                asked=f"loopkit show {path}",
                instead=f"there is {', '.join(f'{path}:{n}' for n in known)}" if known else "",
            )
        [name] = kernels
    if name not in namespace:
        error = UnknownNameError("kernel or function", name, known)
        if not known:
            error.instead = f"{path} makes none at its top level"
        raise error
    value = namespace[name]
    wrong = f"{name} in {path} is neither a kernel nor a function that returns one, but {_a(value)}"
    if callable(value) and not isinstance(value, Kernel):
        if needed := _needs(value):
            raise InvalidArgumentError(
                f"{name} in {path} takes arguments: {', '.join(needed)}",
                instead="write a function without arguments that calls it",
            )
        value = _running(f"{path}:{name}", value)
        wrong = f"{name}() in {path} returns {_a(value)}, not a kernel"
    held = value if isinstance(value, Mapping) else {None: value}
    found = {k: one for k, one in held.items() if isinstance(one, Kernel)}
    if not found:
        raise InvalidArgumentError(wrong)
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
