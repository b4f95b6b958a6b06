"""Integer expressions as polynomials over names, quotients, extrema and loaded values.

A form is exact: addition and multiplication expand, equal forms are equal nodes.  isl takes
those that are affine; products of sizes, which flattened subscripts are full of, are compared as
polynomials: forms of :mod:`loopkit._linear` know neither those, nor data, nor extrema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_, attrgetter, or_, xor
from typing import Any

from loopkit._cached import cached_property
from loopkit._linear import runs


class Node:
    """Equal to the nodes of its kind that are made of the same, and to no others.

    Each node's hash is computed once, from those of its parts.  ``inside`` are the nodes
    that it is made of, ``besides`` is what else tells it from others of its kind.
    """

    besides: Hashable = None
    inside: tuple[Node, ...] = ()

    @property
    def made_of(self) -> Hashable:
        """Both; nodes that have no order are in a set."""
        return self.besides, self.inside

    @cached_property
    def _hash(self) -> int:
        return hash((type(self), self.made_of))

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Node) or type(self) is not type(other):
            return False
        return self._hash == other._hash and self.made_of == other.made_of

    def __hash__(self) -> int:
        return self._hash


def member(name: str) -> Any:
    """A property that is another attribute."""
    return property(attrgetter(name))


def members(*names: str) -> Any:
    """A property that is the tuple of other attributes."""
    if len(names) > 1:
        return property(attrgetter(*names))
    get = attrgetter(*names)
    return property(lambda node: (get(node),))


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes in it."""
    pending = [node]
    while pending:
        part = pending.pop()
        yield part
        pending.extend(part.inside)


Monomial = tuple["Atom", ...]
"""A product of atoms; one of several is a :class:`Product`."""


@dataclass(frozen=True)
class Variable(Node):
    """A size, a loop variable, a hardware index, or a private integer."""

    name: str

    besides = member("name")

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, eq=False)
class Floor(Node):
    """``floor(of / by)``."""

    of: Form
    by: int

    besides = member("by")
    inside = members("of")


@dataclass(frozen=True, eq=False)
class Extreme(Node):
    """The least or the greatest of several forms."""

    word: str  # "min" or "max"
    parts: tuple[Form, ...]

    besides = member("word")
    inside = member("parts")

    @cached_property
    def made_of(self) -> Hashable:
        return self.word, frozenset(self.parts)


@dataclass(frozen=True, eq=False)
class Xor(Node):
    """``left ^ right % 2**bits``, of integers without end."""

    left: Form
    right: Form
    bits: int

    besides = member("bits")
    inside = members("left", "right")


@dataclass(frozen=True, eq=False)
class Loaded(Node):
    """An element of an array, by its offset."""

    array: str
    offset: Form

    besides = member("array")
    inside = members("offset")


@dataclass(frozen=True, eq=False)
class Choice(Node):
    """One of two values: comparisons look into it, all else takes it as a whole.

    ``condition`` is a condition of :mod:`.conditions`, which stands above forms.
    """

    condition: Any
    then: Form
    other: Form

    inside = members("condition", "then", "other")


@dataclass(frozen=True, eq=False)
class Opaque(Node):
    """A value that is not looked into: an operation of some nodes, or a number with a fraction.

    ``word`` says all about the operation that its operands do not say.
    """

    word: tuple[Hashable, ...]
    parts: tuple[Node, ...] = ()

    besides = member("word")
    inside = member("parts")


Atom = Variable | Floor | Extreme | Xor | Loaded | Choice | Opaque
DATA = (Loaded, Choice, Opaque)
"""Atoms that only data decides."""


class Product(tuple["Atom", ...]):
    """Several atoms, in no order."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Product) or len(self) != len(other):
            return False
        return tuple.__eq__(self, other) or Counter(self) == Counter(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash((Product, sum(map(hash, self))))


def product(atoms: Iterable[Atom]) -> Monomial:
    """The product of atoms; one alone is a tuple, too."""
    found = tuple(atoms)
    return Product(found) if len(found) > 1 else found


_LARGEST_PRODUCT = 256
"""Products of more terms than that, which only data has, are not expanded."""


class NotAffineError(Exception):
    """A form is not affine in names, or a condition is not one on such forms."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.node = node


