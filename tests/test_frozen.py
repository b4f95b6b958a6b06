"""loopkit's quick dataclasses behave as the standard library's do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from dataclasses import FrozenInstanceError, field, replace
from typing import Any, ClassVar

import pytest
from seams import frozen as _frozen


def made(dataclass: Any) -> dict[str, Any]:
    """The same classes by either decorator."""

    @dataclass(frozen=True)
    class Point:
        """A point."""

        x: int
        y: int = 2
        note: str = field(default="", compare=False, repr=False)
        count: ClassVar[int] = 0

        def __post_init__(self) -> None:
            assert self.x is not None

    @dataclass(frozen=True)
    class Deep(Point):
        z: tuple[int, ...] = field(default_factory=tuple)

    @dataclass(frozen=True, eq=False)
    class Alone:
        x: int

    @dataclass(frozen=True, slots=True)
    class Slots:
        x: int
        y: Any = None

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Named:
        x: int
        y: int = 1

    @dataclass
    class Open:
        x: int
        more: list[int] = field(default_factory=list)

    @dataclass(frozen=True)
    class Empty:
        pass

    @dataclass(frozen=True)
    class Own:
        x: int

        def __repr__(self) -> str:
            return "own"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        def __hash__(self) -> int:
            return 7

    found = locals()
    found.pop("dataclass")
    return found


OURS, THEIRS = made(_frozen.dataclass), made(dataclasses.dataclass)


def outcome(action: Any) -> Any:
    """What comes of an action: a value, or the type of an error."""
    try:
        value = action()
    except Exception as error:
        return type(error)
    return repr(value).replace("<locals>.", "").rpartition("made.")[2]


ACTIONS: list[tuple[str, Any]] = [
    ("Point", lambda c: c(1)),
    ("Point", lambda c: c(1, y=3, note="n")),
    ("Point", lambda c: c()),
    ("Point", lambda c: c(None)),
    ("Point", lambda c: c(1, 2, "a") == c(1, 2, "b")),
    ("Point", lambda c: hash(c(1, 2, "a")) == hash(c(1, 2, "b")) == hash((1, 2))),
    ("Point", lambda c: c(1) == (1, 2)),
    ("Point", lambda c: setattr(c(1), "x", 2)),
    ("Point", lambda c: delattr(c(1), "x")),
    ("Point", lambda c: setattr(c(1), "other", 2)),
    ("Point", lambda c: setattr(type("Sub", (c,), {})(1), "other", 2)),
    ("Point", lambda c: setattr(type("Sub", (c,), {})(1), "x", 2)),
    ("Point", lambda c: replace(c(1), y=5)),
    ("Point", lambda c: replace(c(1), w=5)),
    ("Point", lambda c: [f.name for f in dataclasses.fields(c)]),
    ("Point", lambda c: c.__match_args__),
    ("Point", lambda c: list(inspect.signature(c).parameters)),
    ("Point", lambda c: inspect.signature(c).parameters["x"].annotation),
    ("Point", lambda c: copy.copy(c(1, 3))),
    ("Point", lambda c: dataclasses.asdict(c(1))),
    ("Deep", lambda c: c(1, z=(4,))),
    ("Deep", lambda c: c(1).z),
    ("Deep", lambda c: c(1) == c(1, 2, "other")),
    ("Alone", lambda c: c(1) == c(1)),
    ("Alone", lambda c: c(1)),
    ("Slots", lambda c: c(1, (2, 3))),
    ("Slots", lambda c: c(1).__dict__),
    ("Slots", lambda c: setattr(c(1), "x", 2)),
    ("Slots", lambda c: copy.copy(c(1, 5))),
    ("Slots", lambda c: {c(1): 1}[c(1)]),
    ("Named", lambda c: c(x=1)),
    ("Named", lambda c: c(1)),
    ("Open", lambda c: c(1)),
    ("Open", lambda c: c(1).more is c(1).more),
    ("Open", lambda c: hash(c(1))),
    ("Open", lambda c: setattr(c(1), "x", 2)),
    ("Open", lambda c: c(1) == c(1, [])),
    ("Empty", lambda c: (c(), c() == c(), hash(c()))),
    ("Own", lambda c: (c(1), c(1) == c(2), hash(c(1)))),
]


@pytest.mark.parametrize("number", range(len(ACTIONS)))
def test_what_comes_of_it_is_the_same(number: int) -> None:
    name, action = ACTIONS[number]
    ours, theirs = (outcome(lambda c=c: action(c[name])) for c in (OURS, THEIRS))
    assert ours == theirs


@_frozen.dataclass(frozen=True)
class Plain:
    """A class that pickle finds."""

    x: int
    y: tuple[int, ...] = ()


@_frozen.dataclass(frozen=True, slots=True)
class Slotted:
    """The same with slots."""

    x: int
    y: tuple[int, ...] = ()


@pytest.mark.parametrize("kind", [Plain, Slotted])
def test_values_are_pickled_before_any_other_is_made(kind: Any) -> None:
    state = object.__new__(kind)
    object.__setattr__(state, "x", 1)
    object.__setattr__(state, "y", (2,))
    copied = pickle.loads(pickle.dumps(state))
    assert copied == state and hash(copied) == hash(state) and copied == kind(1, (2,))
    with pytest.raises(FrozenInstanceError):
        copied.x = 3


def test_a_value_that_holds_itself_is_printed() -> None:
    value = OURS["Open"](1)
    value.more.append(value)
    assert repr(value).endswith("Open(x=1, more=[...])")


def test_an_init_that_was_looked_up_before_it_was_made_may_be_asked_again() -> None:
    @_frozen.dataclass(frozen=True)
    class Late:
        x: int

    waiting = vars(Late)["__init__"]
    assert Late(1).x == 1
    waiting.__get__(None, Late)(made := object.__new__(Late), 2)
    assert made.x == 2
