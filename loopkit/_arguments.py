"""Checks of the arguments of public functions, one check for each sort of value.

A check is a function ``(what, value) -> value``, where ``what`` is the name of the argument.  It
returns the value in its normal form, or raises :class:`InvalidArgumentError` with a text that says
which values are allowed.  A value of unknown type may be hostile: a check looks at its type only,
and calls none of its methods, until the type is known to be harmless.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from types import NoneType
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

import islpy as isl
import numpy as np
import pymbolic.primitives as prim

from loopkit._arrays import AddressSpace, GivenStride, Nested, Strided
from loopkit._errors import InvalidArgumentError
from loopkit._expression import index_tuple, with_numbers
from loopkit._kernel import Kernel
from loopkit._match import Match
from loopkit._nodes import is_integer as is_integer
from loopkit._promotion import as_dtype
from loopkit._spelling import check_expression, check_name, is_name, shown
from loopkit._syntax.expression_parser import parse_expression
from loopkit._tags import Tag

Kind = Callable[[str, Any], Any]

LONGEST = 1 << 16
"""Characters that a text may have, and items that a list of names may have."""
LONGEST_PROGRAM = 1 << 20
"""Characters that instructions may have."""


def unfit(what: str, takes: str, value: object, instead: str = "") -> InvalidArgumentError:
    """The error of an argument that is not what it should be."""
    return InvalidArgumentError(f"{what} is {takes}, not {shown(value)}", instead=instead)


def checked_kernel(value: Any, taker: str = "this", instead: str = "") -> Kernel:
    """A kernel; raises :class:`~loopkit.InvalidArgumentError` for what is none."""
    if not isinstance(value, Kernel):
        raise InvalidArgumentError(f"{taker} takes a kernel, not {shown(value)}", instead=instead)
    return value


def is_text(value: object, longest: int = LONGEST) -> bool:
    """Whether a value is text that can be printed: no half of a surrogate pair, not too long."""
    if not isinstance(value, str) or len(value) > longest:
        return False
    return not any("\ud800" <= letter <= "\udfff" or letter == "\0" for letter in value)


def text(what: str, value: Any, longest: int = LONGEST) -> str:
    """Text."""
    if isinstance(value, str) and len(value) > longest:
        raise InvalidArgumentError(
            f"{what} has {len(value):,} characters", instead=f"at most {longest:,} are possible"
        )
    if not is_text(value, longest):
        raise unfit(what, "text", value)
    return str(value)


def program(what: str, value: Any) -> str:
    """The text of instructions, which may be long."""
    return text(what, value, LONGEST_PROGRAM)


def name(what: str, value: Any) -> str:
    """The name of something that exists."""
    if not is_name(value):
        raise unfit(what, "a name", value)
    return str(value)


def used_name(what: str, value: Any) -> str:
    """The name of something that exists, perhaps with the tag of the uses that are meant."""
    of, mark, tag = value.partition("$") if isinstance(value, str) else (value, "", "")
    if not is_name(of) or (mark and not is_name(tag)):
        raise unfit(what, "a name, or one with a tag such as 'x$near'", value)
    return str(value)


def needed_name(what: str, value: Any) -> str:
    """The name of something new."""
    return check_name(value, what)


def flag(what: str, value: Any) -> bool:
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise unfit(what, "True or False", value)
    return bool(value)


def integer(what: str, value: Any) -> int:
    """Any integer."""
    if not is_integer(value):
        raise InvalidArgumentError(
            f"{what} must be an integer, not {shown(value)}",
            instead="sizes are not constants: fix_parameters makes them so"
            if isinstance(value, (str, prim.ExpressionNode))
            else "",
        )
    return int(value)


MOST = 2**62
"""The largest count of anything."""


def at_least(least: int) -> Kind:
    """Integers from ``least``, in the range that addresses have."""

    def count(what: str, value: Any) -> int:
        found = integer(what, value)
        if found < least:
            raise InvalidArgumentError(f"{what} must be at least {least}, not {shown(found)}")
        if found > MOST:
            raise InvalidArgumentError(f"{what} must be at most 2**62, not {shown(found)}")
        return found

    return count


def _value_or_text(of: tuple[type, ...], takes: str, instead: str = "") -> Kind:
    """Values of some types, or text that spells one."""

    def value_or_text(what: str, value: Any) -> Any:
        if isinstance(value, of):
            return value
        if not is_text(value):
            raise unfit(what, takes, value, instead)
        return str(value)

    return value_or_text


tag = _value_or_text((Tag, NoneType), "a tag such as 'l.0', 'g.1' or 'unr'")
within = _value_or_text((Match, NoneType), "a match string such as 'id:w* and reads:a'")
address_space = _value_or_text(
    (AddressSpace, NoneType), "an address space such as 'private' or 'shared'"
)
dim_tag = _value_or_text((Nested, Strided, GivenStride), "an axis tag such as 'N0' or 'stride:17'")


def formula(what: str, value: Any) -> Any:
    """An expression: text, which is parsed, a number, or a tree."""
    if is_text(value):
        return with_numbers(parse_expression(value))
    if isinstance(value, (bool, str)):
        raise unfit(what, "an expression", value)
    return check_expression(value, what)


def template(what: str, value: Any) -> Any:
    """An expression in which uses may have tags."""
    if is_text(value):
        return with_numbers(parse_expression(value, of_uses=True))
    return formula(what, value)


def optional(kind: Kind) -> Kind:
    """What a kind takes, or None."""
    return lambda what, value: None if value is None else kind(what, value)


def formula_or_flag(what: str, value: Any) -> Any:
    """An expression, or True or False, or None."""
    return value if value is None or isinstance(value, bool) else formula(what, value)


def dtype(what: str, value: Any) -> Any:
    """A type, or None to have it inferred."""
    return value if value is None else as_dtype(value)


def tag_type(what: str, value: Any) -> Any:
    """A tag, its spelling, or a class of tags."""
    if isinstance(value, type) and issubclass(value, Tag):
        return value
    return tag(what, value)


conditions = _value_or_text(
    (isl.Set, isl.BasicSet),
    "text or an isl set",
    'for example assume("n >= 1 and n mod 16 = 0")',
)
relation = _value_or_text(
    (isl.Map, isl.BasicMap),
    "text or an isl map",
    'for example map_domain("{ [t, i] -> [w, i]: w = t + i }")',
)


def items(what: str, value: Any, takes: str) -> tuple[Any, ...]:
    """The items of a collection that is neither text nor a mapping; sets in order."""
    if isinstance(value, (list, tuple)):
        return tuple(value)
    if isinstance(value, (set, frozenset)) and all(isinstance(item, str) for item in value):
        return tuple(sorted(value))
    if isinstance(value, (Iterator, range, type({}.keys()), type({}.values()))):
        return tuple(islice(value, LONGEST))
    raise unfit(what, takes, value)


def _several(takes: str, fits: Callable[[object], bool]) -> Kind:
    def several(what: str, value: Any) -> Any:
        if isinstance(value, str):
            parts = [part.strip() for part in value.split(",")]
            if not all(fits(part) for part in parts if part):
                raise unfit(what, takes, value)
            return str(value)
        found = items(what, value, takes)
        if not all(fits(item) for item in found):
            raise unfit(what, takes, value)
        return tuple(str(item) for item in found)

    return several


names = _several("names, as 'i, j' or a list of them", is_name)
"""Names, as text with commas or as a collection."""


def names_in(value: Any) -> tuple[str, ...]:
    """The names of an argument that is of the kind :data:`names`, or None."""
    if value is None:
        return ()
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return tuple(value)


_PATTERN = re.compile(r"[A-Za-z0-9_*?\[\]!-]+")
patterns = _several(
    "names or patterns, as 'i, j_*' or a list of them",
    lambda item: isinstance(item, str) and _PATTERN.fullmatch(item) is not None,
)
"""Names that may hold the wildcards of file names."""


def mapping_of(takes: str, key: Kind, value: Kind) -> Kind:
    """A mapping whose keys and values are of two kinds."""

    def mapping(what: str, given: Any) -> dict[Any, Any]:
        if not isinstance(given, Mapping):
            raise unfit(what, takes, given)
        return {
            key(f"a name in {what}", k): value(f"a value in {what}", v) for k, v in given.items()
        }

    return mapping


def joined(given: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """What was given in a mapping and by name, nothing of it twice."""
    if twice := sorted({*(given or {})} & more.keys()):
        raise InvalidArgumentError(f"{twice[0]} was given twice")
    return {**(given or {}), **more}


def name_or_number(what: str, value: Any) -> str | int:
    """A name, or a number."""
    return integer(what, value) if is_integer(value) else name(what, value)


tags_by_name = mapping_of("a mapping of inames to tags", name, tag)
tags_by_axis = mapping_of("a mapping of axes to tags", name_or_number, tag)
names_by_name = mapping_of("a mapping of names to names", name, name)
new_ids = mapping_of("a mapping of ids to new ones", name, names)
batches = mapping_of("a mapping of new names to the old ones", name, names)
dtypes_by_name = mapping_of("a mapping of names to types, as {'a, b': 'float32'}", names, dtype)
integers_by_name = mapping_of("a mapping of sizes to integers", name, integer)
T = TypeVar("T")


def values_of(what: str, value: Any, of: type[T]) -> tuple[T, ...]:
    """A collection of values of one type."""
    takes = f"a list of values of type {of.__name__}"
    found = items(what, value, takes)
    if not all(isinstance(item, of) for item in found):
        raise unfit(what, takes, value)
    return found


def size_values(what: str, value: Any) -> Any:
    """The value of a size; a mapping of them, as a history records it."""
    if isinstance(value, Mapping):
        return integers_by_name(what, value)
    if not is_integer(value):
        raise InvalidArgumentError(f"the size {what} must be an integer, not {shown(value)}")
    return int(value)


def tag_request(what: str, value: Any) -> Any:
    """Tags by iname: text, a mapping, or a list of texts and pairs."""
    takes = "a mapping of inames to tags, or text such as 'i:l.0, j:g.1'"
    if is_text(value):
        return str(value)
    if isinstance(value, Mapping):
        pairs: tuple[Any, ...] = tuple(value.items())
    else:
        pairs = items(what, value, takes)
    result: list[Any] = []
    for item in pairs:
        if is_text(item):
            result.append(str(item))
        elif isinstance(item, (tuple, list)) and len(item) == 2 and is_text(item[0]):
            several = item[1] if isinstance(item[1], (set, frozenset)) else [item[1]]
            result += [(str(item[0]), tag(what, one)) for one in several]
        else:
            raise unfit(what, takes, value)
    return tuple(result)


def tag_pairs(request: Any) -> list[tuple[str, str | Tag | None]]:
    """The inames or patterns of a :func:`tag_request`, each with its tag."""
    if isinstance(request, str):
        request = names_in(request)
    if isinstance(request, Mapping):
        return list(request.items())
    result: list[tuple[str, str | Tag | None]] = []
    for item in request:
        if isinstance(item, str):
            iname, colon, tag = item.partition(":")
            if not colon:
                behind = next((t for t in request if isinstance(t, str) and ":" in t), ":l.0")
                raise InvalidArgumentError(
                    f"'{item}' names no tag",
                    instead=f"each has its own: '{item}:{behind.partition(':')[2].strip()}'",
                )
            result.append((iname.strip(), tag.strip()))
        else:
            iname, new = item
            result.append((iname, new))
    return result


def axes(what: str, value: Any) -> Any:
    """Axes by name or number."""
    if isinstance(value, str):
        return names(what, value)
    found = items(what, value, "a list of names and numbers")
    return tuple(name_or_number(what, item) for item in found)


def array_axes(what: str, value: Any) -> Any:
    """Axes of arrays: ``("a", 0)``, with ``"F"`` behind it or not, or a list of such.

    An axis is a number or a name.
    """
    several = [value] if isinstance(value, tuple) and value and is_text(value[0]) else value
    result = []
    takes = "pairs of an array and an axis"
    for item in items(what, several, takes):
        if not isinstance(item, (tuple, list)) or len(item) not in (2, 3):
            raise unfit(what, takes, item)
        order = text("an order", item[2]) if len(item) == 3 else "C"
        if order not in ("C", "F"):
            raise InvalidArgumentError(f"an order is 'C' or 'F', not {shown(order)}")
        result.append((name("an array", item[0]), name_or_number("an axis", item[1]), order))
    return tuple(result)


def counts(what: str, value: Any) -> Any:
    """Two numbers of iterations."""
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(map(is_integer, value)):
        first, last = (at_least(0)(what, item) for item in value)
        return first, last
    raise InvalidArgumentError(
        f"{what} are two counts, of iterations at the start and at the end, not {shown(value)}",
        instead="slabs=(0, 1) separates the last iteration",
    )


def equations(what: str, value: Any) -> Any:
    """Pairs of expressions that are equal: as such, or as texts ``"u = i + j"``."""
    result: list[Any] = []
    takes = "equations such as 'u = i + j', or pairs of expressions"
    for item in [value] if is_text(value) else items(what, value, takes):
        sides = item
        if is_text(item):
            sides = item.replace("==", "=").split("=", 1)
            if len(sides) != 2:
                raise InvalidArgumentError(
                    f"'{item}' is no equation", instead='for example "u = i + j"'
                )
        if not isinstance(sides, (tuple, list)) or len(sides) != 2:
            raise unfit(what, takes, value)
        result.append(tuple(formula(what, side) for side in sides))
    return tuple(result)


def dim_tags(what: str, value: Any) -> Any:
    """How the axes of an array lie in memory: text, a list, or a mapping by axis."""
    if is_text(value):
        return str(value)
    if isinstance(value, Mapping):
        return {name_or_number("an axis", axis): dim_tag(what, i) for axis, i in value.items()}
    return tuple(dim_tag(what, item) for item in items(what, value, "a tag for each axis"))


def subscripts(what: str, value: Any) -> Any:
    """A subscript, or a list of them: texts, expressions and tuples of expressions.

    In texts an axis may be a range, ``"i, 2:n"`` or ``":, j"``: a slice of expressions or None.
    """

    def axis(part: str) -> Any:
        ends = _outside_brackets(part, ":")
        if len(ends) == 1:
            return parse_expression(part)
        if len(ends) > 2:
            raise InvalidArgumentError(
                f"{what}: '{part.strip()}' has a step", instead="a range is written lower:upper"
            )
        return slice(*(parse_expression(end) if end.strip() else None for end in ends))

    def one(item: Any) -> Any:
        if is_text(item):
            if ":" in item:
                return tuple(map(axis, _outside_brackets(item, ",")))
            return index_tuple(parse_expression(f"of[{item}]"))
        return tuple(formula(what, i) for i in (item if isinstance(item, tuple) else (item,)))

    return [one(item) for item in (value if isinstance(value, list) else [value])]


def _outside_brackets(text: str, mark: str) -> list[str]:
    """A text, cut at each ``mark`` that is in no brackets."""
    depth, parts = 0, [""]
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == mark and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def use(what: str, value: Any) -> Any:
    """The name of something that exists, and a subscript that it may have: ``"d[:, j]"``."""
    head, bracket, rest = value.partition("[") if is_text(value) else (value, "", "")
    if not bracket:
        return used_name(what, value), None
    if not rest.rstrip().endswith("]"):
        raise unfit(what, "a name, or one use of it such as 'd[:, j]'", value)
    return used_name(what, head.strip()), subscripts(what, rest.rstrip()[:-1])


Name = Annotated[str, name]


def invocations(what: str, value: Any) -> Any:
    """The name of a rule, and invocations of it: ``"f"``, ``"f(i, 0:8)"``, or a list of these."""
    name_of, found = "", list[Any]()
    given = _outside_brackets(value, ",") if is_text(value) else value
    for item in given if isinstance(given, (list, tuple)) and given else [given]:
        head, bracket, rest = item.partition("(") if is_text(item) else (item, "", "")
        used = used_name(what, head.strip() if is_text(head) else head)
        if (bracket and not rest.rstrip().endswith(")")) or name_of not in ("", used):
            raise unfit(what, "a rule's name, or invocations of one rule such as 'f(i, j)'", value)
        name_of = used
        found += subscripts(what, rest.rstrip()[:-1]) if bracket else []
    return name_of, found or None


UsedName = Annotated[str, used_name]
Use = Annotated[str, use]
Invocations = Annotated[str | Iterable[str], invocations]
NeededName = Annotated[str, needed_name]
NewName = Annotated[str | None, optional(needed_name)]
Names = Annotated[str | Iterable[str], names]
MaybeNames = Annotated[str | Iterable[str] | None, optional(names)]
Patterns = Annotated[str | Iterable[str], patterns]
NamesByName = Annotated[Mapping[str, str] | None, optional(names_by_name)]
NewIds = Annotated[Mapping[str, str | Iterable[str]], new_ids]
Batches = Annotated[Mapping[str, str | Iterable[str]], batches]
Flag = Annotated[bool, flag]
Text = Annotated[str | None, optional(text)]
Integer = Annotated[int, integer]
Natural = Annotated[int, at_least(0)]
MaybeNatural = Annotated[int | None, optional(at_least(0))]
Positive = Annotated[int, at_least(1)]
Counts = Annotated[Sequence[int], counts]
AnAxis = Annotated[int | str, name_or_number]
MaybeAxis = Annotated[int | str | None, optional(name_or_number)]
ArrayAxes = Annotated[Any, array_axes]
SizeValues = Annotated[Any, size_values]
Within = Annotated[str | Match | None, within]
Formula = Annotated[Any, formula]
Template = Annotated[Any, template]
MaybeFormula = Annotated[Any, optional(formula)]
FormulaOrFlag = Annotated[Any, formula_or_flag]
Subscripts = Annotated[Any, optional(subscripts)]
Equations = Annotated[Any, equations]
Conditions = Annotated[str | isl.Set | isl.BasicSet, conditions]
Relation = Annotated[str | isl.Map | isl.BasicMap, relation]
Space = Annotated[AddressSpace | str | None, address_space]
DTypeLike = Annotated[Any, dtype]
DTypesByName = Annotated[Mapping[str, Any], dtypes_by_name]
Axes = Annotated[Sequence[str | int] | None, optional(axes)]
TagLike = Annotated[str | Tag | None, tag]
TagType = Annotated[str | type[Tag] | Tag | None, tag_type]
TagsByName = Annotated[Mapping[str, str | Tag | None] | None, optional(tags_by_name)]
TagsByAxis = Annotated[Mapping[str | int, str | Tag | None] | None, optional(tags_by_axis)]
TagRequest = Annotated[
    str | Mapping[str, str | Tag | None] | Iterable[str | tuple[str, str | Tag | None]], tag_request
]
_OneTag = str | Nested | Strided | GivenStride
DimTags = Annotated[str | Sequence[_OneTag] | Mapping[int | str, _OneTag], dim_tags]


@cache
def kinds_of(function: Callable[..., Any]) -> Mapping[str, Kind]:
    """The kinds of a function's arguments, by name, as its signature says them.

    Looked up when the function is first called: Python takes its time over signatures.
    """
    hints = get_type_hints(function, include_extras=True)
    return {n: hint.__metadata__[0] for n, hint in hints.items() if hasattr(hint, "__metadata__")}


class Plain(str):
    """An annotation as text, without quotation marks around it."""

    __slots__ = ()
    __repr__ = str.__str__


def plain(annotation: Any) -> Plain:
    """The annotation of an argument as ordinary types: ``str | None`` for :data:`NewName`."""

    def ordinary(kind: re.Match[str]) -> str:
        return inspect.formatannotation(get_args(globals()[kind[1]])[0])

    found = re.sub(r"\bkind\.(\w+)", ordinary, annotation)
    return Plain(re.sub(r"\b[a-z_][\w.]*\.(?=[A-Z])", "", found))


def normal(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of a function by name, each in the normal form of its kind; None stays."""
    kinds = kinds_of(function)
    return {n: value if value is None else kinds[n](n, value) for n, value in given.items()}


def is_plain(value: object) -> bool:
    """Whether a value is data as JSON has it, to be recorded as it was given."""
    if value is None or type(value) in (str, int, float, bool):
        return True
    if type(value) in (tuple, list):
        return all(map(is_plain, value))  # type: ignore[call-overload]
    return type(value) is dict and all(is_plain(k) and is_plain(v) for k, v in value.items())
