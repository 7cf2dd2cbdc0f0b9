"""Reads the objects in texts, as `kubectl apply -f` reads them.

`manifest` calls `objects`. Texts may be YAML with several documents, JSON, or Lists. A document
that cannot be parsed becomes a Problem, and the others are read all the same. The kind of an object
is not looked at.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml

from evenkeel.manifests import files, yaml12
from evenkeel.manifests.files import Text
from evenkeel.manifests.findings import Found, Note, Origin, Path, Problem

LISTS_MAX = 8
"""Depth of Lists within Lists. Without a limit recursion would end in a traceback."""


def objects(
    path: str,
    *,
    recursive: bool = False,
    stdin: Callable[[], str],
    problems: list[Problem],
    skipped: list[Note],
) -> Iterator[Found]:
    """All objects of a file, of the files in a directory, or of standard input."""
    for text in files.texts(path, recursive=recursive, stdin=stdin, problems=problems):
        yield from documents(text, problems=problems, skipped=skipped)


def documents(text: Text, *, problems: list[Problem], skipped: list[Note]) -> Iterator[Found]:
    """All objects of a text. A document that cannot be parsed becomes a problem, and in a directory
    a list is skipped: one of hosts may lie beside the manifests."""
    index = 0
    for chunk, line in _chunks(text.content):
        try:
            parsed = list(_parse(chunk))
        except (yaml.YAMLError, ValueError) as wrong:
            index += 1
            problems.append(_syntax(wrong, text.source, index, first_line=line))
            continue
        for number, document in enumerate(parsed):
            if document is None:  # only comments, or nothing before the first separator
                continue
            for item, within in _spread(document):
                index += 1
                if isinstance(item, Mapping):
                    origin = Origin(chunk, line, number, within)
                    yield Found(text.source, index, item, origin, text.in_directory)
                elif text.in_directory and isinstance(item, list):
                    skipped.append(Note(text.source, index, ""))
                else:
                    wrong_one = Problem(text.source, index, "", "", "is not an object", line, 1)
                    problems.append(wrong_one)


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


def _spread(document: Any, within: Path = (), depth: int = 0) -> Iterator[tuple[Any, Path]]:
    """The items of a List, and of the Lists in it, each with its path in the document. What
    `kubectl get -o json` prints is a List too."""
    is_list = (
        isinstance(document, Mapping)
        and str(document.get("kind", "")).endswith("List")
        and isinstance(document.get("items"), list)
    )
    if not is_list or depth > LISTS_MAX:
        yield document, within
        return
    # The items of a ScheduledJobList need no kind of their own.
    common = {"apiVersion": document.get("apiVersion"), "kind": document["kind"][: -len("List")]}
    for number, item in enumerate(document["items"]):
        if isinstance(item, Mapping) and "kind" not in item and common["kind"]:
            item = {**common, **item}
        yield from _spread(item, (*within, "items", number), depth + 1)


def _syntax(wrong: Exception, source: str, index: int, *, first_line: int) -> Problem:
    mark = getattr(wrong, "problem_mark", None)
    what = getattr(wrong, "problem", None) or str(wrong).splitlines()[0]
    sentence = f"is not YAML that kubectl reads: {what}"
    if mark is None:
        return Problem(source, index, "", "", sentence, first_line, 1)
    line = first_line + mark.line
    return Problem(source, index, "", "", f"line {line}: {sentence}", line, mark.column + 1)
