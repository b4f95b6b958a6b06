"""Which names fit inside of a string that is being typed in a call of a transform.

Nothing of a cell is run but transforms with literal arguments, which change nothing: so a chain
of steps completes the names that its last step would make.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from types import FunctionType, MethodType
from typing import Any

from loopkit import _arguments
from loopkit._arguments import kinds_of
from loopkit._arrays import AddressSpace, ArrayArg
from loopkit._errors import LoopkitError
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
    |(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<comma>,)|(?P<line>\n)|.""",
    re.DOTALL | re.VERBOSE,
)
_CALLED = re.compile(r"[\w)\]]\s*\Z")
_KEYWORD = re.compile(r"\s*(\w+)\s*=(?!=)")
_TARGET = re.compile(
    r"\s*(?:[\w.,\s]+=(?!=)|(?:return|yield|assert|if|elif|while|with)\b|for\s[\w\s,]+\sin\b)?\s*",
    re.ASCII,
)
_FRAGMENT = re.compile(r"[\w.*?$-]*\Z", re.ASCII)
LONGEST = 20_000
"""Characters before the cursor that are looked at."""


@dataclass
class _Bracket:
    """An open bracket: where it stands, where its last item begins, how many came before."""

    at: int
    item: int
    commas: int = 0


@dataclass(frozen=True)
class Place:
    """Where a cursor is: in an argument of a call, inside of a string or not.

    ``callee`` is the text of what is called, ``given`` that of its arguments so far,
    ``argument`` the number or the name of the last of them, ``item`` its text; ``typed`` is what
    a string holds up to the cursor, None outside of strings.
    """

    callee: str
    given: str
    argument: int | str
    item: str
    typed: str | None


def place_of(text: str) -> Place | None:
    """Where the end of a text is; None where that is in no call."""
    stack, typed, end = [_Bracket(-1, 0)], None, len(text)
    for match in _TOKEN.finditer(text):
        if match["quote"]:
            typed, end = text[match.end() :], match.start()
            if len(match["quote"]) == 1 and "\n" in typed:
                return None
            break
        if match["open"]:
            stack.append(_Bracket(match.start(), match.end()))
        elif match["close"] and len(stack) > 1:
            stack.pop()
        elif match["comma"]:
            stack[-1].commas += 1
            stack[-1].item = match.end()
        elif match["line"] and len(stack) == 1:
            stack[0].item = match.end()
    for around, bracket in zip(stack[-2::-1], stack[:0:-1], strict=True):
        if text[bracket.at] == "(" and _CALLED.search(text[: bracket.at]):
            item = text[bracket.item : end]
            keyword = _KEYWORD.match(item)
            start = _TARGET.match(text, around.item, bracket.at)
            callee = text[start.end() if start else around.item : bracket.at]
            argument = keyword[1] if keyword else bracket.commas
            return Place(callee, text[bracket.at + 1 : end], argument, item, typed)
    return None


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
        target = _value(ast.parse(f"({place.callee})", mode="eval").body, names)
        found = list(_fitting(place, target, names))
    except (_CannotTellError, LoopkitError, SyntaxError, ValueError, LookupError, TypeError):
        return "", []
    match = _FRAGMENT.search(place.typed if place.typed is not None else place.item)
    fragment = match[0] if match else ""
    return fragment, [(n, kind) for n, kind in found if n.startswith(fragment)]


