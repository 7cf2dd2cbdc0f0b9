"""What kubectl prints, read as people read it. Called by tests."""

from __future__ import annotations

import re


def columns(out: str) -> dict[str, str]:
    """The one line of `kubectl get` by its heads: by place, as an empty cell is only blanks."""
    head, row = out.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", head)]
    ends = [*starts[1:], None]
    return {
        head[start:end].strip(): row[start:end].strip()
        for start, end in zip(starts, ends, strict=True)
    }


def flat(text: str) -> str:
    """With one blank between words: a sentence may be in it that kubectl has aligned."""
    return " ".join(text.split())
