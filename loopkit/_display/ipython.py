"""The IPython extension: shorter tracebacks, pictures of refusals, and completion inside strings.

Names are completed inside of a string argument in a call of a transform.  To find them, the
completer runs only transforms with literal arguments, which have no side effects: so a chain of
steps completes the names that its last step would make.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from traceback import format_exception
from types import FunctionType, MethodType, TracebackType
from typing import Any
from warnings import catch_warnings, simplefilter

from loopkit import _arguments
from loopkit._arguments import kinds_of
from loopkit._arrays import AddressSpace, ArrayArg
from loopkit._display.markup import html_text
from loopkit._display.markup import shell as shell
from loopkit._errors import LoopkitError, WitnessError
from loopkit._expression import tagged_uses
from loopkit._frozen import dataclass
from loopkit._history import History
from loopkit._kernel import Kernel
from loopkit._registry import transforms
from loopkit._tags import SPELLINGS

_TOKEN = re.compile(
    r"""(?P<comment>\#[^\n]*)
    |(?P<string>\"{3}(?:\\.|(?!\"{3}).)*\"{3}|'{3}(?:\\.|(?!'{3}).)*'{3}
        |"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<quote>\"{3}|'{3}|"|')
    |(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<line>\n)|.""",
    re.DOTALL | re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_FRAGMENT = re.compile(r"[\w.*?$-]*\Z", re.ASCII)
_CURSOR = "loopkit_cursor"
LONGEST = 20_000
"""Characters before the cursor that are looked at."""


@dataclass(frozen=True)
class Place:
    """Where a cursor is: in an argument of a call, inside of a string or not.

    ``argument`` is the number or the name of the argument; ``typed`` is what a string holds up to
    the cursor, None outside of strings.  ``is_value`` says that it is a value of a mapping.
    """

    call: ast.Call
    argument: int | str | None
    typed: str | None
    is_value: bool


def place_of(text: str) -> Place | None:
    """Where the end of a text is; None where that is in no call."""
    left, begin, quote, typed = "", 0, "", None
    for match in _TOKEN.finditer(text):
        if match["quote"]:
            quote, typed = match["quote"], text[match.end() :]
            break
        if match["open"]:
            left = _CLOSING[match[0]] + left
        elif match["close"]:
            left = left[1:]
        elif match["line"] and not left:
            begin = match.end()
    # Beside arguments by name, two stars may stand before what is none.
    cursor = f"{'' if quote else '**'}{_CURSOR}{quote}{left}"
    statement = text[begin:].lstrip().removeprefix("el") + cursor
    tree = _parsed(statement) or _parsed(f"{statement}: pass")
    found = None
    for node in ast.walk(tree) if tree is not None else ():
        if not isinstance(node, ast.Call):
            continue
        named = ((keyword.arg, keyword.value) for keyword in node.keywords)
        for key, argument in (*enumerate(node.args), *named):
            if _has_cursor(argument):
                inside = (n for n in ast.walk(argument) if isinstance(n, ast.Dict))
                is_value = any(_has_cursor(value) for each in inside for value in each.values)
                found = Place(node, key, typed, is_value)  # the last one is the innermost
    return found


def _parsed(statement: str) -> ast.AST | None:
    with suppress(SyntaxError, ValueError, MemoryError, RecursionError), catch_warnings():
        simplefilter("ignore")
        return ast.parse(statement)
    return None


def _has_cursor(node: ast.expr) -> bool:
    words = (getattr(n, "id", None) or getattr(n, "value", "") for n in ast.walk(node))
    return any(isinstance(word, str) and word.endswith(_CURSOR) for word in words)


class _CannotTellError(Exception):
    """An expression that is not looked into, since that might run something."""


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression made of names, kernels, literals and transforms."""
    if isinstance(node, ast.Name) and node.id in names:
        return names[node.id]
    if isinstance(node, ast.Subscript):
        held, key = _value(node.value, names), _value(node.slice, names)
        if type(held) in (dict, list, tuple) and type(key) in (str, int):
            return held[key]
    elif isinstance(node, ast.Attribute):
        return _attribute(_value(node.value, names), node.attr)
    elif isinstance(node, ast.Call):
        return _called(node, names)
    else:
        return ast.literal_eval(node)
    raise _CannotTellError


PICTURES = tuple(
    f"plot_{what}" for what in ("access", "banks", "domain", "footprint", "loop", "roofline")
)
_ASKING = ("bind", "costs", "history", "launch_config", "view", *PICTURES)
"""What of a kernel is looked at, beside transforms."""


def _attribute(of: Any, name: str) -> Any:
    if isinstance(of, Kernel) and (name in transforms or name in _ASKING):
        return getattr(of, name)
    if isinstance(of, History) and name == "at":
        return of.at
    if inspect.ismodule(of) and of.__name__ == "loopkit" and name in transforms:
        return transforms[name]
    raise _CannotTellError


def _called(node: ast.Call, names: Mapping[str, Any]) -> Kernel:
    """What a transform makes; it is not proven to be legal, since the cell will be."""
    function = _value(node.func, names)
    if _name(function) not in transforms:
        raise _CannotTellError
    given = [_value(argument, names) for argument in node.args]
    named = {k.arg: _value(k.value, names) for k in node.keywords if k.arg is not None}
    made = function(*given, **{**named, "unchecked": True})
    assert isinstance(made, Kernel)
    return made


def _name(function: Any) -> str:
    """The name of a function or method; nothing else is asked for one."""
    return function.__name__ if isinstance(function, (FunctionType, MethodType)) else ""


def completions(text: str, names: Mapping[str, Any]) -> tuple[str, list[tuple[str, str]]]:
    """What may stand at the end of a text: the piece to replace, and ``(name, its kind)``.

    ``names`` are those of the session.  Nothing is found where the text is in no call of a
    transform, or where it cannot be told of which kernel.
    """
    place = place_of(text[-LONGEST:])
    if place is None:
        return "", []
    try:
        found = list(_fitting(place, _value(place.call.func, names), names))
    except (_CannotTellError, LoopkitError, ValueError, LookupError, TypeError):
        return "", []
    match = _FRAGMENT.search(text)
    fragment = match[0] if match else ""
    return fragment, [(n, kind) for n, kind in found if n.startswith(fragment)]


def _fitting(place: Place, target: Any, names: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    name = _name(target)
    kernel = target.__self__ if isinstance(target, MethodType) else None
    at = place.argument
    if place.typed is None:
        return () if isinstance(at, str) else _sizes(target, kernel)
    if name in transforms and kernel is None:
        kernel = _value(place.call.args[0], names)
    if not isinstance(kernel, Kernel) or name not in (*transforms, *PICTURES):
        return ()
    parameter = [*inspect.signature(target).parameters][at] if isinstance(at, int) else at or ""
    kinds = kinds_of(transforms[name]) if name in transforms else {parameter: _arguments.name}
    return _names(kernel, parameter, kinds.get(parameter), place)


def _sizes(target: Any, owner: Any) -> list[tuple[str, str]]:
    """The names of arguments, of what is called with sizes or arrays."""
    if isinstance(owner, History) and owner:
        return [(f"{name}=", "size") for name in owner[0].before.sizes]
    kernel = target if isinstance(target, Kernel) else owner
    if not isinstance(kernel, Kernel):
        return []
    if target is kernel or _name(target) == "bind":
        return [(f"{argument.name}=", "argument") for argument in kernel.passed]
    if _name(target) in ("costs", "fix_parameters", "launch_config", "view", *PICTURES):
        return [(f"{name}=", "size") for name in kernel.sizes]
    return []


_BY_PARAMETER = "its name says it"
_STRINGS: Mapping[tuple[str, str], tuple[Any, ...]] = {
    ("tag", "tag"): (_arguments.TagLike, _arguments.TagType),
    ("iname", "tag"): (_arguments.TagRequest, _arguments.TagsByName, _arguments.TagsByAxis),
    ("iname", ""): (_arguments.NamesByName,),
    ("variable", ""): (_arguments.DTypesByName,),
    ("temporary array", ""): (_arguments.ArrayAxes,),
    ("space", ""): (_arguments.Space,),
    ("use", ""): (_arguments.Use, _arguments.UsedName, _arguments.Invocations),
    (_BY_PARAMETER, ""): (
        *(_arguments.Name, _arguments.Names, _arguments.MaybeNames, _arguments.Patterns),
    ),
}
"""What strings of each kind of argument hold: names of what, and behind a colon, values of what."""

_OF_KIND = {a.__metadata__[0]: both for both, each in _STRINGS.items() for a in each}
_PARAMETERS = (
    (r"new_|dim_arg_names$", ""),
    (r"insn_ids|statement", "statement"),
    (r"old_name$|arg_names", "argument"),
    (r"(temp_var|only_var|array)_names|(name|variable|lhs_name)$", "temporary"),
    (r".*iname|loop_priority|(at|colour|tiles)$", "iname"),
    (r".*subst", "rule"),
    (r"", "array"),
)
"""Of what a parameter is the name, where its kind says no more: the first that fits."""


def _names(kernel: Kernel, parameter: str, kind: object, place: Place) -> list[tuple[str, str]]:
    """The names that fit into a string of an argument."""
    typed = place.typed or ""
    if kind is _arguments.within:
        return _matching(kernel, typed)
    of_kind = _OF_KIND.get(kind, ("", ""))[place.is_value or ":" in typed.rpartition(",")[2]]
    what = next(what for words, what in _PARAMETERS if re.match(words, parameter))
    what = what if of_kind in ("use", _BY_PARAMETER) else of_kind
    temporaries = [*kernel.temporary_by_name]
    named: Mapping[str, Iterable[str]] = {
        "argument": kernel.arg_by_name,
        "array": [*(a.name for a in kernel.args if isinstance(a, ArrayArg)), *temporaries],
        "iname": kernel.all_inames,
        "rule": kernel.rule_by_name,
        "space": [space.word for space in AddressSpace if space is not AddressSpace.AUTO],
        "statement": [s.id for s in kernel.statements],
        "tag": SPELLINGS,
        "temporary": temporaries,
        "temporary array": [t.name for t in kernel.temporaries if t.shape],
        "variable": [*kernel.arg_by_name, *temporaries],
    }
    found = [(name, what) for name in named.get(what, ())]
    if parameter == "colour":
        found += [(word, "colour") for word in ("order", "thread", "warp", "block")]
    if of_kind == "use":
        expressions = [e for s in kernel.statements for e in s.expressions]
        expressions += [r.expression for r in kernel.substitutions]
        uses = frozenset().union(*map(tagged_uses, expressions))
        found += [(f"{name}${tag}", what) for name, tag in sorted(uses) if (name, what) in found]
    return found


def _matching(kernel: Kernel, typed: str) -> list[tuple[str, str]]:
    """What may follow in a match string."""
    held: dict[str, list[str]] = {
        "id": [s.id for s in kernel.statements],
        "iname": [*kernel.all_inames],
        "reads": [name for name in kernel.readers if kernel.is_array(name)],
        "writes": [*kernel.writers],
        "tag": sorted({tag for s in kernel.statements for tag in s.tags}),
    }
    field = re.search(r"(\w+):\s*[\w*?.-]*\Z", typed)
    if field is not None:
        return [(name, field[1]) for name in held.get(field[1], [])]
    return [(f"{name}:", "match") for name, names in held.items() if names]


def matcher(running: Any) -> Any:
    """The matcher that offers these names to the completer of a shell (API of version 2)."""
    api: Any = import_module("IPython.core.completer")

    def loopkit_names(context: Any) -> dict[str, Any]:
        lines = context.full_text.split("\n")[: context.cursor_line + 1]
        text = "\n".join([*lines[:-1], lines[-1][: context.cursor_position]])
        fragment, found = completions(text, running.user_ns)
        return {
            "completions": [api.SimpleCompletion(text=name, type=kind) for name, kind in found],
            "matched_fragment": fragment,
            "suppress": bool(found),
        }

    return api.context_matcher(identifier="loopkit_names")(loopkit_names)


_OURS = str(Path(__file__).parents[1]) + os.sep


def traceback_of(error: LoopkitError) -> list[str]:
    """A traceback without the frames of loopkit; with them after ``%xmode Verbose``."""
    running = shell()
    trace = error.__traceback__
    if running is None:
        return format_exception(type(error), error, trace)
    view = running.InteractiveTB
    if view.mode != "Verbose":
        trace = without_ours(trace)
    made: list[str] = view.structured_traceback(type(error), error, trace)
    return made


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of loopkit; the first frame stays."""
    frames: list[TracebackType] = []
    while trace is not None:
        if not frames or not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for frame in reversed(frames):
        kept = TracebackType(kept, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return kept


def show_refusal(result: Any) -> None:
    """After a cell: the picture of what was refused in it, where HTML can be shown.

    Its sentences stand in the traceback above.
    """
    error = result.error_in_exec
    running = shell()
    if not isinstance(error, WitnessError) or error.witness is None or running is None:
        return
    if "text/html" in running.display_formatter.active_types:
        from loopkit._display.answers import case_html

        display: Any = import_module("IPython.display").display
        display({"text/html": html_text(case_html(error))}, raw=True)


def load(running: Any) -> None:
    """Register with a shell: refusals show themselves, names complete inside of strings."""
    if getattr(running, "_loopkit", False):
        return
    running._loopkit = True
    running.events.register("post_run_cell", show_refusal)
    running.Completer.custom_matchers.append(matcher(running))


def unload(running: Any) -> None:
    """Take back what :func:`load` did."""
    if not getattr(running, "_loopkit", False):
        return
    running._loopkit = False
    running.events.unregister("post_run_cell", show_refusal)
    matchers = running.Completer.custom_matchers
    matchers[:] = [m for m in matchers if m.__name__ != "loopkit_names"]
