"""Reading a generated function back: parameters, declarations, loops, guards, statements.

Only what loopkit prints is understood; anything else raises :class:`ReadError`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from loopkit._target import CUDA
from loopkit.codegen.c import tree as c
from loopkit.codegen.c.atomics import ATOMICS
from loopkit.codegen.c.branches import may_have_else, negation
from loopkit.codegen.c.errors import ReadError
from loopkit.codegen.c.lexer import Token, check_characters, tokens
from loopkit.codegen.c.read_expressions import ExpressionReader
from loopkit.codegen.c.tables import read_elements
from loopkit.codegen.c.types import TYPES

Origin = Callable[[int, str], "str | None"]
"""The statement that a line belongs to, from the line's number and comment."""

_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "|=", "&=", "^="))
_WAITS = {CUDA.block_barrier: "block", CUDA.warp_barrier: "warp"}
_ALIGNMENTS = frozenset(1 << bits for bits in range(8))
_START = 'extern "C" __global__'
_JOIN = re.compile(r"lk_\w+_of_two\(", re.ASCII)


def read_function(source: str, origin: Origin, own: tuple[c.Own, ...] = ()) -> c.Function:
    """The kernel function in a source text; ``own`` are those of the user's that it may call."""
    lines = source.split("\n")
    check_characters(lines)
    starts = [number for number, line in enumerate(lines, 1) if line.startswith(_START)]
    if len(starts) != 1:
        raise ReadError(1, f"the text holds {len(starts)} functions that a launch could call")
    # The type of a function that joins records stands on a line of its own, above its name.
    first = next((at for at in range(1, starts[0]) if _JOIN.match(lines[at])), starts[0])
    found, comments = tokens(lines, first)
    function = FunctionReader(found, comments, origin).function(tuple(lines[: first - 1]))
    return replace(function, own=own)


