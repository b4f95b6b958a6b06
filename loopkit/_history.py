"""What was done to a kernel, as data: a list of steps that prints as a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Step:
    """One transform: its name, its arguments, and what is known of its legality.

    ``verdict`` is ``"proven"`` where the checker proved that the step changes
    no result, ``"assumed"`` where the step itself is a promise about sizes or
    data, and ``"unchecked"`` where the proof was skipped.  ``seconds`` is how
    long the step took, its proof included; ``required`` of the arguments, the
    first ones, need no name in a call.
    """

    transform: str
    arguments: tuple[tuple[str, Any], ...]
    verdict: str = "proven"
    seconds: float = field(default=0.0, compare=False)
    required: int = field(default=0, compare=False)

    def call(self) -> str:
        """The step as a method call, ``.split_iname('i', 16, inner_tag='l.0')``."""
        shown = [
            as_literal(value) if number < self.required else f"{name}={as_literal(value)}"
            for number, (name, value) in enumerate(self.arguments)
        ]
        return f".{self.transform}({', '.join(shown)})"

    def to_json(self) -> Mapping[str, Any]:
        """A value that :mod:`json` writes and :func:`step_from_json` reads back."""
        return {
            "transform": self.transform,
            "arguments": {name: _jsonable(value) for name, value in self.arguments},
            "verdict": self.verdict,
            "seconds": self.seconds,
            "required": self.required,
        }


class History(tuple[Step, ...]):
    """Steps in order; ``print`` shows one line each: what was done, and what is known of it."""

    __slots__ = ()

    def __str__(self) -> str:
        return show_history(self) if self else "no step so far"


def as_literal(value: Any) -> str:
    """A value as Python source."""
    return repr(_plain(value))


def _plain(value: Any) -> Any:
    """``value`` in plain Python data where that says the same."""
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(v) for v in value)
    if isinstance(value, (frozenset, set)):
        return sorted(_plain(v) for v in value)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return value.name if hasattr(value, "name") else str(value)


def _jsonable(value: Any) -> Any:
    value = _plain(value)
    if isinstance(value, tuple):
        return [_jsonable(v) for v in value]
    if isinstance(value, list):
        return [_jsonable(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _jsonable(v) for k, v in value.items()}
    return value


def step_from_json(data: Mapping[str, Any]) -> Step:
    """The step that :meth:`Step.to_json` wrote."""
    return Step(
        data["transform"],
        tuple(data["arguments"].items()),
        data.get("verdict", "proven"),
        data.get("seconds", 0.0),
        data.get("required", 0),
    )


def script(steps: tuple[Step, ...], name: str = "knl") -> str:
    """Python source that applies the steps to a kernel called ``name``."""
    lines = [f"{name} = ({name}"] + [f"    {step.call()}" for step in steps]
    return "\n".join(lines) + ")\n" if steps else ""


def show_history(steps: tuple[Step, ...]) -> str:
    """One line per step: what was done, what is known of it, how long it took."""
    return "\n".join(
        f"{i:>3}  {s.call()[1:]:<80} {s.verdict:<10} {1e3 * s.seconds:.1f} ms"
        for i, s in enumerate(steps, 1)
    )
