"""What the text declares: the types and places of all names, and the types of expressions."""

from __future__ import annotations

from loopkit._promotion import INT32, UINT32, DType
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.spec import Checker, Variable
from loopkit.codegen.c.types import C_TYPES, TYPES, WHOLE, in_registers


class Names:
    """The declarations of one function, in which every operation has a type.

    ``types`` has the types of variables and of arrays' elements; loops of one name have one.
    ``places`` says where a name lives: ``"value"`` (parameters, loop variables, constants),
    ``"global"``, ``"shared"`` or ``"private"``.
    """

    def __init__(self, function: c.Function) -> None:
        self.types: dict[str, DType] = dict.fromkeys(c.HARDWARE, UINT32)
        self.places = dict.fromkeys(c.HARDWARE, "value")
        self.declarations: dict[str, c.Declaration] = {}
        for parameter in function.parameters:
            self.types[parameter.name] = TYPES[parameter.ctype]
            self.places[parameter.name] = "global" if parameter.is_pointer else "value"
        for table in function.tables:
            self.types[table.name] = TYPES[table.ctype]
            self.places[table.name] = "global"
        for node in c.statements(function.body):
            if isinstance(node, (c.Declaration, c.For, c.Let)):
                dtype = TYPES[node.ctype]
                if (other := self.types.setdefault(node.name, dtype)) != dtype:
                    what = f"'{node.name}' is declared {C_TYPES[other]} in one place"
                    raise ReadError(node.line, f"{what}, {node.ctype} here")
                self.places[node.name] = "value"
            if isinstance(node, c.Declaration):
                self.places[node.name] = node.space
                self.declarations[node.name] = node
        self.dimensions = {name: node.dimensions for name, node in self.declarations.items()}
        ranks = {name: len(dimensions) for name, dimensions in self.dimensions.items()}
        ranks |= {name: 1 for name, place in self.places.items() if place == "global"}
        known = {n: Variable(dtype, ranks.get(n, 0)) for n, dtype in self.types.items()}
        self.joins = {(join.name, TYPES[join.ctype]): join for join in function.joins}
        self.own = frozenset(own.name for own in function.own)
        self._checker = Checker(known, function.joins, function.own)
        self._known: dict[int, tuple[c.CExpression, DType, DType, bool]] = {}
        self._used: dict[int, tuple[c.CExpression, frozenset[str]]] = {}

    def type_of(self, expr: c.CExpression) -> DType:
        """The type of an expression: that of narrow data is narrow."""
        return (self._known.get(id(expr)) or self._looked_at(expr))[1]

    def computed_in(self, expr: c.CExpression) -> DType:
        """The type in which C computes with an expression."""
        return (self._known.get(id(expr)) or self._looked_at(expr))[2]

    def reads_memory(self, expr: c.CExpression) -> bool:
        """Whether the values of an expression are loaded."""
        return (self._known.get(id(expr)) or self._looked_at(expr))[3]

    def _looked_at(self, expr: c.CExpression) -> tuple[c.CExpression, DType, DType, bool]:
        """An expression, its types, and whether it reads memory; its parts are known then, too."""
        for part in c.postorder(expr):
            if id(part) not in self._known:
                parts = [self._known[id(child)] for child in c.children(part)]
                dtype = self._checker.whole(part, [own for _, own, _, _ in parts])
                reads = isinstance(part, c.Element) or any(reads for _, _, _, reads in parts)
                if isinstance(part, c.Name):
                    reads = self.places.get(part.name, "value") != "value"
                self._known[id(part)] = part, dtype, in_registers(dtype), reads
        return self._known[id(expr)]

    def is_integer(self, expr: c.CExpression) -> bool:
        """Whether an expression has an integer type."""
        return self.type_of(expr) in WHOLE

    def used(self, expr: c.CExpression) -> frozenset[str]:
        """The names of all variables and arrays in an expression."""
        if id(expr) not in self._used:
            named = (part for part in c.walk(expr) if isinstance(part, (c.Name, c.Element)))
            found = (part.name if isinstance(part, c.Name) else part.array for part in named)
            self._used[id(expr)] = expr, frozenset(found)
        return self._used[id(expr)][1]

    def holds_integer(self, name: str) -> bool:
        """Whether a name has integer values; a name that the text does not declare is an iname."""
        return self.types.get(name, INT32) in WHOLE