class FunctionReader(ExpressionReader):
    """A cursor over the tokens of a function."""

    def __init__(self, found: list[Token], comments: dict[int, str], origin: Origin) -> None:
        super().__init__(found)
        self.comments = comments
        self.origin = origin
        self.dynamic: int | None = None

    def function(self, above: tuple[str, ...]) -> c.Function:
        """The function below some lines, and those between that join records."""
        joins = []
        while self.accept("__device__"):
            joins.append(self.join())
        self.expect("extern", '"C"', "__global__", "void")
        self.expect("__launch_bounds__", "(")
        threads = self.integer()
        self.expect(")")
        name = self.word()
        self.expect("(")
        parameters: list[c.Parameter] = []
        while not self.accept(")"):
            if parameters:
                self.expect(",")
            parameters.append(self.parameter())
        self.expect("{")
        tables = []
        while self.accept("static"):
            tables.append(self.table())
        body = self.inside()
        if self.kind() != "end":
            raise ReadError(self.line, f"unexpected '{self.peek()}' after the function")
        made = c.Function(name, tuple(parameters), body, threads, self.dynamic, above)
        return replace(made, joins=tuple(joins), tables=tuple(tables))

    def table(self) -> c.Table:
        """An array of constants, behind the first word."""
        line, ctype = self.line, self.type_name()
        self.expect("const")
        name = self.word()
        self.expect("[")
        count = self.integer()
        self.expect("]", "=", "{")
        found: list[str] = []
        depth = 1
        while True:
            text = self.take()
            depth += (text == "{") - (text == "}")
            if depth == 0 or self.kind() == "end":
                break
            found.append(text)
        self.expect(";")
        data = read_elements(TYPES[ctype], found, line)
        if len(data) != count * TYPES[ctype].itemsize:
            raise ReadError(line, f"'{name}' has not {count} elements")
        return c.Table(name, ctype, data, line)

    def join(self) -> c.Join:
        self.expect("__forceinline__")
        ctype, name = self.type_name(), self.word()
        self.expect("(", ctype, "a", ",", ctype, "b", ")", "{")
        line = self.line
        self.expect("return")
        value = self.expression()
        self.expect(";", "}")
        return c.Join(name, ctype, value, line)

    def parameter(self) -> c.Parameter:
        line, ctype = self.line, self.type_name()
        is_const = self.accept("const")
        is_pointer = self.accept("*")
        is_restrict = is_pointer and self.accept("__restrict__")
        return c.Parameter(self.word(), ctype, is_pointer, is_const, is_restrict, line)

    def braces(self) -> tuple[c.Node, ...]:
        """The nodes between braces."""
        self.expect("{")
        return self.inside()

    def inside(self) -> tuple[c.Node, ...]:
        """The nodes up to a brace that closes."""
        nodes: list[c.Node] = []
        self.enter()
        while not self.accept("}"):
            if self.kind() == "end":
                raise ReadError(self.line, "the text ends inside braces")
            nodes += self.node()
            last = nodes[-1] if nodes else None
            if isinstance(last, c.For):
                nodes[-1] = self.labelled(last)
        self.depth -= 1
        return tuple(nodes)

    def declared(self, name: str, value: c.CExpression | None = None) -> str:
        """What a variable is called, which may be the name of a value."""
        return name

    def labelled(self, loop: c.For) -> c.For:
        """A loop with the label that stands behind it."""
        if self.peek(1) != ":" or self.peek(2) != ";":
            return loop
        label = self.word()
        self.expect(":", ";")
        return replace(loop, label=label)

    def body(self) -> tuple[c.Node, ...]:
        """What a loop or a guard holds, in braces or not."""
        if self.peek() == "{":
            return self.braces()
        self.enter()
        found = tuple(self.node())
        self.depth -= 1
        return found

    def node(self) -> list[c.Node]:
        """One statement."""
        is_unrolled = self.kind() == "pragma"
        if is_unrolled:
            self.take()
            if self.peek() != "for":
                raise ReadError(self.line, "a loop is expected behind a pragma")
        text = self.peek()
        if text == "{":
            return [self.block()]
        if text == "for":
            return [self.loop(is_unrolled=is_unrolled)]
        if text == "if":
            return self.guard()
        if text in ("break", "goto"):
            return [self.exit()]
        if text in _WAITS:
            return [self.wait()]
        if text in ("__shared__", "extern"):
            return self.shared()
        if self.at_type():
            return [self.typed()]
        return [self.assignment()]

    def block(self) -> c.Block | c.Combine:
        """Braces; those that belong to a statement are what threads do to combine its target."""
        line = self.line
        comment = self.comments.get(line, "")
        statement = self.origin(line, comment)
        body = self.braces()
        if statement is None:
            return c.Block(body, line)
        last = body[-1] if body else None
        while isinstance(last, (c.For, c.If)):
            last = last.body[-1] if last.body else None
        if not isinstance(last, c.Assign):
            raise ReadError(line, "nothing is combined in these braces")
        return c.Combine(last.target, body, statement, comment, line)

    def loop(self, *, is_unrolled: bool) -> c.For:
        line = self.line
        self.expect("for", "(")
        ctype, name = self.type_name(), self.word()
        self.expect("=")
        lower = self.expression()
        self.expect(";")
        test = self.expression()
        if not (isinstance(test, c.Binary) and test.operator in ("<", "<=")) or (
            test.left != c.Name(name)
        ):
            raise ReadError(line, f"a loop that does not end by '{name} <' is not understood")
        self.expect(";")
        step = 1
        if self.accept("++"):
            self.expect(name)
        else:
            self.expect(name)
            if not self.accept("++"):
                self.expect("+=")
                step = self.integer()
        self.expect(")")
        if step < 1:
            raise ReadError(line, "a loop that does not go up is not understood")
        name, is_inclusive = self.declared(name), test.operator == "<="
        own = self.body()
        return c.For(ctype, name, lower, test.right, is_inclusive, step, own, is_unrolled, line)

    def guard(self) -> list[c.Node]:
        """A guard, and one for what stands behind its ``else``."""
        line = self.line
        self.expect("if", "(")
        condition = self.expression()
        self.expect(")")
        found = c.If(condition, self.body(), line)
        line = self.line
        if not self.accept("else"):
            return [found]
        if not may_have_else(found):
            raise ReadError(line, "the branch before 'else' may change the condition of 'if'")
        return [found, c.If(negation(condition), self.body(), line)]

    def exit(self) -> c.Break:
        line, comment = self.line, self.comments.get(self.line, "")
        label = self.word() if self.take() == "goto" else None
        self.expect(";")
        return c.Break(label, self.origin(line, comment), comment, line)

    def wait(self) -> c.Wait:
        line, scope = self.line, _WAITS[self.take()]
        self.expect("(")
        if self.listed(")"):
            raise ReadError(line, "a barrier for some of the threads is not understood")
        self.expect(";")
        return c.Wait(scope, self.comments.get(line, ""), line)

    def dimensions(self) -> tuple[int, ...]:
        found = []
        while self.accept("["):
            found.append(self.integer())
            self.expect("]")
        return tuple(found)

    def alignment(self) -> int:
        """The multiple of bytes at which something begins."""
        if not self.accept("__align__"):
            return 1
        self.expect("(")
        line, value = self.line, self.integer()
        self.expect(")")
        if value not in _ALIGNMENTS:
            raise ReadError(line, f"{value} bytes are no alignment")
        return value

    def shared(self) -> list[c.Node]:
        line = self.line
        if self.accept("extern"):
            self.expect("__shared__")
            if self.dynamic is not None:
                raise ReadError(line, "dynamic shared memory is declared twice")
            if self.depth > 1:
                raise ReadError(line, "dynamic shared memory is declared inside of a block")
            self.dynamic = self.alignment()
            self.expect("unsigned", "char", "shared_memory", "[", "]", ";")
            return []
        self.expect("__shared__")
        alignment = self.alignment()
        ctype, name = self.type_name(), self.declared(self.word())
        dimensions = self.dimensions()
        self.expect(";")
        return [c.Declaration("shared", ctype, name, dimensions, line, alignment=alignment)]

    def typed(self) -> c.Node:
        """What begins with a type: a constant, a private variable, a view of shared memory."""
        line, ctype = self.line, self.type_name()
        if self.accept("const"):
            name = self.word()
            self.expect("=")
            value = self.expression()
            self.expect(";")
            return c.Let(ctype, self.declared(name, value), value, line)
        if self.accept("&"):
            name = self.word()
            self.expect("=", "*", "(", *ctype.split(), "*", ")")
            return c.Declaration("shared", ctype, name, (), line, self.offset())
        if self.accept("*"):
            name = self.word()
            self.expect("=", "(", *ctype.split(), "*", ")")
            return c.Declaration("shared", ctype, name, (None,), line, self.offset())
        if self.accept("("):
            self.expect("*")
            name = self.word()
            self.expect(")")
            inner = self.dimensions()
            self.expect("=", "(", *ctype.split(), "(", "*", ")")
            if self.dimensions() != inner:
                raise ReadError(line, f"'{name}' is declared with one shape and cast to another")
            self.expect(")")
            return c.Declaration("shared", ctype, name, (None, *inner), line, self.offset())
        name = self.declared(self.word())
        dimensions = self.dimensions()
        self.expect(";")
        return c.Declaration("private", ctype, name, dimensions, line)

    def offset(self) -> int:
        if self.dynamic is None:
            raise ReadError(self.line, "dynamic shared memory is not declared")
        self.expect("(", "shared_memory", "+")
        value = self.integer()
        self.expect(")", ";")
        return value

    def assignment(self) -> c.Assign:
        line = self.line
        target = self.postfix()
        comment = self.comments.get(line, "")
        statement = self.origin(line, comment)
        if isinstance(target, c.Call):
            atomic = ATOMICS.get(target.function)
            if atomic is None or len(target.arguments) != 2:
                raise ReadError(line, f"a call of '{target.function}' is not understood")
            address, value = target.arguments
            if (
                not isinstance(address, c.Unary)
                or address.operator != "&"
                or not isinstance(address.operand, (c.Name, c.Element))
            ):
                raise ReadError(line, f"what '{target.function}' changes is not understood")
            self.expect(";")
            what = (atomic.operator, value, statement, target.function)
            return c.Assign(address.operand, *what, comment, line)
        if not isinstance(target, (c.Name, c.Element)):
            raise ReadError(line, "a statement is expected")
        operator = self.take()
        if operator not in _ASSIGNMENTS:
            raise ReadError(line, f"'{operator}' is not understood as an assignment")
        value = self.expression()
        self.expect(";")
        return c.Assign(target, operator, value, statement, "", comment, line)


_FIRST_WORD = re.compile(r"([^\s,:]+)")


def by_comment(known: frozenset[str]) -> Origin:
    """Statements by what the comment of their line begins with."""

    def origin(line: int, comment: str) -> str | None:
        match = _FIRST_WORD.match(comment)
        return match[1] if match is not None and match[1] in known else None

    return origin
