"""What the text declares: the types and places of all names."""

from __future__ import annotations

from dataclasses import dataclass, field

from loopkit.codegen.c import tree as c

# Categories of C's types, arithmetic on narrow integers being in `int`.
CATEGORIES = {
    "bool": "int",
    "signed char": "int",
    "unsigned char": "int",
    "short": "int",
    "unsigned short": "int",
    "int": "int",
    "unsigned int": "uint",
    "unsigned": "uint",
    "long long": "long",
    "unsigned long long": "ulong",
    "__half": "float",
    "__nv_bfloat16": "float",
    "float": "float",
    "double": "double",
}
INTEGERS = ("int", "uint", "long", "ulong")
_RANK = {"int": 0, "uint": 1, "long": 2, "ulong": 3, "float": 4, "double": 5}
_OF_THEIR_ARGUMENTS = frozenset(
    (
        *("abs", "min", "max", "lk_floordiv", "lk_mod", "lk_shl", "lk_shr"),
        *("lk_abs", "lk_sign", "lk_power", "lk_ipow"),
    )
)
"""Functions that compute in the type in which their arguments meet."""


@dataclass
class Names:
    """The declarations of one function.

    ``places`` says where a name lives: ``"value"`` (parameters, loop variables,
    constants), ``"global"``, ``"shared"`` or ``"private"``.
    """

    types: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    dimensions: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    declarations: dict[str, c.Declaration] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)
    _kinds: dict[int, tuple[c.CExpression, str]] = field(default_factory=dict)
    _reading: dict[int, tuple[c.CExpression, bool]] = field(default_factory=dict)

    def add(self, name: str, ctype: str, place: str) -> None:
        """Note a declaration."""
        self.types[name] = CATEGORIES.get(ctype, "other")
        self.places[name] = place
        self.order.append(name)

    def type_of(self, expr: c.CExpression) -> str:
        """The category of the type in which C computes an expression."""
        if isinstance(expr, (c.Number, c.Name, c.Element)):
            return self._type_of(expr)
        if id(expr) not in self._kinds:
            # Long sums lean to the left.
            spine: list[c.CExpression] = [expr]
            while isinstance(expr, c.Binary):
                spine.append(expr := expr.left)
            for part in reversed(spine):
                self._kinds[id(part)] = part, self._type_of(part)
            expr = spine[0]
        return self._kinds[id(expr)][1]

    def _type_of(self, expr: c.CExpression) -> str:
        if isinstance(expr, c.Number):
            return "int" if expr.ctype == "bool" else expr.ctype
        if isinstance(expr, c.Name):
            return self.types.get(expr.name, "int")
        if isinstance(expr, c.Element):
            return self.types.get(expr.array, "other")
        if isinstance(expr, c.Cast):
            return CATEGORIES.get(expr.ctype, "other")
        if isinstance(expr, c.Unary):
            return "int" if expr.operator == "!" else self.type_of(expr.operand)
        if isinstance(expr, c.Binary):
            if expr.operator in ("<<", ">>"):
                return self.type_of(expr.left)
            if expr.operator in ("<", "<=", ">", ">=", "==", "!=", "&&", "||"):
                return "int"
            return common(self.type_of(expr.left), self.type_of(expr.right))
        if isinstance(expr, c.Choice):
            return common(self.type_of(expr.then), self.type_of(expr.other))
        if isinstance(expr, c.Call) and expr.function.partition("<")[0] in _OF_THEIR_ARGUMENTS:
            types = [self.type_of(a) for a in expr.arguments]
            result = types[0] if types else "other"
            for other in types[1:]:
                result = common(result, other)
            return result
        if isinstance(expr, c.Member):
            return "float"
        return "other"

    def reads_memory(self, expr: c.CExpression) -> bool:
        """Whether the values of an expression are loaded."""
        found = self._reading.get(id(expr))
        if found is None:
            reads = any(
                isinstance(part, c.Element)
                or (isinstance(part, c.Name) and self.places.get(part.name, "value") != "value")
                for part in c.walk(expr)
            )
            found = self._reading[id(expr)] = expr, reads
        return found[1]

    def is_integer(self, expr: c.CExpression) -> bool:
        """Whether an expression has an integer type."""
        return self.type_of(expr) in INTEGERS


def common(a: str, b: str) -> str:
    """The type in which C computes with two."""
    if a not in _RANK or b not in _RANK:
        return "other"
    return max(a, b, key=_RANK.__getitem__)


def declared(function: c.Function) -> Names:
    """All names of a function; loop variables of one name must have one type."""
    names = Names()
    for word in c.HARDWARE:
        names.types[word], names.places[word] = "uint", "value"
    for parameter in function.parameters:
        place = "global" if parameter.is_pointer else "value"
        names.add(parameter.name, parameter.ctype, place)

    for node in c.statements(function.body):
        if isinstance(node, c.Declaration):
            names.add(node.name, node.ctype, node.space)
            names.dimensions[node.name] = node.dimensions
            names.declarations[node.name] = node
        elif isinstance(node, (c.For, c.Let)):
            known = names.types.get(node.name)
            category = CATEGORIES.get(node.ctype, "other")
            if known is None:
                names.add(node.name, node.ctype, "value")
            elif known != category:
                # The wider of the two: nothing is then taken to overflow that does not.
                names.types[node.name] = common(known, category)
    return names
