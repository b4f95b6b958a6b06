"""A fast replacement for ``dataclasses.dataclass(frozen=True)``, with the same behaviour.

The standard decorator compiles six functions for each class, which took half of the time of
importing loopkit.  Here comparison, hash, repr and immutability use shared functions, and
``__init__``, which needs code of its own, is compiled when it is first looked up.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False, kw_only=False):
        """``dataclasses.dataclass``, with those of its options that loopkit uses."""

        def make(cls):
            return _made(cls, frozen=frozen, eq=eq, slots=slots, kw_only=kw_only)

        return make if cls is None else make(cls)


def _made(cls: Any, *, frozen: bool, eq: bool, slots: bool, kw_only: bool) -> Any:
    own = set(vars(cls))
    if not cls.__doc__:
        cls.__doc__ = cls.__name__  # or else its signature, which takes a while
    # A class of pymbolic's says that it is frozen, and then those that derive from it must.
    known = [vars(base).get("__dataclass_params__") for base in cls.__mro__[1:]]
    foreign = any(parameters is not None and parameters.frozen for parameters in known)
    made = dataclasses.dataclass(
        init=False, repr=False, eq=False, frozen=foreign, slots=slots, kw_only=kw_only
    )
    cls = made(cls)
    fields = dataclasses.fields(cls)
    added: dict[str, Any] = {"__init__": _Init(frozen), "__repr__": _repr}
    if eq:
        compared = _values([f.name for f in fields if f.compare])
        added["__eq__"] = _equality(compared)
        added["__hash__"] = _hash(compared) if frozen else None
    if frozen:
        added |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
        if slots:
            added |= {"__getstate__": _state, "__setstate__": _set_state}
    if "__eq__" in own and "__hash__" in own and cls.__hash__ is None:
        own.remove("__hash__")  # it went with the class's own comparison
    for name, value in added.items():
        if name not in own:
            setattr(cls, name, value)
    return cls


class _Init:
    """A descriptor that compiles a class's ``__init__`` when it is first looked up."""

    def __init__(self, frozen: bool) -> None:
        self.frozen = frozen
        self.made: Any = None

    def __get__(self, instance: Any, owner: type) -> Any:
        # Another thread may have replaced it since it was looked up, and made it then.
        for cls in owner.__mro__:
            if vars(cls).get("__init__") is self:
                self.made = self.made or _compiled_init(cls, self.frozen)
                setattr(cls, "__init__", self.made)  # noqa: B010
        return self.made if instance is None else self.made.__get__(instance)


class _Default:
    """In a signature: what a factory makes."""

    def __repr__(self) -> str:
        return "<factory>"


_DEFAULT = _Default()


def _compiled_init(cls: Any, frozen: bool) -> Any:
    """``__init__`` that sets all fields, and calls ``__post_init__`` where there is one."""
    known: dict[str, Any] = {
        "__name__": cls.__module__,
        "_set": object.__setattr__,
        "_default": _DEFAULT,
    }
    places: list[str] = []
    named: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(cls):
        name = value = field.name
        parameter = name
        if field.default is not dataclasses.MISSING:
            known[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
        elif field.default_factory is not dataclasses.MISSING:
            known[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_default"
            value = f"_make_{name}() if {name} is _default else {name}"
        (named if field.kw_only else places).append(parameter)
        body.append(f"_set(self, {name!r}, {value})" if frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *places, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), known)
    init = known["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__annotations__ = {f.name: f.type for f in dataclasses.fields(cls)} | {"return": None}
    return init


def _values(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Some attributes of a value."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda value: ()
    get = attrgetter(*names)
    return lambda value: (get(value),)


def _equality(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], bool]:
    def __eq__(self: Any, other: Any) -> bool:
        if other.__class__ is self.__class__:
            return compared(self) == compared(other)
        return NotImplemented

    return __eq__


def _hash(compared: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any], int]:
    def __hash__(self: Any) -> int:
        return hash(compared(self))

    return __hash__


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({', '.join(shown)})"


def _is_frozen(value: Any, name: str) -> bool:
    """Whether an attribute of a frozen value is a field, or the value has nothing else."""
    fields = "__dataclass_fields__"
    return fields in vars(type(value)) or name in getattr(type(value), fields)


def _refuse_to_set(self: Any, name: str, value: Any) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_to_delete(self: Any, name: str) -> None:
    if _is_frozen(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