class Form(Node):
    """``sum(coefficient * product of atoms)``; the empty product stands for the constant."""

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        self.terms = terms

    @property
    def inside(self) -> tuple[Node, ...]:  # type: ignore[override]
        return tuple(atom for monomial in self.terms for atom in monomial)

    @cached_property
    def made_of(self) -> Hashable:
        return frozenset(self.terms.items())

    @property
    def constant(self) -> int | None:
        """The value of a form without atoms."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and () in self.terms:
            return self.terms[()]
        return None

    @property
    def only(self) -> Atom | None:
        """The atom that the form is; None where it is more, or a multiple, or a number."""
        monomial = next(iter(self.terms), ())
        return monomial[0] if len(monomial) == 1 and self.terms == {monomial: 1} else None

    def plus(self, other: Form, factor: int = 1) -> Form:
        """``self + factor*other``."""
        terms = dict(self.terms)
        for monomial, value in other.terms.items():
            total = terms.get(monomial, 0) + factor * value
            if total:
                terms[monomial] = total
            else:
                terms.pop(monomial, None)
        return Form(terms)

    def minus(self, other: Form) -> Form:
        """``self - other``."""
        return self.plus(other, -1)

    def scaled(self, factor: int) -> Form:
        """``factor*self``."""
        return Form({m: factor * c for m, c in self.terms.items()}) if factor else ZERO

    def times(self, other: Form) -> Form:
        """``self * other``, expanded."""
        for one, two in ((self, other), (other, self)):
            if (number := one.constant) is not None:
                return two.scaled(number)
        if len(self.terms) * len(other.terms) > _LARGEST_PRODUCT:
            return opaque("*", self, other)
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                monomial = product((*m, *n))
                terms[monomial] = terms.get(monomial, 0) + c * d
        return Form({m: c for m, c in terms.items() if c})

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all variables, also inside quotients and extrema."""
        return frozenset(a.name for a in self.atoms if isinstance(a, Variable))

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """All atoms, also inside quotients and extrema."""
        own = frozenset(atom for monomial in self.terms for atom in monomial)
        return own.union(*(part.atoms for atom in own for part in _parts(atom)))

    @cached_property
    def has_digits(self) -> bool:
        """Whether an exclusive or is in it: sets have names for its digits."""
        return any(isinstance(atom, Xor) for atom in self.atoms)

    @cached_property
    def is_affine(self) -> bool:
        """Whether isl can take the form."""
        return all(len(m) <= 1 and all(map(_is_affine, m)) for m in self.terms)

    @property
    def is_data(self) -> bool:
        """Whether loaded values enter."""
        return any(isinstance(a, DATA) for a in self.atoms)

    def renamed(self, name: Callable[[str], str]) -> Form:
        """The form with other names."""
        terms: dict[Monomial, int] = {}
        for monomial, value in self.terms.items():
            atoms = product(_renamed(a, name) for a in monomial)
            terms[atoms] = terms.get(atoms, 0) + value
        return Form(terms)

    def value(self, values: Mapping[str, int]) -> int:
        """The form's value, names without one being 0; raises KeyError for loaded values."""
        total = 0
        for monomial, value in self.terms.items():
            for atom in monomial:
                value *= _value(atom, values)
            total += value
        return total


def values_of(forms: Iterable[Form], values: Mapping[str, int]) -> tuple[int, ...] | None:
    """The values of several forms; None where data enter one."""
    try:
        return tuple(form.value(values) for form in forms)
    except KeyError:
        return None


def _parts(atom: Atom) -> tuple[Form, ...]:
    """The forms in a quotient or an extremum; what data decides is not looked into."""
    if isinstance(atom, Floor):
        return (atom.of,)
    if isinstance(atom, Xor):
        return atom.left, atom.right
    return atom.parts if isinstance(atom, Extreme) else ()


def _is_affine(atom: Atom) -> bool:
    return not isinstance(atom, DATA) and all(part.is_affine for part in _parts(atom))


def _renamed(atom: Atom, name: Callable[[str], str]) -> Atom:
    if isinstance(atom, Variable):
        return Variable(name(atom.name))
    if isinstance(atom, Floor):
        return Floor(atom.of.renamed(name), atom.by)
    if isinstance(atom, Extreme):
        return Extreme(atom.word, tuple(p.renamed(name) for p in atom.parts))
    if isinstance(atom, Xor):
        return Xor(atom.left.renamed(name), atom.right.renamed(name), atom.bits)
    return atom


def _value(atom: Atom, values: Mapping[str, int]) -> int:
    if isinstance(atom, Variable):
        return values.get(atom.name, 0)
    if isinstance(atom, Floor):
        return atom.of.value(values) // atom.by
    if isinstance(atom, Extreme):
        parts = [p.value(values) for p in atom.parts]
        return min(parts) if atom.word == "min" else max(parts)
    if isinstance(atom, Xor):
        return atom.left.value(values) ^ (atom.right.value(values) % (1 << atom.bits))
    raise KeyError(atom)


def choice(condition: Any, then: Form, other: Form) -> Form:
    """``then`` where ``condition`` holds, else ``other``."""
    return Form({(Choice(condition, then, other),): 1})


def constant(value: int) -> Form:
    """A number."""
    return Form({(): value}) if value else ZERO


@lru_cache(maxsize=4096)
def variable(name: str) -> Form:
    """A name."""
    return Form({(Variable(name),): 1})


def loaded(array: str, offset: Form) -> Form:
    """An element of an array, by its offset."""
    return Form({(Loaded(array, offset),): 1})


def opaque(word: Hashable, *parts: Node) -> Form:
    """A value that is not looked into."""
    return Form({(Opaque(word if isinstance(word, tuple) else (word,), parts),): 1})


