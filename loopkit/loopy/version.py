"""Versions of the language, of which there is one here."""

from __future__ import annotations

VERSION = (2025, 2)
VERSION_TEXT = "2025.2"
"""The version of Loopy whose interface this follows."""
MOST_RECENT_LANGUAGE_VERSION = (2018, 2)
LOOPY_USE_LANGUAGE_VERSION_2018_1 = True
LOOPY_USE_LANGUAGE_VERSION_2018_2 = True
