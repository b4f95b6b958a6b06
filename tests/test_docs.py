"""The pages in `docs/`: their code runs, and prints what stands below it."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest
from printed_pages import check_page
from seams import registered_transforms as registered

from loopkit import transforms

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGES = {str(page.relative_to(DOCS)): page for page in sorted(DOCS.glob("**/*.md"))}


@pytest.mark.parametrize("name", PAGES)
def test_page(name: str, request: pytest.FixtureRequest) -> None:
    """Each block of text is what the block of Python before it prints."""
    check_page(PAGES[name], request.config.getoption("--regenerate-goldens"))


def test_every_page_is_listed() -> None:
    """The site leads to each page: an index of its folder, or of the one above, names it."""
    listed = {"index.md"}
    for name, page in PAGES.items():
        for body in re.findall(r"^```{toctree}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
            lines = [line for line in body.splitlines() if line and not line.startswith(":")]
            targets = [re.sub(r".*<(.+)>", r"\1", line) for line in lines]
            listed |= {str(Path(name).parent / f"{target}.md") for target in targets}
    assert sorted(listed) == sorted(PAGES)


def test_every_example_has_a_page() -> None:
    """One of its own, which the gallery names."""
    examples = {p.stem for p in (DOCS.parent / "examples").glob("*.py") if p.stem[0] != "_"}
    assert {p.stem for p in (DOCS / "gallery").glob("*.md")} - {"index"} == examples
    named = re.findall(
        r"^```{examples} (.+)$", (DOCS / "gallery/index.md").read_text("utf-8"), re.M
    )
    assert sorted(" ".join(named).split()) == sorted(examples)


OF_KERNELS = ["fuse_kernels", "to_batched", "make_einsum", "merge"]
"""What makes kernels of kernels, or of what is not one yet: no steps, and shown beside them."""


def test_every_transform_has_its_place() -> None:
    """Each is shown on one page of its family, which ends with what it takes and raises."""
    headings: list[str] = []
    for page in (DOCS / "transforms").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        found = re.findall(r"^## (\w+)$", text, re.MULTILINE)
        assert re.findall(r"^```{public-names} (\w+)$", text, re.MULTILINE) == found
        headings += found
    assert sorted(headings) == sorted([*registered, *OF_KERNELS])


@pytest.mark.parametrize("name", registered)
def test_transforms_say_what_they_take_and_raise(name: str) -> None:
    """Each shows a kernel before and after, names its arguments and its errors."""
    function = getattr(transforms, name)
    text = function.__doc__
    assert "Before" in text and "After" in text and ":raises" in text
    arguments = set(inspect.signature(function).parameters) - {"kernel", "unchecked"}
    assert not {a for a in arguments if not re.search(rf"\b{a}\b", text)}


def test_architecture_page_names_every_package() -> None:
    """The modules that the page names exist, and no package is missing."""
    root = DOCS.parent
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = set(
        re.findall(r"`((?:loopkit|codegen|tests)/[\w/.]*|transforms(?:/[\w/.]*)?|codegen)`", text)
    )
    assert len(named) > 40
    assert not [path for path in named if not (root / path).exists()]
    packages = {
        str(init.parent.relative_to(root))
        for folder in ("loopkit", "codegen", "transforms")
        for init in (root / folder).glob("**/__init__.py")
        if not init.parent.is_symlink()
    }
    assert sorted(packages - {"loopkit"} - named) == []


def test_owners_of_concepts_exist() -> None:
    """Each function and class in the table of owners is defined in the module beside it."""
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| `([\w/]+\.py)` \| (`\w+`(?:, `\w+`)*) \|$", text, re.M)
    assert len(rows) > 40
    for _, module, names in rows:
        body = ast.parse((DOCS.parent / module).read_text(encoding="utf-8")).body
        defined = {n.name for n in body if isinstance(n, ast.FunctionDef | ast.ClassDef)}
        assert not [name for name in re.findall(r"\w+", names) if name not in defined], module


def test_tools_have_pages() -> None:
    """Each folder of tools has a page that `docs/testing.md` leads to; what pages name exists."""
    root = DOCS.parent
    testing = (DOCS / "testing.md").read_text(encoding="utf-8")
    folders = [init.parent for init in (root / "tests").glob("*/__init__.py")]
    pages = [folder / "README.md" for folder in [*folders, root / "benchmarks"]]
    assert len(pages) > 4
    assert not [p for p in pages if f"(../{p.relative_to(root)})" not in testing or not p.exists()]
    for page in [*pages, *PAGES.values(), root / "README.md"]:
        text = page.read_text(encoding="utf-8")
        named = re.findall(
            r"python (?:-m pytest )?((?:tests|benchmarks|examples)/[\w/]+\.py)", text
        )
        named += [m.replace(".", "/") for m in re.findall(r"python -m (tests\.[\w.]+)", text)]
        assert not [n for n in named if not ((root / n).exists() or (root / f"{n}.py").exists())]
        for link in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / link).exists(), f"{page.name} leads to {link}"
