"""The nouns of what is found in files: objects, where they stand, and what is wrong with them.

`files`, `documents`, `mistakes` and `manifest` make them, and the commands print them. A `Mistake`
knows its object only; a `Problem` knows the file, too.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Path = tuple[str | int, ...]
"""Keys and positions in lists from the object down to a field."""

KEY_SHOWN = 64
"""At most so many characters of a key are shown: a key can be a page of text."""

_PLAIN_KEY = re.compile("[A-Za-z_$][A-Za-z0-9_$-]*")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where an object stands in a text. Only `positions` reads the text again."""

    chunk: str
    """The text between two separators."""
    first_line: int
    document: int = 0
    """Which document of the chunk: several JSON values can follow one another."""
    within: Path = ()
    """The way from the document to the object, which may be an item of a List."""


@dataclass(frozen=True, slots=True)
class Found:
    """One object of a file. `index` counts the file's documents and list items from 1."""

    source: str
    index: int
    object: Mapping[str, Any]
    origin: Origin
    in_directory: bool = False
    """The file was not named, but found in a directory that was."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """Something in an object that a person must mend."""

    path: Path
    sentence: str

    @property
    def field(self) -> str:
        """The path as the API server writes it: `spec.containers[0].image`."""
        return shown_path(self.path)


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake in a file. `name` and `field` are empty, and `line` and `column` are 0, if they are
    not known."""

    source: str
    index: int
    name: str
    field: str
    sentence: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        where = f"{self.source}: document {self.index}" if self.index else self.source
        return ": ".join(part for part in (where, self.name, self.field, self.sentence) if part)


@dataclass(frozen=True, slots=True)
class Note:
    """An object that was left out without being wrong: of another kind, or no Kubernetes object."""

    source: str
    index: int
    sentence: str

    def __str__(self) -> str:
        where = f"{self.source}: document {self.index}"
        return f"{where}: {self.sentence}" if self.sentence else where


def shown_path(path: Path) -> str:
    """`spec.template.metadata.labels[app.kubernetes.io/name]`."""
    out = ""
    for part in path:
        if isinstance(part, int):
            out += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part) is None:
            out += f"[{part[:KEY_SHOWN]}]"
        else:
            out += f".{part[:KEY_SHOWN]}" if out else part[:KEY_SHOWN]
    return out
