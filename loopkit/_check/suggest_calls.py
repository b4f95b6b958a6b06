"""Calls of transforms as values: changed, written down, read back."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loopkit._arguments import names_in
from loopkit._history import Step, as_literal
from loopkit._registry import transform_named
from loopkit._tags import InstructionParallel, LocalAuto, Tag, parse_tag

# {{{ calls


def call(transform: str, *args: Any, **options: Any) -> Step:
    """A step, as one writes a call."""
    bound = _signature(transform).bind(None, *args, **options)
    return Step(transform, tuple(list(bound.arguments.items())[1:]))


def read_call(text: str) -> Step:
    """The step that ``"assume_injective('p')"`` calls."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        raise ValueError(f"'{text}' is no call")
    options = {k.arg: ast.literal_eval(k.value) for k in node.keywords if k.arg}
    return call(node.func.id, *(ast.literal_eval(a) for a in node.args), **options)


def text_of_calls(steps: Iterable[Step]) -> str:
    """Steps as method calls to copy, ``.split_iname('i', 4).tag_inames('j:l.0')``."""
    return "".join(_call_text(step) for step in steps)


_POSITIONAL = {"sweep_inames", "buffer_inames", "only_var_names"}
"""Arguments with defaults that are written without their names nevertheless."""


def _call_text(step: Step) -> str:
    given = dict(step.arguments)
    parts: list[str] = []
    positional = True
    for parameter in list(_signature(step.transform).parameters.values())[1:]:
        if parameter.name not in given:
            positional = False
            continue
        value = given[parameter.name]
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            parts += [f"{name}={as_literal(one)}" for name, one in value.items()]
            continue
        required = parameter.default is inspect.Parameter.empty
        positional = positional and (required or parameter.name in _POSITIONAL)
        positional = positional and parameter.kind is not inspect.Parameter.KEYWORD_ONLY
        parts.append(as_literal(value) if positional else f"{parameter.name}={as_literal(value)}")
    return f".{step.transform}({', '.join(parts)})"


def _signature(transform: str) -> inspect.Signature:
    return inspect.signature(inspect.unwrap(transform_named(transform)))


def with_arguments(step: Step, **changes: Any) -> Step:
    """The step with arguments set."""
    given = {**dict(step.arguments), **changes}
    order = [p for p in _signature(step.transform).parameters if p in given]
    return replace(step, arguments=tuple((name, given[name]) for name in order))


def without(step: Step, *names: str) -> Step:
    """The step without some of its arguments."""
    return replace(step, arguments=tuple((n, v) for n, v in step.arguments if n not in names))


def requires(step: Step, name: str) -> bool:
    """Whether the transform cannot be called without an argument."""
    return _signature(step.transform).parameters[name].default is inspect.Parameter.empty


def accepts(transform: str, name: str) -> bool:
    """Whether a transform has an argument of this name."""
    return name in _signature(transform).parameters


def renamed(step: Step, rename: Callable[[str], str]) -> Step:
    """The step with every name in its texts replaced."""
    return replace(step, arguments=tuple((n, _renamed(v, rename)) for n, v in step.arguments))


def _renamed(value: Any, rename: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return re.sub(r"[A-Za-z_]\w*", lambda found: rename(found[0]), value)
    if isinstance(value, (tuple, list)):
        return type(value)(_renamed(v, rename) for v in value)
    if isinstance(value, Mapping):
        return {_renamed(k, rename): _renamed(v, rename) for k, v in value.items()}
    return value


# }}}

# {{{ lists of names


def like(given: Any, chosen: Sequence[str]) -> Any:
    """Names in the form in which the person gave them: a text or a sequence."""
    return ", ".join(chosen) if isinstance(given, str) else list(chosen)


def quoted(chosen: Iterable[str]) -> str:
    """``'i', 'j' and 'k'``."""
    parts = [f"'{name}'" for name in chosen]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# }}}

# {{{ tags

Slot = tuple[str, str, str]
"""Where a step gives a tag: the argument, the iname, and the tag."""


def tag_slots(step: Step) -> list[Slot]:
    """The tags that a step gives which put iterations side by side."""
    found: list[Slot] = []
    for name, value in step.arguments:
        if name == "iname_to_tag":
            found += [(name, iname, tag) for iname, tag in _tag_pairs(value)]
        elif name in ("tags", "storage_axis_to_tag") and isinstance(value, Mapping):
            found += [(name, str(iname), str(tag)) for iname, tag in value.items()]
        elif name in ("outer_tag", "inner_tag", "tag", "default_tag") and value is not None:
            found.append((name, _tagged(step, name), str(value)))
    if accepts(step.transform, "default_tag") and "default_tag" not in dict(step.arguments):
        found.append(("default_tag", _tagged(step, "default_tag"), "l.auto"))
    return [slot for slot in found if _is_side_by_side(slot[2])]


def _is_side_by_side(tag: str) -> bool:
    try:
        parsed = parse_tag(tag)
    except Exception:
        return False
    if parsed is None:
        return False
    return parsed.is_parallel or isinstance(parsed, (InstructionParallel, LocalAuto))


def _tagged(step: Step, name: str) -> str:
    """The iname that an argument such as ``outer_tag`` is about."""
    given = dict(step.arguments)
    base = given.get("split_iname")
    if name == "outer_tag":
        return str(given.get("outer_iname") or f"{base}_outer")
    if name == "inner_tag":
        return str(given.get("inner_iname") or f"{base}_inner")
    if name == "tag":
        return str(given.get("new_iname") or "_and_".join(names_in(given.get("inames", ()))))
    return "the copy's loops"


def _tag_pairs(request: Any) -> list[tuple[str, str]]:
    if isinstance(request, Mapping):
        return [(str(iname), _tag_text(tag)) for iname, tag in request.items()]
    pairs = []
    for item in names_in(request):
        iname, tag = item.split(":", 1) if isinstance(item, str) else item
        pairs.append((iname.strip(), _tag_text(tag)))
    return pairs


def _tag_text(tag: str | Tag | None) -> str:
    return "for" if tag is None else str(tag).strip()


def retagged(step: Step, changes: Mapping[Slot, str | None]) -> Step | None:
    """The step with tags changed, or left out where None; None if nothing of it is left."""
    given = dict(step.arguments)
    for argument in dict.fromkeys(slot[0] for slot in changes):
        mine = {s[1]: t for s, t in changes.items() if s[0] == argument}
        value = given.get(argument)
        if argument == "iname_to_tag":
            pairs = [(i, mine.get(i, t)) for i, t in _tag_pairs(value)]
            kept = {i: t for i, t in pairs if t is not None}
            if not kept:
                return None
            text = ", ".join(f"{i}:{t}" for i, t in kept.items())
            given[argument] = text if isinstance(value, str) else kept
        elif argument in ("tags", "storage_axis_to_tag"):
            pairs = [(i, mine.get(str(i), t)) for i, t in given[argument].items()]
            given[argument] = {i: t for i, t in pairs if t is not None}
            if not given[argument]:
                del given[argument]
        elif argument == "default_tag":
            given[argument] = next(iter(mine.values()))
        else:
            tag = next(iter(mine.values()))
            given[argument] = tag
            if tag is None:
                del given[argument]
    return replace(step, arguments=tuple(given.items()))


# }}}
