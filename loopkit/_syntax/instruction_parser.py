"""Instructions: from text to raw items in the order of the text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal, NoReturn

import pymbolic.primitives as prim

from loopkit._errors import ParseError, SourcePosition
from loopkit._frozen import dataclass
from loopkit._nodes import Expression, Record, SubArray
from loopkit._syntax.expression_parser import ExpressionParser
from loopkit._syntax.items import (
    NO_OPTIONS,
    Declared,
    Options,
    RawAssignment,
    RawBreak,
    RawItem,
    RawNop,
    RawSubstitution,
)
from loopkit._syntax.option_parser import parse_options
from loopkit._syntax.tokens import CLOSING, END, OPENING, position_in

# Blanked out before anything else, and offsets stay.  The newline of a line that goes on becomes a
# vertical tab: a blank, but no end of a line.
_SKIPPED = re.compile(r"#[^\n]*|\\[ \t]*(?:\n|\Z)")
_BRACKETS = re.compile(r"[()\[\]{}]")
_BLOCK_WORDS = ("for", "if", "elif", "else", "end", "with")
_HEAD = re.compile(r"(for|if|elif|else|end|with)(?!\w)(?!\s*(?:=(?!=)|:=|[-+*/%]=))")
_EXIT = re.compile(r"break(?=\s*(?:if\b|\{|\Z))")
_EXIT_OF = re.compile(r"break\s+(?!if\b)(\w+)\s*(?:if\b.*|\{.*)?\Z")
_WHILE = re.compile(r"while\b(?!\s*(?:=(?!=)|:=|\[|[-+*/%]=))")
_CONTINUE = re.compile(r"continue\s*(?:if\b|\{|\Z)")
# What begins a line like this is never the inside of a bracket that a line before left open.
_BREAK = re.compile(r"\s*(?:for\s+\w|with\s*\{|elif\b|end\s*\Z)")
# ``lhs += rhs`` and its kin: ``rhs`` is computed as a whole first.
_UPDATES: dict[str, Callable[[Expression, Expression], Expression]] = {
    "+=": lambda lhs, rhs: prim.Sum((lhs, rhs)),
    "-=": lambda lhs, rhs: prim.Sum((lhs, prim.Product((-1, rhs)))),
    "*=": lambda lhs, rhs: prim.Product((lhs, rhs)),
    "/=": prim.Quotient,
}
_ASSIGNING = ("=", *_UPDATES)
_SPECIAL: tuple[Literal["nop", "lbarrier", "gbarrier"], ...] = ("nop", "lbarrier", "gbarrier")
_OTHER_UPDATES = ("//=", "%=", "**=", "<<=", ">>=", "&=", "|=", "^=")


def parse_instructions(text: str | Iterable[str]) -> tuple[RawItem, ...]:
    """The instructions and substitution rules in ``text``, in its order.

    A list of strings is read as the lines of one text.
    """
    if not isinstance(text, str):
        text = "\n".join(text)
    return tuple(_Reader(text).items())


@dataclass(frozen=True, slots=True)
class _Block:
    """A block that is open, and what instructions inside it inherit."""

    word: str
    at: int  # where its line begins
    number: int = 0
    scopes: tuple[tuple[int, tuple[str, ...]], ...] = ()
    predicates: tuple[Expression, ...] = ()
    predicate_blocks: tuple[int, ...] = ()
    options: Options = NO_OPTIONS
    branches: tuple[Expression, ...] = ()  # the conditions of this `if` so far
    has_else: bool = False


_OUTERMOST = _Block("", 0)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.clean = _SKIPPED.sub(_blanks, text)
        self.blocks = [_OUTERMOST]
        self.blocks_seen = 0
        # The line that is being read: where it begins, and its number.
        self.start = 0
        self.line = 1

    def position_of(self, offset: int, length: int) -> SourcePosition:
        """A place in the line that is being read."""
        return position_in(self.text, self.start + offset, length)

    def fail(self, offset: int, length: int, why: str, instead: str = "") -> NoReturn:
        raise ParseError(why, position=self.position_of(offset, length), instead=instead)

    def lines(self) -> Iterator[str]:
        """The lines of the text; one that leaves brackets open takes in those that follow."""
        clean = self.clean
        at = 0
        while at < len(clean):
            end = self._end_of_line(at)
            depth = self._depth(clean[at:end])
            while depth > 0 and end < len(clean):
                next_end = self._end_of_line(end + 1)
                more = clean[end + 1 : next_end]
                if _BREAK.match(more):
                    break
                depth += self._depth(more)
                end = next_end
            piece = clean[at:end]
            stripped = piece.lstrip()
            if stripped:
                start = at + len(piece) - len(stripped)
                self.line += self.text.count("\n", self.start, start)
                self.start = start
                yield stripped.rstrip()
            at = end + 1

    def _end_of_line(self, at: int) -> int:
        found = self.clean.find("\n", at)
        return len(self.clean) if found < 0 else found

    @staticmethod
    def _depth(piece: str) -> int:
        return sum(1 if b in OPENING else -1 for b in _BRACKETS.findall(piece))

    def items(self) -> Iterator[RawItem]:
        for line in self.lines():
            head = _HEAD.match(line)
            if head is not None:
                yield from self.block(head[1], line)
            elif _EXIT.match(line):
                yield self.exit(line)
            else:
                yield self.item(line)
        if len(self.blocks) > 1:
            block = self.blocks[-1]
            self.start = block.at
            self.fail(0, len(block.word), f"this '{block.word}' has no 'end'")

    def block(self, word: str, line: str) -> Iterator[RawItem]:
        """Open or close a block; what a loop looks at first stands in it."""
        rest = line[len(word) :]
        if line.endswith(":") and word != "end":
            self.fail(len(line) - 1, 1, f"no ':' ends a '{word}' line", "leave it out")
        if word == "for":
            condition = self.open_for(rest)
            if condition is not None:
                yield self.leaving(line, NO_OPTIONS, prim.LogicalNot(condition))
        elif word == "if":
            self.blocks_seen += 1
            condition = self.condition(line, len(word))
            self.open_if(self.blocks[-1], self.start, self.blocks_seen, (), condition)
        elif word in ("elif", "else"):
            self.open_branch(word, line)
        elif word == "with":
            self.open_with(line)
        else:
            if rest.strip():
                self.fail(len(word), len(rest), "nothing may follow 'end'")
            if len(self.blocks) == 1:
                self.fail(0, len(word), "this 'end' ends nothing: no block is open here")
            self.blocks.pop()

    def parser(self, text: str, begin: int = 0) -> ExpressionParser:
        """Reads ``text``, which stands ``begin`` characters into the line."""
        return ExpressionParser(text, lambda at, length: self.position_of(begin + at, length))

    def open_for(self, rest: str) -> Expression | None:
        """Open a loop; returns the condition to continue it, if it has one."""
        outer = self.blocks[-1]
        parser = self.parser(rest, len("for"))
        enclosing = {iname for _, inames in outer.scopes for iname in inames}
        inames: list[str] = []

        def read_iname() -> None:
            iname = parser.words[parser.at]
            if not iname.isidentifier():
                parser.fail_expecting(
                    "the name of an iname", "a loop is written 'for i, j' and closed by 'end'"
                )
            if iname in enclosing or iname in inames:
                parser.fail(parser.at, f"this is already inside a loop over '{iname}'")
            inames.append(iname)
            parser.at += 1

        parser.series((",",), read_iname)
        condition = None
        if parser.took("while"):
            if parser.words[parser.at] == END:
                parser.fail_expecting("a condition", "a loop continues 'while' it is true")
            condition = parser.expression()
        if parser.words[parser.at] != END:
            bounds = "the bounds of an iname are given by its domain"
            parser.fail_expecting("',', 'while' or the end of the line", bounds)
        self.blocks_seen += 1
        scopes = (*outer.scopes, (self.blocks_seen, tuple(inames)))
        self.blocks.append(replace(outer, word="for", at=self.start, scopes=scopes))
        return condition

    def condition(self, line: str, begin: int) -> Expression:
        parser = self.parser(line[begin:], begin)
        if parser.words[0] == END:
            self.fail(0, begin, f"'{line[:begin]}' needs a condition")
        condition = parser.expression()
        parser.finish()
        return condition

    def open_if(
        self,
        outer: _Block,
        start: int,
        number: int,
        earlier: tuple[Expression, ...],
        condition: Expression | None,
    ) -> None:
        """Open a branch that runs where none of ``earlier`` holds, and ``condition`` does."""
        own = () if condition is None else (condition,)
        new = (*(prim.LogicalNot(c) for c in earlier), *own)
        self.blocks.append(
            replace(
                outer,
                word="if",
                at=start,
                number=number,
                predicates=outer.predicates + new,
                predicate_blocks=outer.predicate_blocks + (number,) * len(new),
                branches=earlier + own,
                has_else=condition is None,
            )
        )

    def open_branch(self, word: str, line: str) -> None:
        block = self.blocks[-1]
        if block.word != "if":
            where = f"the innermost open block is a '{block.word}'" if block.word else ""
            self.fail(0, len(word), f"this '{word}' belongs to no 'if'", where)
        if block.has_else:
            self.fail(0, len(word), f"'{word}' after the 'else' of the same 'if'")
        condition = None
        if word == "elif":
            condition = self.condition(line, len(word))
        elif line != word:
            instead = "write 'elif'" if re.match(r"else\s+if\b", line) else ""
            self.fail(len(word), len(line) - len(word), "nothing may follow 'else'", instead)
        self.blocks.pop()
        self.open_if(self.blocks[-1], block.at, block.number, block.branches, condition)

    def open_with(self, line: str) -> None:
        outer = self.blocks[-1]
        brace = line.find("{")
        if brace < 0 or line[len("with") : brace].strip():
            self.fail(0, len(line), "'with' needs options", "it is written 'with {dep=a, tags=b}'")
        options = self.options(line, brace)
        if options.id is not None:
            self.fail(brace, len(line) - brace, "an id belongs to one instruction, not to a block")
        merged = options.inside(outer.options)
        self.blocks.append(replace(outer, word="with", at=self.start, options=merged))

    def options(self, line: str, brace: int) -> Options:
        text = line[brace:]
        depth = 0
        end = 0
        for bracket in _BRACKETS.finditer(text):
            depth += 1 if bracket[0] in OPENING else -1
            if depth == 0:
                end = bracket.end()
                break
        if end == 0:
            self.fail(brace, 1, "'{' is never closed", "add the '}' that belongs to it")
        behind = text[end:]
        if behind.strip():
            offset = brace + end + len(behind) - len(behind.lstrip())
            self.fail(offset, len(behind.strip()), "nothing may follow the options")
        return parse_options(text, lambda offset, length: self.position_of(brace + offset, length))

    def exit(self, line: str) -> RawBreak:
        """``break``, ``break if c``, and options."""
        if not self.blocks[-1].scopes:
            self.fail(0, len("break"), "this 'break' is in no loop", "write it in a 'for' block")
        brace = line.find("{")
        body = line if brace < 0 else line[:brace]
        options = NO_OPTIONS if brace < 0 else self.options(line, brace)
        begin = len("break")
        if not body[begin:].strip():
            return self.leaving(line, options)
        begin = body.index("if", begin) + len("if")
        return self.leaving(line, options, self.condition(body, begin))

    def leaving(self, line: str, options: Options, *conditions: Expression) -> RawBreak:
        """The end of the innermost loop, where all conditions hold."""
        return RawBreak(**self.shared(line, options, *conditions))

    def shared(self, line: str, options: Options, *conditions: Expression) -> dict[str, Any]:
        """What an instruction has of its options and of the blocks around it."""
        block = self.blocks[-1]
        scopes = block.scopes
        if options.inames_is_final:  # these, of all loops around it
            own = [(n, tuple(i for i in its if i in (options.inames or ()))) for n, its in scopes]
            scopes = tuple(scope for scope in own if scope[1])
        if block.options is not NO_OPTIONS:
            options = options.inside(block.options)
        more = options.predicates + conditions
        return {
            **{name: getattr(options, name) for name in Options.__slots__},
            "predicates": block.predicates + more,
            "predicate_blocks": block.predicate_blocks + (0,) * len(more),
            "scopes": scopes,
            **self.place(line),
        }

    def item(self, line: str) -> RawItem:
        if (far := _EXIT_OF.match(line)) is not None:
            self.fail(
                far.start(1),
                len(far.group(1)),
                "'break' leaves the innermost 'for' around it, and no other",
                "to leave an outer loop, set a temporary, and write 'break if done' after the "
                "inner loop",
            )
        if _WHILE.match(line):
            instead = "a loop has an iname that counts: 'for it while c', and '0 <= it < limit'"
            self.fail(0, len("while"), "there is no 'while' without a 'for'", instead)
        if _CONTINUE.match(line):
            instead = "put the rest of the loop under the opposite condition: 'if not (...)'"
            self.fail(0, len("continue"), "there is no 'continue'", instead)
        brace = line.find("{")
        body = line if brace < 0 else line[:brace]
        parser = ExpressionParser(body, self.position_of)
        words = parser.words
        if ":=" in words:
            if brace >= 0:
                self.fail(brace, len(line) - brace, "a substitution rule takes no options")
            return self.substitution(parser, line)
        shared = self.shared(line, NO_OPTIONS if brace < 0 else self.options(line, brace))
        if words[0] == "...":
            return RawNop(word=self.special(parser), **shared)
        targets = [self.target(parser)]
        while parser.took(","):
            targets.append(self.target(parser))
        (lhs, declared), *others = targets
        operator = words[parser.at]
        at = parser.at
        if operator not in _ASSIGNING:
            self.fail_at_operator(parser, lhs)
        parser.at = at + 1
        rhs = parser.expression()
        if words[parser.at] in _ASSIGNING:
            parser.fail(parser.at, "an instruction holds one assignment")
        parser.finish()
        if others:
            return self.several(targets, operator, rhs, parser, shared)
        if lhs is None:
            parser.fail(
                0, "nothing is assigned: use '<>_' only to drop one of several results", last=at
            )
        if operator != "=":
            if declared is not None:
                parser.fail(at, f"'{operator}' cannot declare: the variable has no value yet")
            rhs = _UPDATES[operator](lhs, rhs)
        return RawAssignment(lhs=lhs, rhs=rhs, declared=declared, **shared)

    def place(self, line: str) -> dict[str, Any]:
        """The text of an item without its comments, and where it stands."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        line = line.replace("\v", "\n")
        lines = line.split("\n")
        above = self.text[self.start :].split("\n")[: len(lines) - 1]  # with their comments
        length = sum(len(one) + 1 for one in above) + len(lines[-1])
        position = SourcePosition(self.text, self.line, self.start - begin + 1, length)
        return {"text": line, "position": position}

    def several(
        self,
        targets: list[tuple[Expression | None, Declared]],
        operator: str,
        rhs: Expression,
        parser: ExpressionParser,
        shared: dict[str, Any],
    ) -> RawAssignment:
        """``v, k = ...``: a target for each result, but for those that are dropped."""
        if operator != "=":
            parser.fail(0, f"'{operator}' updates one variable", last=parser.words.index(operator))
        kept = [(place, *target) for place, target in enumerate(targets) if target[0] is not None]
        if not kept:
            parser.fail(0, "all results are dropped", last=parser.words.index("="))
        if shared["atomic"]:
            parser.fail(0, "an atomic update is of one cell", last=parser.words.index("="))
        if not isinstance(rhs, prim.Call):
            parser.fail(
                parser.words.index("=") + 1,
                f"{len(targets)} results are assigned, but this is one value",
                last=parser.at - 1,
                instead="write an instruction for each; reductions may have several results: "
                "v, k = argmax(k, x[k], k)",
            )
        results, parts, declared = zip(*kept, strict=True)
        return RawAssignment(
            lhs=Record((), parts),
            rhs=rhs,
            declared=declared,
            results=results,
            count=len(targets),
            **shared,
        )

    def declaration(self, parser: ExpressionParser) -> Declared:
        words, at = parser.words, parser.at
        if words[at] != "<":
            return None
        if words[at + 1] == ">":
            parser.at = at + 2
            return "auto"
        if words[at + 2 : at + 3] != [">"]:
            parser.fail(at, "'<' is never closed", instead="a temporary is declared '<> t = ...'")
        parser.at = at + 3
        return parser.type_at(at + 1)

    def target(self, parser: ExpressionParser) -> tuple[Expression | None, Declared]:
        """What is assigned to, and how it is declared; nothing where a result is dropped."""
        declared = self.declaration(parser)
        first = parser.at
        part = None if declared else parser.declared_part(lambda: self.declaration(parser))
        if part is not None:
            return part
        lhs = parser.expression()
        if declared == "auto" and lhs == prim.Variable("_"):
            return None, None
        if not isinstance(lhs, (prim.Variable, prim.Subscript, SubArray)):
            if parser.words[parser.at] in (*_ASSIGNING, ","):
                parser.fail(
                    first,
                    "only a variable or an element of an array can be assigned to",
                    last=parser.at - 1,
                )
            self.fail_at_operator(parser, lhs)
        return lhs, declared

    def fail_at_operator(self, parser: ExpressionParser, lhs: Expression) -> NoReturn:
        at = parser.at
        word = parser.words[at]
        if word in _OTHER_UPDATES:
            parser.fail(at, f"there is no '{word}'", instead=f"write a = a {word[:-1]} b")
        if word == END:
            instead = "an instruction is written 'a[i] = ...'"
            if isinstance(lhs, prim.Comparison) and lhs.operator == "==":
                instead = "an assignment is written with one '='"
            parser.fail(0, "this assignment has no target", last=max(0, at - 1), instead=instead)
        if word not in OPENING and word not in CLOSING:
            parser.fail_expecting("'='")
        parser.fail_at_leftover()

    def special(self, parser: ExpressionParser) -> Literal["nop", "lbarrier", "gbarrier"]:
        """The word of an instruction without work."""
        words = parser.words
        word = next((word for word in _SPECIAL if word == words[1]), None)
        if word is None:
            instead = "the special instructions are '... nop', '... gbarrier' and '... lbarrier'"
            parser.fail_expecting("'gbarrier', 'lbarrier' or 'nop'", instead, at=1)
        if words[2] != END:
            parser.fail(2, f"only options may follow '... {word}'")
        return word

    def substitution(self, parser: ExpressionParser, line: str) -> RawSubstitution:
        words = parser.words
        name = words[0]
        usage = "a substitution rule is written 'f(x, y) := ...' or 'f := ...'"
        if not name.isidentifier() or name in _BLOCK_WORDS:
            parser.fail(0, f"{parser.describe(0)} cannot name a substitution rule", instead=usage)
        arguments: list[str] = []
        parser.at = 1
        if parser.took("("):
            for at in parser.listed(")", usage):
                if not words[at].isidentifier():
                    parser.fail_expecting("the name of an argument", usage)
                if words[at] in arguments:
                    parser.fail(at, f"there are two arguments '{words[at]}'")
                arguments.append(words[at])
                parser.at += 1
        if not parser.took(":="):
            parser.fail_expecting("':='", usage)
        expression = parser.expression()
        parser.finish()
        rule = {"name": name, "arguments": tuple(arguments), "expression": expression}
        return RawSubstitution(**rule, **self.place(line))


def _blanks(skipped: re.Match[str]) -> str:
    length = skipped.end() - skipped.start()
    return " " * (length - 1) + "\v" if skipped[0].endswith("\n") else " " * length
