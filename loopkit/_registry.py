"""The transforms by name, for histories that are replayed and steps that are suggested."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from loopkit._errors import UnknownNameError
from loopkit._kernel import Kernel
from loopkit._spelling import check_identifier

_transforms: dict[str, Callable[..., Kernel]] = {}

transforms: Mapping[str, Callable[..., Kernel]] = MappingProxyType(_transforms)
"""Every transform that there is."""


def register(function: Callable[..., Kernel]) -> None:
    """Let a transform be found under its name."""
    _transforms[function.__name__] = function


def transform_named(name: str) -> Callable[..., Kernel]:
    """The transform called ``name``."""
    if check_identifier(name, "the name of a transform") not in _transforms:
        raise UnknownNameError("transform", name, _transforms)
    return _transforms[name]
