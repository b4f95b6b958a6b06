"""Values that belong to a frozen object and are computed when somebody first asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as cached_property
else:

    class cached_property:
        """``functools.cached_property`` as it is from Python 3.12 on: without a lock.

        Until then one lock serves all objects of a class, held while a value is computed:
        two threads that compute values which need each other wait for ever.  Here both may
        compute, and all take the value that was there first.
        """

        def __init__(self, function: Callable[[Any], Any]) -> None:
            self.function = function
            self.name = function.__name__
            self.__doc__ = function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values = instance.__dict__
            if self.name in values:
                return values[self.name]
            return values.setdefault(self.name, self.function(instance))
