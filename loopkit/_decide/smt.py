"""Questions as SMT-LIB texts, over integers or bit-vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from math import prod

from loopkit._algebra.conditions import negation
from loopkit._algebra.ranges import INTEGERS, range_of, remainders_in
from loopkit._algebra.terms import INF, ZERO, Term, is_constant, names_in, subterms
from loopkit._decide.by_isl import ForeignError
from loopkit._linear import runs

_MOST_BITS = 128
_MOST_LEMMAS = 80


class _Text:
    """Terms as definitions, one for each node."""

    sort = ""
    words: Mapping[str, str] = {}

    def __init__(self, names: Mapping[str, Term]) -> None:
        self.lines: list[str] = []
        self.names = {text: f"x{at}" for at, text in enumerate(names)}
        self._known: dict[Term, str] = {}

    def declare_names(self) -> None:
        """Begin the text."""
        self.lines += [f"(declare-const {word} {self.sort})" for word in self.names.values()]

    def word_for(self, term: Term) -> str:
        """What stands for a term."""
        if term not in self._known:
            found = self._text_of(term)
            if term.args:
                word = f"t{len(self._known)}"
                sort = "Bool" if term.sort == "B" else self.sort
                self.lines.append(f"(define-fun {word} () {sort} {found})")
                found = word
            self._known[term] = found
        return self._known[term]

    def _text_of(self, term: Term) -> str:
        match term.op:
            case "constant" if term.sort == "B":
                return "true" if term.data else "false"
            case "constant":
                return self.number_text(term.data)
            case "name":
                return self.names[term.data[0]]
            case "fdiv" | "mod":
                return self.division_text(term)
            case "and" | "or" | "xor" | "shl" | "shr":
                return self.bits_text(term)
            case "wrap":
                return self.wrap_text(term)
            case "ge0" | "eq0":
                value = self.word_for(term.args[0])
                return f"({self.words[term.op]} {value} {self.number_text(0)})"
            case "sum":
                return self.sum_text(term)
            case "product":
                return self.joined("product", [*map(self.word_for, term.args)])
            case "select" | "if":
                first, yes, no = map(self.word_for, term.args)
                return f"(ite {first} {yes} {no})"
            case "min" | "max":
                return reduce(partial(self.extreme_text, term.op), map(self.word_for, term.args))
        raise ForeignError(term.op)

    def sum_text(self, term: Term) -> str:
        """A sum of products with numbers."""
        parts = [
            self.joined("product", [self.number_text(c), self.word_for(t)])
            for c, t in zip(term.data, term.args, strict=True)
        ]
        return self.joined("sum", parts)

    def joined(self, op: str, parts: Sequence[str]) -> str:
        """A sum or a product of two or more."""
        return f"({self.words[op]} {' '.join(parts)})"

    def extreme_text(self, op: str, a: str, b: str) -> str:
        """The smaller or the larger one of two."""
        least = self.at_most_text(a, b) if op == "min" else self.at_most_text(b, a)
        return f"(ite {least} {a} {b})"

    def number_text(self, value: int) -> str:
        """A number."""
        raise NotImplementedError

    def at_most_text(self, a: str, b: str) -> str:
        """``a <= b``."""
        raise NotImplementedError

    def division_text(self, term: Term) -> str:
        """A quotient, rounded down, or a remainder."""
        raise NotImplementedError

    def bits_text(self, term: Term) -> str:
        """An operation on bits."""
        raise NotImplementedError

    def wrap_text(self, term: Term) -> str:
        """The number of a type with the same low bits."""
        raise NotImplementedError


class WholeText(_Text):
    """Whole numbers without end: products and quotients of names, and masks that are numbers."""

    sort = "Int"
    words: Mapping[str, str] = {"sum": "+", "product": "*", "ge0": ">=", "eq0": "="}

    def __init__(self, names: Mapping[str, Term]) -> None:
        super().__init__(names)
        self._quotients: dict[tuple[str, str], str] = {}
        self._products: set[tuple[str, ...]] = set()

    def joined(self, op: str, parts: Sequence[str]) -> str:
        if op == "product" and not any(p.startswith(("(", "-")) or p.isdigit() for p in parts):
            self._products.add(tuple(sorted(parts)))
        return super().joined(op, parts)

    def number_text(self, value: int) -> str:
        return str(value) if value >= 0 else f"(- {-value})"

    def at_most_text(self, a: str, b: str) -> str:
        return f"(<= {a} {b})"

    def state_lemmas(self) -> None:
        """State that ``a*f + f <= b*f`` where ``a < b``, for products with a factor ``f > 0``."""
        products = sorted(self._products)
        pairs = ((a, b) for at, a in enumerate(products) for b in products[:at])
        for (a, b), _ in zip(pairs, range(_MOST_LEMMAS), strict=False):
            common, mine, its = _shared(a, b)
            if not common:
                continue
            factor, x, y = map(_times, (common, mine, its))
            one, two = _times((*mine, *common)), _times((*its, *common))
            positive = " ".join(f"(> {c} 0)" for c in dict.fromkeys(common))
            orders = (
                f"(=> (< {x} {y}) (<= (+ {one} {factor}) {two}))",
                f"(=> (< {y} {x}) (<= (+ {two} {factor}) {one}))",
            )
            self.lines.append(
                f"(assert (=> (and {positive}) (and (> {factor} 0) {' '.join(orders)})))"
            )

    def wrap_text(self, term: Term) -> str:
        low, high = map(int, INTEGERS[term.data])
        value = f"(- {self.word_for(term.args[0])} {self.number_text(low)})"
        return f"(+ (mod {value} {high - low + 1}) {self.number_text(low)})"

    def bits_text(self, term: Term) -> str:
        if term.op in ("shl", "shr") or len(term.args) != 2 or not is_constant(term.args[1]):
            raise ForeignError(f"{term.op} of unknowns")
        value, mask = self.word_for(term.args[0]), term.args[1].data
        common = self._masked(value, mask)
        if term.op == "and":
            return common
        return (
            f"(- (+ {value} {self.number_text(mask)}) (* {1 if term.op == 'or' else 2} {common}))"
        )

    def _masked(self, value: str, mask: int) -> str:
        if mask < 0:
            return f"(- {value} {self._masked(value, ~mask)})"
        digits = (f"(* {low} (mod (div {value} {low}) {length}))" for low, length in runs(mask))
        return f"(+ 0 {' '.join(digits)})" if mask else "0"

    def division_text(self, term: Term) -> str:
        value, by = map(self.word_for, term.args)
        if is_constant(term.args[1]):
            return f"({'div' if term.op == 'fdiv' else 'mod'} {value} {by})"
        found = self._quotients.get((value, by))
        if found is None:
            found = self._quotients[value, by] = f"q{len(self._quotients)}"
            self._define_quotient(found, value, by, term.args[1])
        return found if term.op == "fdiv" else f"(ite (= {by} 0) 0 (- {value} (* {found} {by})))"

    def _define_quotient(self, word: str, value: str, by: str, divisor: Term) -> None:
        """State a quotient by a name: solvers are slow with their own."""
        fact = f"(and (<= (* {word} {by}) {value}) (< {value} (+ (* {word} {by}) {by})))"
        if range_of(divisor)[0] <= 0:
            over, next_ = f"(* {word} {by})", f"(+ (* {word} {by}) {by})"
            less = f"(and (< {by} 0) (>= {over} {value}) (> {value} {next_}))"
            zero = f"(and (= {by} 0) (= {word} 0))"
            fact = f"(or (and (> {by} 0) {fact}) {zero} {less})"
        factors = divisor.args if divisor.op == "product" else (divisor,)
        words = sorted(map(self.word_for, factors))
        self._products |= {tuple(sorted((word, *words))), tuple(words)}
        self.lines += [f"(declare-const {word} Int)", f"(assert {fact})"]


def _shared(a: Sequence[str], b: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """The factors that two products share, and what each has besides."""
    common, mine, its = list[str](), [*a], [*b]
    for factor in a:
        if factor in its:
            its.remove(factor)
            mine.remove(factor)
            common.append(factor)
    return common, mine, its


def _times(factors: Sequence[str]) -> str:
    if len(factors) < 2:
        return factors[0] if factors else "1"
    return f"(* {' '.join(sorted(factors))})"


class BitsText(_Text):
    """Bit-vectors that are wide enough for all that occurs: nothing wraps around."""

    words: Mapping[str, str] = {
        "sum": "bvadd",
        "product": "bvmul",
        "ge0": "bvsge",
        "eq0": "=",
        "and": "bvand",
        "or": "bvor",
        "xor": "bvxor",
    }

    def __init__(self, names: Mapping[str, Term], terms: Sequence[Term]) -> None:
        super().__init__(names)
        most = max((_greatest(t) for t in subterms(*terms) if t.sort == "Z"), default=0)
        if most == INF:
            raise ForeignError("names without bounds")
        self.width = int(most).bit_length() + 2
        if self.width > _MOST_BITS:
            raise ForeignError(f"{self.width} bits")
        self.sort = f"(_ BitVec {self.width})"

    def joined(self, op: str, parts: Sequence[str]) -> str:
        return reduce(lambda a, b: f"({self.words[op]} {a} {b})", parts)

    def number_text(self, value: int) -> str:
        return f"(_ bv{value % (1 << self.width)} {self.width})"

    def at_most_text(self, a: str, b: str) -> str:
        return f"(bvsle {a} {b})"

    def sum_text(self, term: Term) -> str:
        for rest, factor, by, value in remainders_in(term):
            if by & (by - 1) == 0:  # what is left over is a mask, and no subtraction
                mask = f"(bvand {self.word_for(value)} {self.number_text(by - 1)})"
                left = self.joined("product", [self.number_text(factor), mask])
                return left if rest is ZERO else self.joined("sum", [self.word_for(rest), left])
        return super().sum_text(term)

    def wrap_text(self, term: Term) -> str:
        bits = int(term.data.lstrip("uint"))
        value, more = self.word_for(term.args[0]), self.width - bits
        extended = "zero_extend" if term.data.startswith("u") else "sign_extend"
        return f"((_ {extended} {more}) ((_ extract {bits - 1} 0) {value}))"

    def bits_text(self, term: Term) -> str:
        args = [*map(self.word_for, term.args)]
        if term.op not in ("shl", "shr"):
            return self.joined(term.op, args)
        if range_of(term.args[1])[0] < 0:
            raise ForeignError("a shift by less than 0")
        return f"({'bvshl' if term.op == 'shl' else 'bvashr'} {args[0]} {args[1]})"

    def division_text(self, term: Term) -> str:
        value, by = map(self.word_for, term.args)
        divisor = term.args[1]
        if is_constant(divisor) and divisor.data > 0 and divisor.data & (divisor.data - 1) == 0:
            shift, mask = divisor.data.bit_length() - 1, self.number_text(divisor.data - 1)
            is_quotient = term.op == "fdiv"
            return (
                f"(bvashr {value} {self.number_text(shift)})"
                if is_quotient
                else f"(bvand {value} {mask})"
            )
        found = self._division_by_name(term, value, by)
        low, high = range_of(divisor)
        zero = self.number_text(0)
        return found if low > 0 or high < 0 else f"(ite (= {by} {zero}) {zero} {found})"

    def _division_by_name(self, term: Term, value: str, by: str) -> str:
        """SMT-LIB's signed division rounds to 0."""
        if all(range_of(t)[0] >= 0 for t in term.args):
            return f"({'bvudiv' if term.op == 'fdiv' else 'bvurem'} {value} {by})"
        zero, one = self.number_text(0), self.number_text(1)
        rest, quotient = f"(bvsrem {value} {by})", f"(bvsdiv {value} {by})"
        is_off = f"(and (distinct {rest} {zero}) (xor (bvslt {value} {zero}) (bvslt {by} {zero})))"
        if term.op == "fdiv":
            return f"(ite {is_off} (bvsub {quotient} {one}) {quotient})"
        return f"(ite {is_off} (bvadd {rest} {by}) {rest})"


