"""The SQL of a store, from the files of its package: statements by name, and migrations by number.

A file of statements has a line `-- name: ...` before each. The first line of a migration says the
oldest program that may still write after it; the number of a program is that of the last migration
that it knows. A migration never changes once it was released. Pure, but for reading the package.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_MIGRATION = re.compile(r"(\d{4})_(\w+)\.sql")
_FIRST_LINE = re.compile(r"-- oldest program that may still write: (\d+)\n")


@dataclass(frozen=True, slots=True)
class Migration:
    number: int
    name: str
    oldest_writer: int
    text: str


@cache
def statements(package: str) -> Mapping[str, str]:
    """By name, of all files `*.sql` of a package."""
    found: dict[str, str] = {}
    for file in sorted(files(package).iterdir(), key=lambda file: file.name):
        if not file.name.endswith(".sql"):
            continue
        _, *parts = _NAME.split(file.read_text(encoding="utf-8"))
        for name, statement in zip(parts[::2], parts[1::2], strict=True):
            assert name not in found, f"two statements are named {name}"
            found[name] = statement.strip()
    return found


@cache
def migrations(package: str) -> tuple[Migration, ...]:
    """Ascending, of the folder `migrations` of a package."""
    found = (
        Migration(int(name[1]), name[2], _oldest(text := file.read_text(encoding="utf-8")), text)
        for file in files(package).joinpath("migrations").iterdir()
        if (name := _MIGRATION.fullmatch(file.name))
    )
    return tuple(sorted(found, key=lambda one: one.number))


def _oldest(text: str) -> int:
    first = _FIRST_LINE.match(text)
    assert first, "a migration begins with the oldest program that may still write after it"
    return int(first[1])
