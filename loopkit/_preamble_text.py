"""Which C++ a user may put in front of a kernel: definitions that cannot change the kernel's text.

A definition becomes part of the generated source.  Therefore it must be plain ASCII, undefine its
macros, declare no name that loopkit or the compilers use (except those of complex types), and
contain neither includes nor another kernel.  Whether it compiles is left to the compiler.
"""

from __future__ import annotations

import re
from itertools import accumulate

from loopkit._errors import InvalidArgumentError
from loopkit._spelling import meaning, shown

_SKIPPED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*", re.ASCII)
_DIRECTIVE = re.compile(r"^ *# *(\w*) *(.*)$", re.ASCII)
_HEADERS = frozenset(("<cuda_fp16.h>", "<cuda_bf16.h>"))
_CONDITIONS = {"if": 1, "ifdef": 1, "ifndef": 1, "elif": 0, "else": 0, "endif": -1, "error": 0}
_OPERATOR = re.compile(r"\boperator\b[^{;]*\blk_complex", re.ASCII)
_OPERATORS = 10_000
"""As many operators a definition may have: compilers take minutes for ten times as many."""
_FOREIGN = {
    re.compile(r"(?!lk_complex(64|128)$)(?:lk|LK|LOOPKIT)_\w*"): (
        "names that begin so are loopkit's own"
    ),
    re.compile(r"__global__|__launch_bounds__|__grid_constant__"): "it would be another kernel",
    re.compile(r"threadIdx|blockIdx|blockDim|gridDim|__shared__|clock|clock64"): (
        "what a function gives depends on its arguments alone, not on who calls it, or when"
    ),
    re.compile(
        r"__sync\w*|__shfl\w*|__ballot\w*|__activemask|__any_sync|__all_sync|atomic[A-Z]\w*"
    ): (
        "a function that is called under a condition cannot wait for other threads, or change "
        "what they see"
    ),
}


def definition(given: str, what: str) -> str:
    """The text of a definition as it will stand in a source, without blank lines at its ends.

    :raises InvalidArgumentError: for what no definition may hold; ``what`` names the text.
    """
    text = given.replace("\r\n", "\n").replace("\\\n", " ").expandtabs(4)
    for line in text.split("\n"):
        if not (line.isascii() and (line.isprintable() or not line)):
            raise _refused(what, f"{shown(line.strip())} is no plain ASCII")
    for mark in ("??", "%:", 'R"'):
        if mark in text:
            raise _refused(what, f"it contains {mark}, which compilers interpret differently")
    code = _SKIPPED.sub(" ", text)
    if "/*" in code or "*/" in code or '"' in code:
        raise _refused(what, "a comment or a text in it has no end")
    if (count := len(re.findall(r"[-+*/%&|^<>=?!]+", code))) > _OPERATORS:
        why = f"compilers take minutes for {count:,} operators, and a loop over a table has fewer"
        raise _refused(what, f"{why}; {_OPERATORS:,} are possible")
    _check_directives(code, what)
    _check_words(code, what)
    if _OPERATOR.search(code):
        raise _refused(what, "what an operator does with complex numbers is loopkit's to say")
    for opening, closing in ("{}", "()", "[]"):
        depths = [*accumulate((c == opening) - (c == closing) for c in code)]
        if depths and (depths[-1] or min(depths) < 0):
            raise _refused(what, f"it has {opening} without {closing}, or the other way round")
    _check_state(code, what)
    return "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))


def macros(text: str) -> tuple[str, ...]:
    """The macros that a definition defines: they are taken back below all definitions."""
    found = (_DIRECTIVE.match(line) for line in _SKIPPED.sub(" ", text).split("\n"))
    names = (_macro(match[2]) for match in found if match and match[1] == "define")
    return tuple(dict.fromkeys(names))


def words(text: str) -> frozenset[str]:
    """All words of a definition, those of comments left out."""
    return frozenset(_WORD.findall(_SKIPPED.sub(" ", text)))


def defined(text: str) -> frozenset[str]:
    """The names by which other definitions would see this one: of macros and of functions."""
    code = _SKIPPED.sub(" ", text)
    outside, depth = [], 0
    for part in re.split(r"([{}])", code):
        if part in ("{", "}"):
            depth += 1 if part == "{" else -1
        elif depth == 0:
            outside.append(part)
    named = re.findall(r"([A-Za-z_]\w*)\s*\(", " ".join(outside))
    return frozenset((*macros(text), *(name for name in named if not meaning(name))))


def _macro(rest: str) -> str:
    found = re.match(r"\w*", rest.strip(), re.ASCII)
    return found[0] if found else ""


def _check_directives(code: str, what: str) -> None:
    depth = 0
    for line in code.split("\n"):
        match = _DIRECTIVE.match(line)
        if match is None:
            continue
        word, rest = match[1], match[2].strip()
        if word in _CONDITIONS:
            depth += _CONDITIONS[word]
        elif word in ("define", "undef"):
            macro = _macro(rest)
            said = meaning(macro)
            if said or not macro:
                raise _refused(what, f"'#{word} {macro}': the name is {said or 'missing'}")
        elif not (word == "include" and rest in _HEADERS) and (word, rest) != ("pragma", "unroll"):
            raise _refused(what, f"it contains '{line.strip()}'")
        if depth < 0:
            raise _refused(what, "an #endif in it ends nothing")
    if depth:
        raise _refused(what, "an #if in it has no #endif")


def _check_state(code: str, what: str) -> None:
    """Refuse variables that outlive a call and are not constant."""
    for part in re.split(r"[{};]", code):
        declared = part.partition("=")[0]
        words_ = frozenset(_WORD.findall(declared))
        if "(" in declared or not words_ & _OUTLIVING or words_ & _CONSTANT:
            continue
        name = re.findall(r"[A-Za-z_]\w*", re.sub(r"\[[^]]*\]", "", declared))[-1]
        raise _refused(what, f"'{name}' would be kept from one call to the next, and is not const")


_OUTLIVING = frozenset(("static", "__device__", "__managed__"))
_CONSTANT = frozenset(("const", "constexpr", "__constant__", "struct", "class", "union", "enum"))


def _check_words(code: str, what: str) -> None:
    for word in _WORD.findall(code):
        for pattern, why in _FOREIGN.items():
            if pattern.fullmatch(word):
                raise _refused(what, f"it names '{word}': {why}")


def _refused(what: str, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{what} cannot be put above a kernel: {why}",
        instead="definitions of functions, types, tables and macros can, and <cuda_fp16.h> and "
        "<cuda_bf16.h> are included if need be",
    )
