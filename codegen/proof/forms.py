"""Integer expressions as polynomials over names, quotients, extrema and loaded values.

A form is exact: addition and multiplication expand, equal forms are equal
nodes.  isl takes those that are affine; products of sizes, which flattened
subscripts are full of, are compared as polynomials.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from loopkit._cached import cached_property
from loopkit.codegen.proof.nodes import Node

Monomial = tuple["Atom", ...]
"""A product of atoms; one of several is a :class:`Product`."""


@dataclass(frozen=True)
class Variable(Node):
    """A size, a loop variable, a hardware index, or a private integer."""

    name: str

    @property
    def besides(self) -> Hashable:
        return self.name


@dataclass(frozen=True, eq=False)
class Floor(Node):
    """``floor(of / by)``."""

    of: Form
    by: int

    @property
    def besides(self) -> Hashable:
        return self.by

    @property
    def inside(self) -> tuple[Node, ...]:
        return (self.of,)


@dataclass(frozen=True, eq=False)
class Extreme(Node):
    """The least or the greatest of several forms."""

    word: str  # "min" or "max"
    parts: tuple[Form, ...]

    @property
    def besides(self) -> Hashable:
        return self.word

    @property
    def inside(self) -> tuple[Node, ...]:
        return self.parts

    @cached_property
    def made_of(self) -> Hashable:
        return self.word, frozenset(self.parts)


@dataclass(frozen=True, eq=False)
class Loaded(Node):
    """An element of an array, by its offset."""

    array: str
    offset: Form

    @property
    def besides(self) -> Hashable:
        return self.array

    @property
    def inside(self) -> tuple[Node, ...]:
        return (self.offset,)


@dataclass(frozen=True, eq=False)
class Choice(Node):
    """One of two values: comparisons look into it, all else takes it as a whole.

    ``condition`` is a condition of :mod:`.conditions`, which stands above forms.
    """

    condition: Any
    then: Form
    other: Form

    @property
    def inside(self) -> tuple[Node, ...]:
        return self.condition, self.then, self.other


@dataclass(frozen=True, eq=False)
class Opaque(Node):
    """A value that is not looked into: an operation of some nodes, or a number with a fraction.

    ``word`` says all about the operation that its operands do not say.
    """

    word: tuple[Hashable, ...]
    parts: tuple[Node, ...] = ()

    @property
    def besides(self) -> Hashable:
        return self.word

    @property
    def inside(self) -> tuple[Node, ...]:
        return self.parts


Atom = Variable | Floor | Extreme | Loaded | Choice | Opaque
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


_MOST_CHOICES = 6
"""Comparisons with more choices than that are not taken apart: each doubles the cases."""
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
    def inside(self) -> tuple[Node, ...]:
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

    # {{{ arithmetic

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
            constant = one.constant
            if constant is not None:
                return two.scaled(constant)
        if len(self.terms) * len(other.terms) > _LARGEST_PRODUCT:
            return opaque("*", self, other)
        terms: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in other.terms.items():
                monomial = product((*m, *n))
                total = terms.get(monomial, 0) + c * d
                if total:
                    terms[monomial] = total
                else:
                    terms.pop(monomial, None)
        return Form(terms)

    # }}}

    # {{{ looking inside

    @cached_property
    def names(self) -> frozenset[str]:
        """The names of all variables, also inside quotients and extrema."""
        return frozenset(a.name for a in self.atoms if isinstance(a, Variable))

    @cached_property
    def atoms(self) -> frozenset[Atom]:
        """All atoms, also inside quotients and extrema."""
        return frozenset(_atoms(self))

    @cached_property
    def is_affine(self) -> bool:
        """Whether isl can take the form."""
        if any(len(m) > 1 for m in self.terms):
            return False
        for monomial in self.terms:
            for atom in monomial:
                if isinstance(atom, DATA):
                    return False
                if isinstance(atom, Floor) and not atom.of.is_affine:
                    return False
                if isinstance(atom, Extreme) and not all(p.is_affine for p in atom.parts):
                    return False
        return True

    @property
    def is_data(self) -> bool:
        """Whether loaded values enter."""
        return any(isinstance(a, DATA) for a in self.atoms)

    # }}}

    def renamed(self, name: Callable[[str], str]) -> Form:
        """The form with other names."""
        terms: dict[Monomial, int] = {}
        for monomial, value in self.terms.items():
            atoms = product(_renamed(a, name) for a in monomial)
            terms[atoms] = terms.get(atoms, 0) + value
        return Form(terms)

    def value(self, values: Mapping[str, int]) -> int:
        """The form's value where all names have one; raises KeyError for loaded values."""
        total = 0
        for monomial, value in self.terms.items():
            for atom in monomial:
                value *= _value(atom, values)
            total += value
        return total


