"""Every relative link of the documentation leads somewhere, and the front door stays short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.blocks import PAGES, REPOSITORY, without_blocks

README_LINES = 150
ALL = [*PAGES, REPOSITORY / "CONTRIBUTING.md", REPOSITORY / "CHANGELOG.md"]
_LINK = re.compile(r"\[[^\]]+\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@pytest.mark.parametrize("page", ALL, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    broken = []
    for link in _LINK.findall(without_blocks(page)):
        if re.match("[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_listed_in_the_readme() -> None:
    listed = set(_LINK.findall(without_blocks(REPOSITORY / "README.md")))
    pages = {str(page.relative_to(REPOSITORY)) for page in PAGES}
    assert pages - {"README.md"} <= listed


def test_the_readme_fits_a_short_read() -> None:
    lines = (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) <= README_LINES


def anchors(page: Path) -> set[str]:
    """The headings as GitHub addresses them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in _HEADING.findall(without_blocks(page))
    }
