"""Finds the name that was meant, for a name that is not known."""

import difflib
from collections.abc import Collection, Container, Iterable, Mapping
from typing import Any

CLOSE_ENOUGH = 0.75
"""Of `difflib`: `schedul` is this near to `schedule`, and `image` is not to `stage`."""

LONGEST_COMPARED = 64
"""A longer name is no slip of the finger, and comparing takes time by its length."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that was probably meant; None if none is near."""
    if len(name) > LONGEST_COMPARED:
        return None
    by_plain = {_plain(each): each for each in known}
    found = difflib.get_close_matches(_plain(name), by_plain, n=1, cutoff=CLOSE_ENOUGH)
    return by_plain[found[0]] if found else None


def nearest_field(
    name: str, known: Collection[str], given: Mapping[str, Any], taken: Container[str]
) -> tuple[str | None, str | None]:
    """The field that a misspelt one stands for, and the field to name in a sentence. The two differ
    where the field that was meant is given or taken as well: the misspelt one stands for none."""
    absent = [each for each in known if given.get(each) is None and each not in taken]
    meant = nearest(name, absent)
    return meant, meant or nearest(name, known)


def _plain(name: str) -> str:
    """Small and capital letters, `-` and `_` make no difference: time_zone means timeZone."""
    return name.lower().replace("-", "").replace("_", "")
