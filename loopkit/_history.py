"""The history of a kernel as data: a list of transform steps that prints as a script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from loopkit._errors import InvalidArgumentError, UnknownNameError
from loopkit._frozen import dataclass
from loopkit._spelling import check_identifier, shown

if TYPE_CHECKING:
    from loopkit._kernel import Kernel
    from loopkit._steps import HistoryMethods, StepMethods
else:
    HistoryMethods = StepMethods = object


@dataclass(frozen=True)
class Step(StepMethods):
    """One transform: its name, its arguments, and what is known of its legality.

    ``verdict`` is ``"proven"`` where the checker proved that the step changes
    no result, ``"assumed"`` where the step itself is a promise about sizes or
    data, and ``"unchecked"`` where the proof was skipped.  ``seconds`` is how
    long the step took, its proof included; ``required`` of the arguments, the
    first ones, need no name in a call.  ``kernels`` are those before and after it,
    the latter without the step in its history; they are neither compared nor stored.
    """

    transform: str
    arguments: tuple[tuple[str, Any], ...]
    verdict: str = "proven"
    seconds: float = field(default=0.0, compare=False)
    required: int = field(default=0, compare=False)
    kernels: tuple[Kernel, Kernel] | None = field(default=None, compare=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "kernels": None}

    @property
    def before(self) -> Kernel:
        """The kernel that the step was applied to."""
        return self._opened()[0]

    @property
    def kernel(self) -> Kernel:
        """The kernel that the step made, this step the last of its history."""
        made = self._opened()[1]
        return made.recorded(History((*made.history, self)), made.lineage)

    def _opened(self) -> tuple[Kernel, Kernel]:
        if self.kernels is None:
            raise InvalidArgumentError(
                f"the step {self.call()[1:]} was stored without its kernels",
                instead="lk.replay(kernel, steps).history has them again",
            )
        return self.kernels

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


class History(tuple[Step, ...], HistoryMethods):
    """Steps in order; shows for each what was done, what is known of it, and what it changed."""

    __slots__ = ()

    @overload
    def __getitem__(self, key: SupportsIndex) -> Step: ...
    @overload
    def __getitem__(self, key: slice) -> History: ...
    def __getitem__(self, key: SupportsIndex | slice) -> Step | History:
        found = super().__getitem__(key)
        return History(found) if isinstance(found, tuple) else found


def as_literal(value: Any) -> str:
    """A value as Python source."""
    return repr(_plain(value))


def _plain(value: Any) -> Any:
    """``value`` in plain Python data where that says the same."""
    if isinstance(value, (tuple, list)):
        return type(value)(_plain(v) for v in value)
    if isinstance(value, (frozenset, set)):
        return sorted((_plain(v) for v in value), key=repr)
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items()}
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    try:
        name = getattr(value, "name", None)
        return name if isinstance(name, str) else str(value)
    except Exception:  # a value from outside, in the message that refuses it
        return shown(value)


def _jsonable(value: Any) -> Any:
    value = _plain(value)
    if isinstance(value, (tuple, list)):
        return [_jsonable(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _jsonable(v) for k, v in value.items()}
    return value


VERDICTS = ("proven", "assumed", "unchecked")


def step_from_json(data: Mapping[str, Any]) -> Step:
    """The step that :meth:`Step.to_json` wrote, with every field checked.

    The recorded verdict is not trusted: :func:`loopkit.replay` proves each step again, except those
    recorded as ``"unchecked"``, which stay so in the new history.
    """
    fields = _mapping("a step", data)
    unknown = [f for f in fields if f not in _FIELDS]
    if unknown:
        raise UnknownNameError("field of a step", unknown[0], _FIELDS)
    for needed in ("transform", "arguments"):
        if needed not in fields:
            raise InvalidArgumentError(f"a step has no '{needed}'", instead=f"it has {_FIELDS}")
    verdict = fields.get("verdict", "proven")
    if verdict not in VERDICTS:
        raise InvalidArgumentError(
            f"the verdict of a step is {' or '.join(map(repr, VERDICTS))}, not {shown(verdict)}"
        )
    seconds, required = fields.get("seconds", 0.0), fields.get("required", 0)
    if type(seconds) not in (int, float) or not 0 <= seconds < float("inf"):
        raise InvalidArgumentError(f"the seconds of a step are a number, not {shown(seconds)}")
    if type(required) is not int or not 0 <= required < 100:
        raise InvalidArgumentError(f"'required' counts arguments, and is not {shown(required)}")
    arguments = _mapping("the arguments of a step", fields["arguments"])
    name = check_identifier(fields["transform"], "the name of a transform")
    return Step(name, tuple(arguments.items()), verdict, float(seconds), required)


_FIELDS = ("transform", "arguments", "verdict", "seconds", "required")


def _mapping(what: str, data: object) -> dict[str, Any]:
    """A mapping whose keys are names."""
    if not isinstance(data, Mapping):
        raise InvalidArgumentError(f"{what} is a mapping of names to values, not {shown(data)}")
    return {check_identifier(key, f"a name in {what}"): value for key, value in data.items()}


def script(steps: tuple[Step, ...], name: str = "knl") -> str:
    """Python source that applies the steps to a kernel called ``name``."""
    lines = [f"{name} = ({name}"] + [f"    {step.call()}" for step in steps]
    return "\n".join(lines) + ")\n" if steps else ""


def show_history(steps: tuple[Step, ...]) -> str:
    """One line per step: what is known of it, how long it took, what was done."""
    return "\n".join(
        f"{i:>3}  {s.verdict:<9} {1e3 * s.seconds:>7.1f} ms  {s.call()[1:]}"
        for i, s in enumerate(steps)
    )
