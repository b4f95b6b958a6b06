"""``python -m tests.lines``: the lines of code of each package, against its budget.

A line of code holds code: blank lines, comments, docstrings and imports are not counted, so that
nothing is gained by leaving out what helps a reader.  ``budget.toml`` holds the budgets.  To raise
one is a commit of its own, which says why.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = ROOT / "budget.toml"
LINKS = {("loopkit", "transforms"), ("loopkit", "codegen")}
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}


def product_files(root: Path = ROOT) -> Iterator[Path]:
    """The Python files of the product, relative to ``root``, each once."""
    for top in ("loopkit", "transforms", "codegen"):
        for path in sorted((root / top).rglob("*.py")):
            inside = path.relative_to(root)
            if inside.parts[:2] not in LINKS:
                yield inside


def package_of(path: Path) -> str:
    """The package that a file belongs to; packages inside of ``transforms`` are part of it."""
    depth = 1 if path.parts[0] == "transforms" else 2
    return "/".join(path.parent.parts[:depth])


def count_code_lines(text: str) -> int:
    """How many lines of a Python file hold code."""
    uncounted: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        is_text = (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        )
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            uncounted.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - uncounted)


def package_lines(root: Path = ROOT) -> Counter[str]:
    """The lines of code of each package."""
    lines: Counter[str] = Counter()
    for path in product_files(root):
        lines[package_of(path)] += count_code_lines((root / path).read_text(encoding="utf-8"))
    return lines


def budget_errors(lines: Counter[str], budget: dict[str, int]) -> list[str]:
    """What is wrong: packages without a budget or above it, and budgets without a package."""
    errors = [f"{name} has no budget" for name in sorted(lines.keys() - budget.keys())]
    errors += [f"{name} is no package" for name in sorted(budget.keys() - lines.keys())]
    errors += [
        f"{name} has {lines[name]:,} lines of code, {lines[name] - budget[name]:,} too many"
        for name in sorted(lines.keys() & budget.keys())
        if lines[name] > budget[name]
    ]
    return errors


def main() -> None:
    """Print the table; exit with 1 where a budget does not hold."""
    budget = tomllib.loads(BUDGET.read_text(encoding="utf-8"))["lines-of-code"]
    lines = package_lines()
    for name, count in lines.most_common():
        print(f"{count:8,} of {budget.get(name, 0):6,}  {name}")
    print(f"{lines.total():8,} of {sum(budget.values()):6,}  in all")
    if errors := budget_errors(lines, budget):
        sys.exit("\n".join(errors) + f"\nbudgets are in {BUDGET.name}")


if __name__ == "__main__":
    main()
