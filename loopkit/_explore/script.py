"""A choice as a Python script: the function's own source if it runs alone, or recorded steps."""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import keyword
import linecache
import symtable
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any

from loopkit._display.markup import shell
from loopkit._explore.controls import arguments
from loopkit._frozen import dataclass
from loopkit._kernel import Kernel


@dataclass(frozen=True)
class _Piece:
    """A statement of a file or of a notebook: the names it binds, and those it needs."""

    text: str
    binds: frozenset[str]
    needs: frozenset[str]
    is_first: bool
    is_definition: bool


def script(make: Callable[..., Kernel], choice: Mapping[str, Any], kernel: Kernel) -> str:
    """Python source that makes ``kernel``: the function's own source, or the recorded steps.

    The function's script has all that it needs of its file or notebook, and the call.  It is run
    before it is returned, and must give the kernel.  Otherwise the script has the steps of the
    kernel's history, and the reason.
    """
    why = "its text, or what it was called with, is not to be had as Python"
    for text in _candidates(make, choice):
        why = _fault(text, kernel)
        if not why:
            return text
    steps = kernel.script() or "# no step was made\n"
    told = " ".join(why.split())
    return (
        f"# The steps of the function, which does not run alone ({told}).\n"
        f"# `knl` is the kernel as it was made, {kernel.name}.\n{steps}"
    )


def _fault(text: str, kernel: Kernel) -> str:
    """Why a script does not give a kernel; empty where it does."""
    names: dict[str, Any] = {"__name__": "script"}
    hush = io.StringIO()
    try:
        with contextlib.redirect_stdout(hush), contextlib.redirect_stderr(hush):
            exec(compile(text, "<script>", "exec", dont_inherit=True), names)
        return "" if names["knl"] == kernel else "alone it makes another kernel"
    except (Exception, SystemExit) as error:
        return f"{type(error).__name__}: {error}".encode("ascii", "backslashreplace").decode()


def _candidates(make: Callable[..., Kernel], choice: Mapping[str, Any]) -> Iterator[str]:
    if not isinstance(make, FunctionType) or not make.__name__.isidentifier():
        return
    call = _call(make, choice)
    if call is None:
        return
    if make.__closure__ is None and (pieces := _needed(make)):
        head = f"# `{make.__name__}` for one choice: run alone, this gives the kernel explored."
        yield f"{head}\n{_joined(pieces, call)}"
    if make.__module__ not in ("__main__", None) and make.__qualname__ == make.__name__:
        yield f"from {make.__module__} import {make.__name__}\n\n{call}\n"


def _call(make: FunctionType, choice: Mapping[str, Any]) -> str | None:
    """The call with its values as literals; None where one has none."""
    places, named = arguments(make, choice)
    try:
        for value in choice.values():
            if not _agree(ast.literal_eval(repr(value)), value):
                return None
    except Exception:  # values from outside print as they like
        return None
    plain = {n: v for n, v in named.items() if n.isidentifier() and not keyword.iskeyword(n)}
    others = {n: v for n, v in named.items() if n not in plain}
    words = [*map(repr, places), *(f"{name}={value!r}" for name, value in plain.items())]
    words += [f"**{others!r}"] if others else []
    return f"knl = {make.__name__}({', '.join(words)})"


def _agree(one: Any, other: Any) -> bool:
    return type(one) is type(other) and bool(one == other)


def _needed(make: FunctionType) -> list[_Piece]:
    """The statements that a function needs to be called, in their order, itself among them.

    Of several that bind a name the last one counts, and those before that it builds on.
    """
    pieces = list(_pieces(_texts(make)))
    wanted, known = {make.__name__}, set(vars(builtins))
    chosen = {place for place, piece in enumerate(pieces) if piece.is_first}
    while wanted - known:
        name = (wanted - known).pop()
        known.add(name)
        for place in reversed(range(len(pieces))):
            if name in pieces[place].binds:
                chosen.add(place)
                wanted |= pieces[place].needs
                if name not in pieces[place].needs:
                    break
    return [pieces[place] for place in sorted(chosen)]


def _joined(pieces: Sequence[_Piece], call: str) -> str:
    """A script of statements, definitions apart from the others."""
    lines, before = list[str](), True
    for piece in pieces:
        if piece.is_definition or before:
            lines += [""] * (2 if lines else 1)
        lines.append(piece.text)
        before = piece.is_definition
    return "\n".join([*lines, *([""] * (2 if before else 1)), call, ""])


def _texts(make: FunctionType) -> Sequence[str]:
    """The file that a function stands in, or the cells of the notebook, as they were run."""
    running = shell()
    if running is not None and make.__globals__ is running.user_ns:
        return [str(text) for text in running.history_manager.input_hist_parsed]
    return ["".join(linecache.getlines(make.__code__.co_filename, make.__globals__))]


def _pieces(texts: Sequence[str]) -> Iterator[_Piece]:
    for text in texts:
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError):
            continue
        lines = text.splitlines()
        for node in body:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            own = ast.get_source_segment(text, node) or ""
            own = "\n".join([*lines[first - 1 : node.lineno - 1], own])
            table = symtable.symtable(own, "<piece>", "exec")
            symbols = table.get_symbols()
            yield _Piece(
                own,
                frozenset(s.get_name() for s in symbols if s.is_assigned() or s.is_imported()),
                frozenset(_references(table)),
                isinstance(node, ast.ImportFrom) and node.module == "__future__",
                isinstance(node, (ast.FunctionDef, ast.ClassDef)),
            )


def _references(table: symtable.SymbolTable) -> Iterator[str]:
    """The names of the module that a piece of it reads, functions inside of it included."""
    at_top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (at_top or symbol.is_global()):
            yield symbol.get_name()
    for inner in table.get_children():
        yield from _references(inner)
