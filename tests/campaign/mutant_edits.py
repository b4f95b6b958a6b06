"""Small changes of a text, drawn at random: characters, tokens, lines, blocks."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*)|(?P<number>\b\d[\w.]*(?:(?<=e)[+-]\d+f?)?)"
    r"|(?P<word>[A-Za-z_]\w*(?:\.[xyz]\b)?)"
    r"|(?P<sign><<|>>|[<>=!]=|&&|\|\||\+\+|[-+*/%&|^]=|[-+*/%<>=!~&|^?:])|(?P<mark>[;,(){}\[\]])"
)
_TYPES = (
    "int", "long long", "unsigned", "unsigned int", "unsigned long long", "short", "signed char",
    "unsigned char", "unsigned short", "bool", "float", "double", "char", "long", "__half",
)  # fmt: skip
_SUFFIXES = ("u", "LL", "ULL", "U", "l", "f", "lf", ".0", ".0f", "e0", "'0", "_k")
_SIGNS = {
    "arithmetic": ("+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"),
    "comparison": ("<", "<=", ">", ">=", "==", "!="),
    "logic": ("&&", "||", "&", "|"),
    "assignment": ("=", "+=", "-=", "*=", "/=", "|=", "&="),
}
_CALLS = (
    "min",
    "max",
    "lk_min",
    "lk_max",
    "lk_floordiv",
    "lk_mod",
    "abs",
    "fabs",
    "fabsf",
    "sqrtf",
)
_RESERVED = (
    "if", "int", "bool", "auto", "this", "class", "asm", "static", "register", "volatile", "half",
    "unsigned", "typename", "not", "NULL", "threadIdx", "warpSize", "min", "sqrtf", "true", "std",
    "lambda", "printf", "int4", "main", "memcpy",
)  # fmt: skip
_DATA = re.compile(r"^ +(?:[\w.]+|[\w.]+\[.*\]) [-+*/|&]?= ")
_DECLARED = re.compile(r"^    (?:__shared__ (?:__align__\(\d+\) )?)?[a-z_][\w ]*? \w+(?:\[\d+\])*;")

Edit = Callable[[random.Random, str], str | None]


def _tokens(text: str, kind: str) -> list[re.Match[str]]:
    start = text.index('extern "C"')
    return [m for m in _TOKEN.finditer(text, start) if m.lastgroup == kind]


def _put(text: str, at: re.Match[str], new: str) -> str:
    return text[: at.start()] + new + text[at.end() :]


def _body(text: str) -> tuple[list[str], int]:
    """The lines, and the number of the first inside the function."""
    lines = text.split("\n")
    return lines, lines.index("{") + 1


def _one(r: random.Random, text: str, pattern: str) -> re.Match[str] | None:
    start = text.index('extern "C"')
    found = list(re.compile(pattern, re.MULTILINE).finditer(text, start))
    return r.choice(found) if found else None


# {{{ tokens


def number(r: random.Random, text: str) -> str | None:
    """Another number, or another way to write one."""
    found = _tokens(text, "number")
    if not found:
        return None
    at = r.choice(found)
    old = at[0]
    digits = re.match(r"\d+", old)
    value = int(digits[0]) if digits else 0
    rest = old[len(digits[0]) :] if digits else ""
    changed = r.choice(
        [
            str(value + 1), str(max(0, value - 1)), str(value * 2), str(value // 2), "0", "1", "2",
            str(value + 2**32), str(value + 2**31), str(value + 2**64), f"-{value}", f"0{value}",
            f"0x{value}", f"0b{value:b}", f"0{value:o}", str(value)[::-1], f"{value}{value}",
            str(value + 8), f"1{value}", f"{value}0",
        ]
    )  # fmt: skip
    return _put(text, at, changed + rest)


def suffix(r: random.Random, text: str) -> str | None:
    """A literal of another type."""
    found = _tokens(text, "number")
    if not found:
        return None
    at = r.choice(found)
    plain = re.sub(r"(LL|ULL|u|f)$", "", at[0])
    return _put(text, at, plain + r.choice((*_SUFFIXES, "")))


def sign(r: random.Random, text: str) -> str | None:
    """Another operator."""
    at = r.choice(_tokens(text, "sign"))
    kinds = [signs for signs in _SIGNS.values() if at[0] in signs]
    pool = r.choice(kinds) if kinds and r.random() < 0.9 else ("-", "!", "~", "+", "--", "")
    return _put(text, at, r.choice(pool))


def word(r: random.Random, text: str) -> str | None:
    """Another name of the text."""
    found = _tokens(text, "word")
    at = r.choice(found)
    if "Idx." in at[0] and r.random() < 0.7:
        pool = [f"{w}.{axis}" for w in ("threadIdx", "blockIdx", "blockDim") for axis in "xyz"]
    elif at[0] in _CALLS:
        pool = list(_CALLS)
    else:
        pool = [m[0] for m in found]
    return _put(text, at, r.choice(pool))


def reserved(r: random.Random, text: str) -> str:
    """A name that C++ or CUDA has for itself, wherever another one stands, or in front of it."""
    at, new = r.choice(_tokens(text, "word")), r.choice(_RESERVED)
    if r.random() < 0.3:
        return _put(text, at, f"{new} {at[0]}")
    start = text.index('extern "C"')
    return text[:start] + re.sub(rf"(?<![\w.\"]){re.escape(at[0])}\b", new, text[start:])


def ctype(r: random.Random, text: str) -> str | None:
    """Another type in a declaration, a loop or a cast."""
    at = _one(
        r, text, r"\b(?:unsigned long long|unsigned int|long long|unsigned|int|float|double)\b"
    )
    return _put(text, at, r.choice(_TYPES)) if at else None


def cast(r: random.Random, text: str) -> str | None:
    """A cast more, or less."""
    if r.random() < 0.4:
        at = _one(r, text, r"\((?:unsigned |long |int|short|float|double)[a-z ]*\)")
        return _put(text, at, "") if at else None
    at = r.choice([*_tokens(text, "word"), *_tokens(text, "number")])
    return _put(text, at, f"({r.choice(_TYPES)}){at[0]}")


def operand(r: random.Random, text: str) -> str | None:
    """Something before or behind an operand."""
    at = r.choice([*_tokens(text, "word"), *_tokens(text, "number")])
    more = r.choice(
        [
            "-{}", "!{}", "~{}", "{} + 1", "{} - 1", "({} + 1)", "({} - 1)", "2 * {}", "({} / 2)",
            "({} % 3)", "({} << 1)", "({} >> 1)", "({} >> 4294967297)", "({} >> 32)", "({} << 33)",
            "({} - 1u)", "({} + 0)", "({} ? 1 : 0)", "min({}, 3)", "max({}, 1)", "- -{}", "+{}",
            "({} * 1.0f)", "(int)({} * 1.0f)", "({} & 7)", "({} | 1)", "({}, 1)", "{}[0]", "&{}",
        ]
    )  # fmt: skip
    return _put(text, at, more.format(at[0]))


def parentheses(r: random.Random, text: str) -> str | None:
    """A pair of parentheses less."""
    start = text.index("\n{\n")
    opened: list[int] = []
    pairs = []
    for at in range(start, len(text)):
        if text[at] == "(":
            opened.append(at)
        elif text[at] == ")" and opened:
            pairs.append((opened.pop(), at))
    if not pairs:
        return None
    first, last = r.choice(pairs)
    return text[:first] + text[first + 1 : last] + text[last + 1 :]


def subscripts(r: random.Random, text: str) -> str | None:
    """Subscripts or arguments the other way round."""
    pattern = r.choice(
        [
            r"\[([^\[\]]*)\]\[([^\[\]]*)\]",
            r"\(([^(),]*), ([^(),]*)\)",
            r"([\w.]+) (?:[-+*/%<>]|&&|[<>=!]=) ([\w.]+)",
        ]
    )
    at = _one(r, text, pattern)
    if at is None:
        return None
    (a, b), (c, d) = at.span(1), at.span(2)
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


# }}}

# {{{ characters


def character(r: random.Random, text: str) -> str:
    """A character less, more, or another."""
    at = r.randrange(text.index('extern "C"'), len(text) - 1)
    pool = r.choice(["0123456789", "+-*/%<>=!&|^~", "()[]{};,.:?", "\\\n\t \r\f", "xuLfe'\"#@$_"])
    new = r.choice(["", text[at] * 2, r.choice(pool), text[at] + r.choice(pool)])
    return text[:at] + new + text[at + 1 :]


def comment(r: random.Random, text: str) -> str | None:
    """Comments that C ends elsewhere."""
    lines, first = _body(text)
    at = r.randrange(first, len(lines) - 1)
    tail = r.choice(["\\", " \\ ", " ??/", " // \\", " /*", "*/", " // ??/", " /* x */", "\\\n"])
    if r.random() < 0.3:
        commented = [k for k in range(first, len(lines)) if "//" in lines[k]]
        at = r.choice(commented) if commented else at
    lines[at] += tail
    return "\n".join(lines)


# }}}

# {{{ lines and blocks


def line(r: random.Random, text: str) -> str | None:
    """A line less, twice, moved, hidden, or joined to the next."""
    lines, first = _body(text)
    if len(lines) - first < 4:
        return None
    at, to = (r.randrange(first, len(lines) - 2) for _ in range(2))
    how = r.randrange(7)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines.insert(to, lines[at])
    elif how == 2:
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    elif how == 3:
        lines.insert(to, lines.pop(at))
    elif how == 4:
        lines[at] = "//" + lines[at]
    elif how == 5:
        lines[at : at + 2] = [lines[at].split("//")[0] + lines[at + 1].lstrip()]
    else:
        lines[at], lines[to] = lines[to], lines[at]
    return "\n".join(lines)


def barrier(r: random.Random, text: str) -> str | None:
    """A barrier less, weaker, elsewhere, or under a guard."""
    lines, first = _body(text)
    found = [k for k in range(first, len(lines)) if "__sync" in lines[k]]
    if not found:
        lines.insert(r.randrange(first, len(lines) - 1), "    __syncthreads();")
        return "\n".join(lines)
    at = r.choice(found)
    how = r.randrange(5)
    if how == 0:
        del lines[at]
    elif how == 1:
        lines[at] = lines[at].replace("__syncthreads", "__syncwarp")
    elif how == 2:
        lines.insert(r.randrange(first, len(lines) - 2), lines.pop(at))
    elif how == 3:
        guard = r.choice(
            ["threadIdx.x < 1", "blockIdx.x == 0", "threadIdx.x < 16", "false", "true"]
        )
        lines.insert(at, f"    if ({guard})")
    else:
        lines[at] = lines[at].replace("()", r.choice(["(0)", "(1)", "(-1)", "(0xffffffff)"]))
    return "\n".join(lines)


def exchange(r: random.Random, text: str) -> str | None:
    """Lanes that exchange otherwise, other atomic updates, or plain ones in their place."""
    shuffle = _one(r, text, r"__shfl(_xor|_down|)_sync\(([^,]*), (\w+), ([^)]*)\)")
    atomic = _one(r, text, r"atomic(\w+)\((&?)(.*), ([^,]*)\);")
    scratch = _one(r, text, r"(\w+)\[[^\]]*threadIdx[^\]]*\]")
    at = r.choice([shuffle, atomic, scratch])
    if at is None:
        return None
    if at is scratch:
        return _put(text, at, r.choice([f"{at[1]}[0]", f"{at[0][:-1]} + 1]", f"{at[0][:-1]} / 2]"]))
    how = r.randrange(5)
    if at is atomic:
        word, _, place, value = at.groups()
        place = place.removeprefix("&")
        kinds = ("Add", "Max", "Min", "Or", "And", "Xor", "Exch", "Sub", "Add_block")
        changed = f"atomic{r.choice(kinds)}(&{place}, {value});"
        plain = (f"{place} += {value};", f"{place} = {value};", f"{place} = {place} + {value};")
        again = f"{at[0]} {at[0]}"
        return _put(text, at, (changed, changed, r.choice(plain), again, r.choice(plain))[how])
    word, mask, value, lanes = shuffle.groups() if shuffle is not None else ("", "", "", "")
    if how == 0:
        word = r.choice(["", "_xor", "_down", "_up"])
    elif how == 1:
        mask = r.choice(["~0u", "0u", "1u", "31u", "65535u", f"{mask} >> 1", f"{mask} & 7u"])
    elif how in (2, 3):
        lanes = r.choice([f"{lanes} + 1", "0", "1", "3", "16", "31", "32", f"2 * {lanes}"])
    else:
        return _put(text, at, r.choice([value, f"{at[0][:-1]}, 16)", f"{at[0][:-1]}, 8)"]))
    return _put(text, at, f"__shfl{word}_sync({mask}, {value}, {lanes})")


def guard(r: random.Random, text: str) -> str | None:
    """A guard less, another one, or its other branch."""
    lines, first = _body(text)
    found = [k for k in range(first, len(lines)) if lines[k].lstrip().startswith("if (")]
    how = r.randrange(6)
    if not found or how == 0:
        written = [k for k in range(first, len(lines)) if _DATA.match(lines[k])]
        if not written:
            return None
        at = r.choice(written)
        names = sorted(set(re.findall(r"[a-z]\w*(?:\.[xyz])?", lines[at])))
        asked = f"{r.choice(names)} {r.choice(_SIGNS['comparison'])} {r.randrange(4)}"
        lines.insert(at, f"    if ({asked})")
        return "\n".join(lines)
    at = r.choice(found)
    inner = re.search(r"if \((.*)\)( \{)?$", lines[at].split("//")[0].rstrip())
    if inner is None:
        return None
    parts = inner[1].split(" && ")
    if how == 1:
        lines[at] = lines[at].replace(inner[1], "true")
    elif how == 2 and len(parts) > 1:
        parts.pop(r.randrange(len(parts)))
        lines[at] = lines[at].replace(inner[1], " && ".join(parts))
    elif how == 3:
        lines[at] = lines[at].replace(inner[1], f"!({inner[1]})")
    elif how == 4:
        lines[at] = lines[at].replace(" && ", " || ", 1)
    else:
        lines[at] = lines[at].replace("if (", r.choice(["while (", "else if (", "if (0 + "]))
    return "\n".join(lines)


def loop(r: random.Random, text: str) -> str | None:
    """A loop that starts, ends or steps elsewhere."""
    at = _one(r, text, r"for \(([\w ]+) (\w+) = ([^;]*); (\w+) (<=?) ([^;]*); ([^)]*)\)")
    if at is None:
        return None
    kind, name, low, _, compare, high, step = at.groups()
    how = r.randrange(8)
    if how == 0:
        low = r.choice([f"{low} + 1", f"{low} - 1", "0", "1", high])
    elif how == 1:
        high = r.choice([f"{high} + 1", f"{high} - 1", f"({high}) / 2", f"{high} + 0u", low])
    elif how == 2:
        compare = r.choice(["<", "<=", "!=", ">", ">="])
    elif how == 3:
        step = r.choice([f"{name} += {k}" for k in (2, 3, "0", "01", "1u", "-1")] + [f"--{name}"])
    elif how == 4:
        kind = r.choice(_TYPES)
    elif how == 5:
        low, high, step = f"{high} - 1", f"{low} - 1", f"--{name}"
        compare = ">"
    elif how == 6:
        step = f"{name}++"
    else:
        name = r.choice([m[0] for m in _tokens(text, "word")])
    return _put(text, at, f"for ({kind} {name} = {low}; {name} {compare} {high}; {step})")


def declaration(r: random.Random, text: str) -> str | None:
    """A variable of another size, place or alignment, or one that is declared again."""
    lines, first = _body(text)
    found = [k for k in range(first, len(lines)) if _DECLARED.match(lines[k])]
    how = r.randrange(7)
    if not found or how == 0:
        at = _one(r, text, r"\b(?:const )?\*(?:__restrict__ )?|\bconst\b|__restrict__ ")
        new = r.choice(["", "const *", "*", "volatile *", "*__restrict__ ", "**", "&"])
        return _put(text, at, new) if at else None
    at_line = r.choice(found)
    old = lines[at_line]
    if how == 1:
        lines.insert(r.randrange(first, len(lines) - 1), old)
    elif how == 2:
        lines[at_line] = re.sub(r"\[(\d+)\]", lambda m: f"[{max(0, int(m[1]) - 1)}]", old, count=1)
    elif how == 3:
        lines[at_line] = re.sub(r"__align__\(\d+\)", f"__align__({r.choice([17, 8, 3, 0])})", old)
    elif how == 4:
        lines[at_line] = old.replace("__shared__ ", r.choice(["", "static ", "__constant__ "]))
    elif how == 5:
        lines[at_line] = "    __shared__ " + old.lstrip()
    else:
        lines.insert(r.randrange(first, len(lines) - 1), lines.pop(at_line))
    return "\n".join(lines)


# }}}

EDITS: tuple[tuple[Edit, int], ...] = (
    (number, 14),
    (suffix, 4),
    (sign, 14),
    (word, 14),
    (reserved, 4),
    (ctype, 5),
    (cast, 6),
    (operand, 12),
    (parentheses, 5),
    (subscripts, 5),
    (character, 6),
    (comment, 4),
    (line, 12),
    (barrier, 6),
    (exchange, 10),
    (guard, 8),
    (loop, 8),
    (declaration, 5),
)


def mutant(r: random.Random, text: str) -> tuple[str, str]:
    """A changed text, and the names of the changes that made it."""
    names, weights = [e for e, _ in EDITS], [w for _, w in EDITS]
    changed, made = text, []
    while not made or r.random() < 0.2:
        edit = r.choices(names, weights)[0]
        try:
            found = edit(r, changed)
        except ValueError:  # the first change left nothing for this one
            return changed, " ".join(made)
        if found is not None and found != changed:
            changed = found
            made.append(edit.__name__)
    return changed, " ".join(made)
