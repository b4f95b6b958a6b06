"""Pages read back: well formed, with nothing in them that acts."""

from __future__ import annotations

from html.parser import HTMLParser

EMPTY = frozenset(("br", "hr", "img", "input", "col", "wbr"))


class Page(HTMLParser):
    """The tags of a page, all of them closed, its attributes, and its text without style sheets."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open
        assert not {"script", "iframe", "object", "link", "img"} & set(self.tags)
        assert not [name for name, _ in self.attributes if name.startswith("on")]
        assert not [v for name, v in self.attributes if name in ("href", "src") and v[:1] != "#"]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in EMPTY:
            self.open.append(tag)
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.texts.append(data)

    @property
    def text(self) -> str:
        """All text, as if it were one line."""
        return "".join(self.texts)

    def values(self, attribute: str) -> list[str | None]:
        """All values of an attribute, in order."""
        return [value for name, value in self.attributes if name == attribute]


def contrast(one: str, other: str) -> float:
    """How much lighter one colour is than another, from 1 to 21 (WCAG 2.2, "contrast ratio")."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = [c / 255 for c in bytes.fromhex(colour[1:])]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