def floor(form: Form, by: int) -> Form:
    """``floor(form / by)`` for a positive ``by``; whole multiples come out in front.

    A quotient of a quotient is one: ``i//2//4`` is ``i//8``.
    """
    whole = {m: c // by for m, c in form.terms.items() if c % by == 0}
    rest = Form({m: c for m, c in form.terms.items() if c % by})
    number = rest.constant
    if number is not None:
        return Form(whole).plus(constant(number // by))
    outside = rest.terms.get((), 0) // by
    if outside:
        rest = rest.minus(constant(outside * by))
    match [*rest.terms.items()]:
        case [((Floor(of=of, by=inner),), 1)]:
            rest, by = of, by * inner
    quotient = Form({(Floor(rest, by),): 1})
    return Form(whole).plus(quotient).plus(constant(outside))


def floored(form: Form, by: int) -> Form:
    """``floor(form / by)``, Python's quotient, for a ``by`` other than 0."""
    return floor(form, by) if by > 0 else floor(form.scaled(-1), -by)


def remainder(form: Form, by: int) -> Form:
    """What such a quotient leaves over."""
    return form.minus(floored(form, by).scaled(by))


def power(base: Form, exponent: int) -> Form:
    """A product of equal factors."""
    return reduce(Form.times, [base] * exponent, ONE)


def bitwise(operator: str, left: Form, right: Form) -> Form | None:
    """``<<``, ``>>``, ``&``, ``|`` or ``^`` of integers without end; None where it is no form."""
    known = right.constant
    if known is None:
        return None
    if left.constant is not None and operator in _OF_BITS:
        return constant(_OF_BITS[operator](left.constant, known))
    if operator in ("<<", ">>") and 0 <= known < _MOST_BITS:
        by = 1 << known
        return floor(left, by) if operator == ">>" else left.scaled(by)
    if operator == "&" and known > 0 and known & (known + 1) == 0:
        return remainder(left, known + 1)
    if operator not in _OF_BITS or left.is_data:
        return None
    common = _masked(left, known)
    if operator == "&":
        return common
    return left.plus(constant(known)).plus(common, -1 if operator == "|" else -2)


def of_bits(operator: str, left: Form, right: Form) -> Form:
    """``<<``, ``>>``, ``&``, ``|`` or ``^`` of integers without end."""
    found = bitwise(operator, left, right)
    return opaque(operator, left, right) if found is None else found


def _masked(form: Form, mask: int) -> Form:
    """``form & mask``: each run of bits that are set is a remainder of a quotient."""
    if mask < 0:
        return form.minus(_masked(form, ~mask))
    parts = (remainder(floor(form, low), length).scaled(low) for low, length in runs(mask))
    return reduce(Form.plus, parts, ZERO)


def exclusive_or(left: Form, right: Form, bits: int) -> Form:
    """``left ^ right % 2**bits``: what only changes higher bits of ``right`` is left out."""
    modulus = 1 << bits
    right, mine = (
        Form({m: c % modulus for m, c in form.terms.items() if c % modulus})
        for form in (right, left)
    )
    if not right.terms:
        return left
    if mine == right:
        return floor(left, modulus).scaled(modulus)
    if left.constant is not None and right.constant is not None:
        return constant(left.constant ^ right.constant)
    if right.constant is not None and (known := bitwise("^", left, right)) is not None:
        return known
    return Form({(Xor(left, right, bits),): 1})


def bits_of(form: Form) -> int | None:
    """How many bits hold ``factor * (x % 2**n)``; None for forms that are not spelled so."""
    for monomial, factor in form.terms.items():
        atom = monomial[0] if len(monomial) == 1 else None
        if not isinstance(atom, Floor) or factor >= 0 or -factor % atom.by:
            continue
        scale = -factor // atom.by
        rest = Form({m: c for m, c in form.terms.items() if m != monomial})
        if rest == atom.of.scaled(scale):
            return (scale * (atom.by - 1)).bit_length()
    return None


_OF_BITS = {"&": and_, "|": or_, "^": xor}
_MOST_BITS = 64


def absolute(form: Form) -> Form:
    """The absolute value."""
    return extreme("max", (form, form.scaled(-1)))


def extreme(word: str, parts: Iterable[Form]) -> Form:
    """The least (``min``) or greatest (``max``) of forms; nested ones are one."""
    flat: dict[Form, None] = {}
    for part in parts:
        atom = part.only
        if isinstance(atom, Extreme) and atom.word == word:
            flat.update(dict.fromkeys(atom.parts))
        else:
            flat[part] = None
    found = list(flat)
    if len(found) == 1:
        return found[0]
    numbers = [f.constant for f in found]
    known = [n for n in numbers if n is not None]
    if len(known) == len(found):
        return constant(min(known) if word == "min" else max(known))
    return Form({(Extreme(word, tuple(found)),): 1})


ZERO = Form({})
ONE = Form({(): 1})
