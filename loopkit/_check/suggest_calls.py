"""Calls of transforms as values, and changes of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from loopkit._arguments import names_in, tag_pairs
from loopkit._errors import UnknownNameError
from loopkit._history import Step
from loopkit._registry import transform_named
from loopkit._tags import InstructionParallel, LocalAuto, Tag, parse_tag


def call(transform: str, *args: Any, **options: Any) -> Step:
    """A step, as one writes a call."""
    signature = _signature(transform)
    given = list(signature.bind(None, *args, **options).arguments.items())[1:]
    parameters = list(signature.parameters.values())[1:]
    required = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD and p.default is p.empty]
    return Step(transform, tuple(given), required=len(required))


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


def renamed(step: Step, names: Mapping[str, str]) -> Step:
    """The step with names replaced in the texts of its arguments."""
    return replace(step, arguments=tuple((n, with_names(v, names)) for n, v in step.arguments))


def with_names(value: Any, names: Mapping[str, str]) -> Any:
    """An argument with names replaced in all its texts."""
    if isinstance(value, str):
        return re.sub(r"[A-Za-z_]\w*", lambda found: names.get(found[0], found[0]), value)
    if isinstance(value, (tuple, list)):
        return type(value)(with_names(v, names) for v in value)
    if isinstance(value, Mapping):
        return {with_names(k, names): with_names(v, names) for k, v in value.items()}
    return value


def like(given: Any, chosen: Sequence[str]) -> Any:
    """Names in the form in which the person gave them: a text or a sequence."""
    return ", ".join(chosen) if isinstance(given, str) else list(chosen)


def quoted(chosen: Iterable[str]) -> str:
    """``'i', 'j' and 'k'``."""
    parts = [f"'{name}'" for name in chosen]
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


Slot = tuple[str, str, str]
"""Where a step gives a tag: the argument, the iname, and the tag."""


def tag_slots(step: Step) -> list[Slot]:
    """The tags that a step gives which put iterations side by side."""
    found: list[Slot] = []
    for name, value in step.arguments:
        if name == "iname_to_tag":
            found += [(name, iname, _text(tag)) for iname, tag in tag_pairs(value)]
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
    except UnknownNameError:
        return False
    is_split = isinstance(parsed, (InstructionParallel, LocalAuto))
    return parsed is not None and (parsed.is_parallel or is_split)


def _tagged(step: Step, name: str) -> str:
    """The iname that an argument such as ``outer_tag`` is about."""
    given = dict(step.arguments)
    if name in ("outer_tag", "inner_tag"):
        part = name.removesuffix("_tag")
        return str(given.get(f"{part}_iname") or f"{given.get('split_iname')}_{part}")
    if name == "tag":
        return str(given.get("new_iname") or "_and_".join(names_in(given.get("inames", ()))))
    return "the copy's loops"


def _text(tag: str | Tag | None) -> str:
    return "for" if tag is None else str(tag)


def retagged(step: Step, changes: Mapping[Slot, str | None]) -> Step | None:
    """The step with tags changed, or left out where None; None if nothing of it is left."""
    given = dict(step.arguments)
    for argument in dict.fromkeys(slot[0] for slot in changes):
        mine = {s[1]: t for s, t in changes.items() if s[0] == argument}
        value = given.get(argument)
        new: Any = next(iter(mine.values()))
        if argument == "iname_to_tag":
            pairs = [(i, mine.get(i, _text(t))) for i, t in tag_pairs(value)]
            new = {i: t for i, t in pairs if t is not None}
            if not new:
                return None
            if isinstance(value, str):
                new = ", ".join(f"{i}:{t}" for i, t in new.items())
        elif argument in ("tags", "storage_axis_to_tag"):
            pairs = [(i, mine.get(str(i), t)) for i, t in given[argument].items()]
            new = {i: t for i, t in pairs if t is not None}
        given[argument] = new
        if not new and argument != "default_tag":
            del given[argument]
    return replace(step, arguments=tuple(given.items()))
