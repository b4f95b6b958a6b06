"""What a case is: a call as text, and the function that makes it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Call:
    """One call of the public interface; ``text`` says which, ``run`` makes it."""

    text: str
    run: Callable[[], Any]


Draw = Callable[[random.Random], Call]


def shown(value: object) -> str:
    """A value for people, whatever its ``repr`` does."""
    try:
        text = repr(value)
    except Exception:
        text = f"<{type(value).__name__} whose repr fails>"
    text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= 400 else f"{text[:200]} ...{len(text) - 400} more... {text[-200:]}"


def spelled(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """A call as text."""
    parts = [shown(a) for a in args] + [f"{k}={shown(v)}" for k, v in kwargs.items()]
    return f"{name}({', '.join(parts)})"