def _greatest(term: Term) -> float:
    """The greatest magnitude of a number and of what it is computed by."""

    def magnitude(number: Term) -> float:
        return max(map(abs, range_of(number)))

    parts: list[float] = [magnitude(t) for t in term.args if t.sort == "Z"]
    found: float = 0
    if INF in parts:
        return INF
    if term.op == "sum":
        found = sum(abs(c) * part for c, part in zip(term.data, parts, strict=True))
    if term.op == "product":
        found = prod(parts)
    return max([found, magnitude(term), *parts])


def question_text(
    claim: Term, context: Sequence[Term], *, bits: bool, bounds: bool, lemmas: bool
) -> tuple[str, dict[str, str]]:
    """A text that holds where a claim does not, and the words that stand for its names.

    ``bits``: of bit-vectors.  ``bounds``: of whole numbers, with bounds of names that are large;
    ``lemmas``: with facts about their products.
    """
    terms = (claim, *context)
    names = names_in(*terms)
    text: _Text = BitsText(names, terms) if bits else WholeText(names)
    text.declare_names()
    for term in names.values():
        word = text.word_for(term)
        for end in term.data[1:]:
            if abs(end) == INF or not (bounds or bits or abs(end) <= 1):
                continue
            known = text.number_text(int(end))
            ends = (known, word) if end == term.data[1] else (word, known)
            text.lines.append(f"(assert {text.at_most_text(*ends)})")
            if term.data[1] == term.data[2]:
                text.lines.append(f"(assert {text.at_most_text(word, known)})")
    asked = [text.word_for(t) for t in (*context, negation(claim))]
    if lemmas and isinstance(text, WholeText):
        text.state_lemmas()
    return "\n".join([*text.lines, *(f"(assert {a})" for a in asked)]), text.names
