"""Forms and conditions as text for messages; the proof does not depend on it."""

from __future__ import annotations

from collections.abc import Iterable

from loopkit._algebra.polynomials import plus, polynomial, sum_of
from loopkit._algebra.terms import FALSE, TRUE, Term, is_constant, number
from loopkit.codegen.proof.proof_conditions import least, negated, negated_atom
from loopkit.codegen.proof.term_makers import OWN


def shown(term: Term) -> str:
    """A form, ``16*i_outer + i_inner - n``, or a condition."""
    match term.op:
        case "name":
            return str(term.data[0])
        case "constant" if term.sort != "Z":
            return str(term.data)
        case "sum" | "product" | "constant":
            return _sum(term)
        case "fdiv" if is_constant(term.args[1]):
            return f"floor(({shown(term.args[0])})/{term.args[1].data})"
        case "read":
            return f"{term.data[0]}[{shown(*term.args)}]"
        case "select":
            return f"if({_listed(term.args)})"
        case "wrap":
            return f"{term.data}({shown(*term.args)})"
        case "call":
            return _call(term)
    if term.op in _SYMBOLS:
        return _between(_SYMBOLS[term.op], term.args)
    if term.sort == "B":
        return _condition(term)
    return f"{term.op}({', '.join(sorted(map(shown, term.args)))})"


def _sum(form: Term) -> str:
    parts = ((_product(m), c) for m, c in polynomial(form).items())
    text = ""
    for atoms, value in sorted(parts, key=_late):
        sign = "-" if value < 0 else "+"
        size = abs(value)
        term = (atoms if size == 1 else f"{size}*{atoms}") if atoms else str(size)
        if text:
            text += f" {sign} {term}"
        else:
            text = f"-{term}" if sign == "-" else term
    return text or "0"


def _product(monomial: tuple[Term, ...]) -> str:
    sums = (f"({shown(a)})" if a.op == "sum" else shown(a) for a in monomial)
    return "*".join(sorted(sums))


def _late(part: tuple[str, int]) -> tuple[bool, bool, str]:
    """What is subtracted comes after what is added, numbers come last."""
    return not part[0], part[1] < 0, part[0]


def _listed(terms: Iterable[Term]) -> str:
    return ", ".join(map(shown, terms))


def _between(symbol: str, terms: Iterable[Term]) -> str:
    return symbol.join(f"({t})" if " " in t else t for t in map(shown, terms))


def _call(term: Term) -> str:
    op, *more = term.data
    if op in _SYMBOLS:
        return _between(_SYMBOLS[op], term.args)
    name = str(more[0] if more and more[0] is not None else op).removeprefix(OWN)
    return f"{name}({_listed(term.args)})" if term.args else name


_SYMBOLS = {
    "add": " + ",
    "mul": "*",
    "div": "/",
    "fdiv": "//",
    "mod": " % ",
    "and": " & ",
    "or": " | ",
    "xor": " ^ ",
    "shl": " << ",
    "shr": " >> ",
    "lt": " < ",
    "le": " <= ",
    "eq": " == ",
    "value": "",
}


def _condition(term: Term) -> str:
    form = least(term)
    if form is not None:
        return _compared("<=", form)
    if term.op == "eq0":
        return _compared("==", *term.args)
    atom = negated_atom(term)
    if atom is not None:
        return _compared("!=", *atom.args) if atom.op == "eq0" else f"not {shown(atom)}"
    first, yes, no = term.args
    if yes is TRUE or no is TRUE:
        sides = (first, no) if yes is TRUE else (negated(first), yes)
        return f"or({', '.join(sorted(map(shown, sides)))})"
    if yes is FALSE or no is FALSE:
        sides = (negated(first), no) if yes is FALSE else (first, yes)
        return f"and({', '.join(sorted(map(shown, sides)))})"
    return f"if({_listed(term.args)})"


def _compared(operator: str, form: Term) -> str:
    """How 0 compares with a form: what is subtracted stands on the left."""
    if operator == "<=" and polynomial(form).get(()) == -1:
        operator, form = "<", plus(form, number(1))
    terms = polynomial(form).items()
    above, below = (sum_of({m: c * s for m, c in terms if c * s > 0}) for s in (1, -1))
    return f"{_sum(below)} {operator} {_sum(above)}"
