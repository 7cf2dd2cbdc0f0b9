"""Reads the objects in files, directories and standard input, as `kubectl apply -f` reads them.

`manifest` calls `objects`. Files may be YAML with several documents, JSON, or Lists. A document
that cannot be parsed becomes a Problem, and the others are read all the same. The kind of an object
is not looked at. This is the only module of the package that opens files.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evenkeel.resource import yaml12

STDIN = "-"
SUFFIXES = (".yaml", ".yml", ".json")
"""Of a directory only these files are read, as kubectl does. A file that is named may have any
name."""

FILE_BYTES_MAX = 256 * 1024 * 1024
"""100,000 ScheduledJobs take 100 MB: a larger file is probably the wrong one."""

LISTS_MAX = 8
"""Depth of Lists within Lists. Without a limit recursion would end in a traceback."""


@dataclass(frozen=True, slots=True)
class Found:
    """One object of a file. `index` counts the file's documents and list items from 1."""

    source: str
    index: int
    object: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Problem:
    """A mistake that a person must mend. `name` and `field` are empty if they are not known."""

    source: str
    index: int
    name: str
    field: str
    sentence: str

    def __str__(self) -> str:
        where = f"{self.source}: document {self.index}" if self.index else self.source
        return ": ".join(part for part in (where, self.name, self.field, self.sentence) if part)


def objects(path: str, *, stdin: Callable[[], str], problems: list[Problem]) -> Iterator[Found]:
    """All objects of a file, of the files in a directory (sorted, without subdirectories, as
    kubectl does), or of standard input."""
    if path == STDIN:
        yield from documents(stdin(), source="stdin", problems=problems)
        return
    for file in _files(Path(path), problems):
        text = _text(file, problems)
        if text is not None:
            yield from documents(text, source=str(file), problems=problems)


def documents(text: str, *, source: str, problems: list[Problem]) -> Iterator[Found]:
    """All objects of a text. A document that cannot be parsed becomes a problem."""
    index = 0
    for chunk, line in _chunks(text):
        try:
            parsed = list(_parse(chunk))
        except (yaml.YAMLError, ValueError) as wrong:
            index += 1
            problems.append(Problem(source, index, "", "", _syntax(wrong, first_line=line)))
            continue
        for document in parsed:
            if document is None:  # only comments, or nothing before the first separator
                continue
            for item in _spread(document):
                index += 1
                if isinstance(item, Mapping):
                    yield Found(source, index, item)
                else:
                    problems.append(Problem(source, index, "", "", "is not an object"))


# --- files ------------------------------------------------------------------------------------


def _files(path: Path, problems: list[Problem]) -> list[Path]:
    try:
        if not path.is_dir():
            return [path]
        files = sorted(file for file in path.iterdir() if file.suffix in SUFFIXES)
    except OSError as wrong:
        problems.append(_unreadable(path, wrong))
        return []
    if not files:
        sentence = f"holds no file that ends in {', '.join(SUFFIXES)}"
        problems.append(Problem(str(path), 0, "", "", sentence))
    return [file for file in files if file.is_file()]


def _text(file: Path, problems: list[Problem]) -> str | None:
    try:
        with file.open("rb") as opened:
            content = opened.read(FILE_BYTES_MAX + 1)
    except OSError as wrong:
        problems.append(_unreadable(file, wrong))
        return None
    if len(content) > FILE_BYTES_MAX:
        problems.append(Problem(str(file), 0, "", "", "is larger than 256 MiB"))
        return None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        problems.append(Problem(str(file), 0, "", "", "is not UTF-8 text"))
        return None


def _unreadable(path: Path, wrong: OSError) -> Problem:
    return Problem(str(path), 0, "", "", f"cannot be read: {wrong.strerror or wrong}")


# --- text -> objects --------------------------------------------------------------------------


def _chunks(text: str) -> Iterator[tuple[str, int]]:
    """The texts between separators, as kubectl splits them, each with the number of its first
    line."""
    start = 1
    lines: list[str] = []
    for number, line in enumerate(text.split("\n"), start=1):
        rest = line[3:].strip() if line.startswith("---") else None
        if rest is not None and (not rest or rest.startswith("#")):
            yield "\n".join(lines), start
            start, lines = number + 1, []
        else:
            lines.append(line)
    yield "\n".join(lines), start


def _parse(chunk: str) -> Iterator[Any]:
    stripped = chunk.strip()
    if not stripped:
        return
    if stripped.startswith("{"):
        parsed = _parse_json(stripped)
        if parsed is not None:
            yield from parsed
            return
    yield from yaml12.load_all(chunk)


def _parse_json(text: str) -> list[Any] | None:
    """All JSON values of a text. None if the text is not JSON: YAML may begin with a brace too."""
    decoder = json.JSONDecoder(parse_constant=_no_constant)
    out, at = [], 0
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            return None
        out.append(value)
        while at < len(text) and text[at].isspace():
            at += 1
    return out


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number that JSON has")


def _spread(document: Any, depth: int = 0) -> Iterator[Any]:
    """The items of a List, and of the Lists in it. What `kubectl get -o json` prints is a List
    too."""
    is_list = (
        isinstance(document, Mapping)
        and str(document.get("kind", "")).endswith("List")
        and isinstance(document.get("items"), list)
    )
    if not is_list or depth > LISTS_MAX:
        yield document
        return
    # The items of a ScheduledJobList need no kind of their own.
    common = {"apiVersion": document.get("apiVersion"), "kind": document["kind"][: -len("List")]}
    for item in document["items"]:
        if isinstance(item, Mapping) and "kind" not in item and common["kind"]:
            item = {**common, **item}
        yield from _spread(item, depth + 1)


def _syntax(wrong: Exception, *, first_line: int) -> str:
    mark = getattr(wrong, "problem_mark", None)
    what = getattr(wrong, "problem", None) or str(wrong).splitlines()[0]
    if mark is None:
        return f"is not YAML that kubectl reads: {what}"
    return f"line {first_line + mark.line}: is not YAML that kubectl reads: {what}"