def _atoms(form: Form) -> Iterator[Atom]:
    for monomial in form.terms:
        for atom in monomial:
            yield atom
            if isinstance(atom, Floor):
                yield from _atoms(atom.of)
            elif isinstance(atom, Extreme):
                for part in atom.parts:
                    yield from _atoms(part)


def _renamed(atom: Atom, name: Callable[[str], str]) -> Atom:
    if isinstance(atom, Variable):
        return Variable(name(atom.name))
    if isinstance(atom, Floor):
        return Floor(atom.of.renamed(name), atom.by)
    if isinstance(atom, Extreme):
        return Extreme(atom.word, tuple(p.renamed(name) for p in atom.parts))
    return atom


def _value(atom: Atom, values: Mapping[str, int]) -> int:
    if isinstance(atom, Variable):
        return values[atom.name]
    if isinstance(atom, Floor):
        return atom.of.value(values) // atom.by
    if isinstance(atom, Extreme):
        parts = [p.value(values) for p in atom.parts]
        return min(parts) if atom.word == "min" else max(parts)
    raise KeyError(atom)


# {{{ making forms


def choice(condition: Any, then: Form, other: Form) -> Form:
    """``then`` where ``condition`` holds, else ``other``."""
    return Form({(Choice(condition, then, other),): 1})


def _choices(form: Form) -> int:
    found = [a for monomial in form.terms for a in monomial if isinstance(a, Choice)]
    return sum(1 + _choices(a.then) + _choices(a.other) for a in found)


def branches(form: Form) -> tuple[Any, Form, Form] | None:
    """The condition of a choice that a form adds, and the form for each of its values.

    None where there is no choice, or more of them than are looked at one by one.
    """
    if _choices(form) > _MOST_CHOICES:
        return None
    for monomial, factor in form.terms.items():
        if len(monomial) == 1 and isinstance(monomial[0], Choice):
            found = monomial[0]
            rest = Form({m: c for m, c in form.terms.items() if m != monomial})
            then, other = (rest.plus(side, factor) for side in (found.then, found.other))
            return found.condition, then, other
    return None


def constant(value: int) -> Form:
    """A number."""
    return Form({(): value}) if value else ZERO


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
    """``floor(form / by)`` for a positive ``by``; whole multiples come out in front."""
    whole = {m: c // by for m, c in form.terms.items() if c % by == 0}
    rest = Form({m: c for m, c in form.terms.items() if c % by})
    number = rest.constant
    if number is not None:
        return Form(whole).plus(constant(number // by))
    outside = rest.terms.get((), 0) // by
    if outside:
        rest = rest.minus(constant(outside * by))
    quotient = Form({(Floor(rest, by),): 1})
    return Form(whole).plus(quotient).plus(constant(outside))


def extreme(word: str, parts: Iterable[Form]) -> Form:
    """The least (``min``) or greatest (``max``) of forms; nested ones are one."""
    flat: dict[Form, None] = {}
    for part in parts:
        flat.update(dict.fromkeys(_only_extreme(part, word) or (part,)))
    found = list(flat)
    if len(found) == 1:
        return found[0]
    numbers = [f.constant for f in found]
    known = [n for n in numbers if n is not None]
    if len(known) == len(found):
        return constant(min(known) if word == "min" else max(known))
    return Form({(Extreme(word, tuple(found)),): 1})


def _only_extreme(form: Form, word: str) -> tuple[Form, ...] | None:
    if len(form.terms) != 1:
        return None
    ((monomial, factor),) = form.terms.items()
    if factor != 1 or len(monomial) != 1:
        return None
    atom = monomial[0]
    return atom.parts if isinstance(atom, Extreme) and atom.word == word else None


ZERO = Form({})
ONE = Form({(): 1})

# }}}
