"""The transforms by name, used to replay histories and to suggest steps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any

from loopkit._compat.gone import not_there
from loopkit._errors import check_known
from loopkit._kernel import Kernel
from loopkit._spelling import check_identifier


def later(space: dict[str, Any], modules: Mapping[str, str]) -> Callable[[str], Any]:
    """``__getattr__`` of the module whose names are ``space``: imports from one of ``modules``."""

    def find(name: str) -> Any:
        if name not in modules:
            raise not_there(f"module '{space['__name__']}'", name, space.get("__all__", modules))
        found = space[name] = getattr(import_module(modules[name]), name)
        return found

    return find


def homes_of(package: str, files: Mapping[str, str]) -> dict[str, str]:
    """The module of each name, from the names, as words, that each file of a package has."""
    return {n: f"{package}.{file}" for file, names in files.items() for n in names.split()}


homes: dict[str, str] = {}
"""The module of each transform."""


class _Transforms(Mapping[str, Callable[..., Kernel]]):
    """A mapping of all transforms, which imports the module of each on first use."""

    def __getitem__(self, name: str) -> Callable[..., Kernel]:
        found: Callable[..., Kernel] = getattr(import_module(homes[name]), name)
        return found

    def __contains__(self, name: object) -> bool:
        return name in homes

    def __iter__(self) -> Iterator[str]:
        return iter(homes)

    def __len__(self) -> int:
        return len(homes)


transforms = _Transforms()


def transform_named(name: str) -> Callable[..., Kernel]:
    """The transform called ``name``."""
    check_known("transform", [check_identifier(name, "the name of a transform")], transforms)
    return transforms[name]