def _fitting(place: Place, target: Any, names: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    name = _name(target)
    owner = target.__self__ if isinstance(target, MethodType) else None
    if name in transforms and place.typed is not None:
        kernel, first = owner, 1
        if not isinstance(owner, Kernel):
            kernel, first = _value(_first(place.given), names), 0
        parameters = list(inspect.signature(transforms[name]).parameters)
        at = place.argument
        parameter = at if isinstance(at, str) else parameters[at + first]
        kind = kinds_of(transforms[name]).get(parameter)
        if isinstance(kernel, Kernel) and kind is not None:
            return _names(kernel, parameter, kind, place)
    if isinstance(owner, Kernel) and name in PICTURES and place.typed is not None:
        return _in_picture(owner, inspect.signature(target), place)
    return _sizes(target, owner) if place.typed is None and "=" not in place.item else ()


def _in_picture(
    kernel: Kernel, signature: inspect.Signature, place: Place
) -> list[tuple[str, str]]:
    """The names that fit into a string of a picture's arguments."""
    at = place.argument
    parameter = at if isinstance(at, str) else [*signature.parameters][at]
    if parameter == "statement":
        return [(s.id, "id") for s in kernel.statements]
    if parameter == "array":
        return [(n, "array") for n in (*kernel.arg_by_name, *kernel.temporary_by_name)
                if kernel.is_array(n)]  # fmt: skip
    is_value = place.item.rstrip().endswith(":")  # at={"i": "
    if parameter not in _INAMES_OF_PICTURES or is_value:
        return []
    words = ("order", "thread", "warp", "block") if parameter == "colour" else ()
    return [*((n, "iname") for n in kernel.all_inames), *((w, "colour") for w in words)]


_INAMES_OF_PICTURES = ("at", "colour", "iname", "inames", "tiles")


def _first(given: str) -> ast.expr:
    """The first argument of a call whose last one is not finished."""
    return ast.parse(f"({given.partition(',')[0]})", mode="eval").body


def _sizes(target: Any, owner: Any) -> list[tuple[str, str]]:
    """The names of arguments, of what is called with sizes or arrays."""
    if isinstance(owner, History) and owner:
        owner = owner[0].before
        return [(f"{name}=", "size") for name in owner.sizes]
    kernel = target if isinstance(target, Kernel) else owner
    if not isinstance(kernel, Kernel):
        return []
    if target is kernel or _name(target) == "bind":
        return [(f"{argument.name}=", "argument") for argument in kernel.passed]
    if _name(target) in ("costs", "fix_parameters", "launch_config", "view", *PICTURES):
        return [(f"{name}=", "size") for name in kernel.sizes]
    return []


def _kind(annotated: Any) -> Callable[..., Any]:
    """The kind that stands for an annotation of :mod:`loopkit._arguments`."""
    found: Callable[..., Any] = annotated.__metadata__[0]
    return found


_TAGS = [_kind(a) for a in (_arguments.TagLike, _arguments.TagType)]
_BY_NAME = [_kind(a) for a in (_arguments.TagsByName, _arguments.TagsByAxis)]
_USES = [_kind(a) for a in (_arguments.Use, _arguments.UsedName, _arguments.Invocations)]
_NAMES = [
    *_USES,
    *map(_kind, (_arguments.Name, _arguments.Names, _arguments.MaybeNames, _arguments.Patterns)),
]


def _names(
    kernel: Kernel, parameter: str, kind: Callable[..., Any], place: Place
) -> list[tuple[str, str]]:
    """The names that fit into a string of an argument."""
    typed = place.typed or ""
    is_value = place.item.rstrip().endswith(":")  # {"i": "
    tags = [(spelling, "tag") for spelling in SPELLINGS]
    inames = [(name, "iname") for name in kernel.all_inames]
    if kind in _TAGS:
        return tags
    if kind is _kind(_arguments.TagRequest):
        after = typed.rpartition(",")[2]
        return tags if is_value or ":" in after else inames
    if kind in _BY_NAME:
        return tags if is_value else inames
    if kind is _kind(_arguments.Space):
        return [(space.word, "space") for space in AddressSpace if space is not AddressSpace.AUTO]
    if kind is _kind(_arguments.DTypesByName):
        return [] if is_value else _arrays(kernel, parameter)
    if kind is _kind(_arguments.Within):
        return _matching(kernel, typed)
    if kind is _kind(_arguments.ArrayAxes):
        return [(t.name, "array") for t in kernel.temporaries if t.shape]
    if kind is _kind(_arguments.NamesByName):
        return [] if is_value else inames
    if kind not in _NAMES or parameter.startswith("new_") or parameter == "dim_arg_names":
        return []
    if parameter == "insn_ids":
        return [(s.id, "statement") for s in kernel.statements]
    if parameter in ("old_name", "arg_names"):
        return [(name, "argument") for name in kernel.arg_by_name]
    if "iname" in parameter or parameter == "loop_priority":
        return inames
    found = _arrays(kernel, parameter)
    if "subst" in parameter:
        found = [(rule, "rule") for rule in kernel.rule_by_name]
    if kind not in _USES:
        return found
    kinds = dict(found)
    expressions = [e for s in kernel.statements for e in s.expressions]
    expressions += [r.expression for r in kernel.substitutions]
    uses = frozenset().union(*map(tagged_uses, expressions))
    return [*found, *((f"{n}${t}", kinds[n]) for n, t in sorted(uses) if n in kinds)]


_OF_TEMPORARIES = (
    *("temp_var_names", "only_var_names", "name", "variable", "lhs_name", "array_names"),
)


def _arrays(kernel: Kernel, parameter: str) -> list[tuple[str, str]]:
    arrays = [] if parameter in _OF_TEMPORARIES else [a.name for a in kernel.args]
    if parameter not in ("dtype_dict", *_OF_TEMPORARIES):
        arrays = [a.name for a in kernel.args if isinstance(a, ArrayArg)]
    return [(name, "array") for name in (*arrays, *kernel.temporary_by_name)]


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
