"""Random texts of domains, each with the same condition as Python would compute it."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st


@dataclass(frozen=True)
class Said:
    """A piece of a domain's text, and the Python that means the same."""

    text: str
    python: str

    def eval(self, **names: int) -> bool:
        """Whether the condition holds."""
        return bool(eval(self.python, dict(names)))


def _divisor(draw: st.DrawFn) -> str:
    divisor = draw(st.sampled_from([2, 3, 4, 5, -1, -2, -3, -4]))
    return str(divisor) if divisor > 0 or draw(st.booleans()) else f"({divisor})"


@st.composite
def value(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> Said:
    """An affine expression of names with divisions; an operand as it stands."""
    kind = draw(st.sampled_from(["name", "name", "number", "sum", "sum", "scaled", "div", "mod"]))
    if depth == 0 or kind in ("name", "number"):
        number = str(draw(st.integers(0, 9)))
        text = number if kind == "number" else draw(st.sampled_from(names))
        return Said(text, text)
    left = draw(value(names, depth - 1))
    if kind == "sum":
        right = draw(value(names, depth - 1))
        sign = draw(st.sampled_from("+-"))
        return Said(f"({left.text} {sign} {right.text})", f"({left.python} {sign} {right.python})")
    if kind == "scaled":
        factor = draw(st.sampled_from([2, 3, -1, -2]))
        form = draw(st.sampled_from(["{f}*{x}", "{x}*{f}", "{f} * {x}"]))
        return Said(f"({form.format(f=factor, x=left.text)})", f"({factor}*{left.python})")
    divisor = _divisor(draw)
    if kind == "mod":
        word = draw(st.sampled_from(["mod", "%"]))
        return Said(f"({left.text} {word} {divisor})", f"({left.python} % {divisor})")
    forms = ["({x} // {d})", "floor({x} / {d})", "floord({x}, {d})", "(-ceil(-{x} / {d}))"]
    form = draw(st.sampled_from(forms))
    return Said(form.format(x=left.text, d=divisor), f"({left.python} // {divisor})")


@st.composite
def comparison(draw: st.DrawFn, names: tuple[str, ...]) -> Said:
    """Two or three values compared."""
    count = draw(st.sampled_from([2, 2, 3]))
    values = [draw(value(names)) for _ in range(count)]
    text, python = values[0].text, values[0].python
    for one in values[1:]:
        relation = draw(st.sampled_from(["<", "<=", ">", ">=", "=", "!="]))
        text += f" {relation} {one.text}"
        python += f" {'==' if relation == '=' else relation} {one.python}"
    return Said(text, f"({python})")


@st.composite
def condition(draw: st.DrawFn, names: tuple[str, ...], depth: int = 2) -> Said:
    """Comparisons joined by words."""
    kinds = ["comparison", "comparison", "and", "or", "not", "exists", "stride", "implies"]
    kind = draw(st.sampled_from(kinds))
    if depth == 0 or kind == "comparison":
        return draw(comparison(names))
    if kind == "stride":
        # What a person writes: every third one, by a quantifier.
        stride, first = draw(st.integers(2, 4)), draw(value(names, 1))
        name = draw(st.sampled_from(names))
        form = draw(
            st.sampled_from(["exists (e: {})", "(exists e: {})", "(exists e, f: f = e and {})"])
        )
        text = form.format(f"{name} = {stride}*e + {first.text}")
        return Said(text, f"({name} - {first.python}) % {stride} == 0")
    if kind == "not":
        inner = draw(condition(names, depth - 1))
        return Said(f"not ({inner.text})", f"(not {inner.python})")
    if kind == "exists":
        q = f"q{depth}"
        inner = draw(condition((*names, q), depth - 1))
        low, high = sorted((draw(st.integers(-4, 4)), draw(st.integers(-4, 4))))
        return Said(
            f"(exists {q}: {low} <= {q} <= {high} and ({inner.text}))",
            f"any({inner.python} for {q} in range({low}, {high + 1}))",
        )
    left, right = draw(condition(names, depth - 1)), draw(condition(names, depth - 1))
    if kind == "implies":
        return Said(
            f"(({left.text}) implies {right.text})", f"(not {left.python} or {right.python})"
        )
    return Said(f"({left.text} {kind} {right.text})", f"({left.python} {kind} {right.python})")
