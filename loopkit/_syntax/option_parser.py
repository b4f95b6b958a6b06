"""The options after an instruction: ``{id=w, dep=a:b*, tags=x}``."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from loopkit._compat.gone import IGNORED_OPTIONS
from loopkit._errors import ParseError, SourcePosition, nearest
from loopkit._frozen import dataclass
from loopkit._nodes import Expression
from loopkit._syntax.expression_parser import parse_expression
from loopkit._syntax.items import Options
from loopkit._syntax.tokens import PositionOf, split_outside_brackets

_PATTERN = re.compile(r"[\w*?\[\]!.$-]+\Z")
_NAME = re.compile(r"[A-Za-z_]\w*\Z")
_TAG = re.compile(r"[\w.$-]+\Z")

_NOT_HERE = {
    "dep_query": "name the instructions with wildcards: dep=fetch_*",
    "dup": "call duplicate_inames on the kernel",
}
_KNOWN = ("id", "id_prefix", "dep", "inames", "if", "tags", "atomic")
_ATOMIC = ("update", "init")


def parse_options(text: str, position_of: PositionOf) -> Options:
    """The options in ``text``, which begins with ``{`` and ends after the ``}``."""
    found: dict[str, Any] = {}
    seen: set[str] = set()
    for start, stop in split_outside_brackets(text, 1, len(text.rstrip()) - 1, ","):
        piece = text[start:stop]
        key_text, _, value_text = piece.partition("=")
        key = key_text.strip()
        key_at = start + len(key_text) - len(key_text.lstrip())
        value = value_text.strip()
        value_at = start + len(key_text) + 1 + len(value_text) - len(value_text.lstrip())
        reader = _Value(key, value, value_at, position_of)
        if not key:
            if text[1:].strip(" \t\n\v") == "}":
                break
            reader.at = start
            reader.fail("an option is missing here")
        key = "tags" if key == "tag" else key
        if key in seen:
            why = f"the option '{key}' is given twice"
            raise ParseError(why, position=position_of(key_at, len(key)))
        seen.add(key)
        if not value and key != "atomic" and key in (*_KNOWN, *IGNORED_OPTIONS):
            reader.at = key_at
            reader.fail(f"the option '{key}' needs a value", instead=f"{key}=...")
        if key in ("id", "id_prefix"):
            found[key] = reader.name()
        elif key == "dep":
            what = "id, or pattern for ids"
            found["depends_on"] = reader.names(_PATTERN, what, skip=value.startswith("*"))
        elif key == "inames":
            added = value.startswith("+")
            found["inames"] = frozenset(reader.names(_NAME, "iname", skip=added))
            found["inames_is_final"] = not added
        elif key == "if":
            found["predicates"] = reader.conditions()
        elif key == "tags":
            found["tags"] = reader.names(_TAG, "tag")
        elif key == "atomic":
            if "=" in piece and value not in _ATOMIC:
                instead = "{atomic}, or {atomic=update}; {atomic=init} is a plain assignment"
                reader.fail(f"'{value}' is not a kind of atomic access", instead=instead)
            found["atomic"] = value != "init"
        elif key not in IGNORED_OPTIONS:
            position = position_of(key_at, max(1, len(key)))
            if key in _NOT_HERE:
                why = f"the option '{key}' is not supported"
                raise ParseError(why, position=position, instead=_NOT_HERE[key])
            known = nearest(key, _KNOWN, "options: " + ", ".join(_KNOWN))
            raise ParseError(f"there is no option '{key}'", position=position, instead=known)
    return Options(**found)


@dataclass
class _Value:
    """The value of one option, with its place."""

    key: str
    value: str
    at: int
    position_of: PositionOf

    def fail(self, why: str, *, instead: str = "", offset: int = 0, length: int = 1) -> NoReturn:
        raise ParseError(why, position=self.position_of(self.at + offset, length), instead=instead)

    def name(self) -> str:
        if not _NAME.match(self.value):
            self.fail(
                f"'{self.value}' cannot be an id: it is letters, digits and '_'",
                length=len(self.value),
            )
        return self.value

    def names(self, pattern: re.Pattern[str], what: str, *, skip: bool = False) -> tuple[str, ...]:
        offset = int(skip)
        if not self.value[offset:].strip():
            return ()
        names = []
        for part in self.value[offset:].split(":"):
            name = part.strip()
            if not pattern.match(name):
                self.fail(
                    f"'{name}' is no {what}" if name else f"the {what} is missing here",
                    instead=f"several are separated by ':', as in {self.key}=a:b",
                    offset=offset + len(part) - len(part.lstrip()),
                    length=max(1, len(name)),
                )
            names.append(name)
            offset += len(part) + 1
        return tuple(names)

    def conditions(self) -> tuple[Expression, ...]:
        found = []
        for start, stop in split_outside_brackets(self.value, 0, len(self.value), ":"):

            def position_of(offset: int, length: int, start: int = start) -> SourcePosition:
                return self.position_of(self.at + start + offset, length)

            found.append(
                parse_expression(
                    self.value[start:stop], position_of=position_of, in_instruction=True
                )
            )
        return tuple(found)
