"""Finds all mistakes of an object with a reader that stops at the first.

The readers of `resource` stop there, as the operator needs no second mistake. Here the field of the
first one is replaced by one that is right, and the reader looks again: so each sentence is the one
that a condition of the operator would have. `mistakes` and `request_mistakes` call this.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from evenkeel.manifests.findings import Mistake, Path, shown_path
from evenkeel.manifests.nearest import nearest
from evenkeel.manifests.template_mistakes import wrong_type
from evenkeel.model import Rejection

MOST = 100
"""Of one object at most so many mistakes are told: a page is enough to begin with."""

T = TypeVar("T")

Object = Mapping[str, Any]

_WRONG_TYPES = {
    "must be a string": "string",
    "must be a whole number": "integer",
    "must be true or false": "boolean",
}
"""Sentences of a reader to which the value can add a word: what is in quotes, and what is not."""


def read_to_the_end(
    raw: Object,
    mistakes: list[Mistake],
    read: Callable[[Object], T | Rejection],
    mend: Callable[[Object, Path], Object],
    sentence: Callable[[Rejection], str] = lambda refused: refused.sentence,
) -> T | None:
    """What the reader makes of the object, once every field that it refuses is mended. Each refusal
    is added to the mistakes, unless its field has one already."""
    known = {mistake.path for mistake in mistakes}
    for _ in range(MOST):
        result = read(raw)
        if not isinstance(result, Rejection):
            return result
        path = path_of(result.field)
        if path not in known:
            mistakes.append(Mistake(path, _shown(sentence(result), raw, path)))
            known.add(path)
        mended = mend(raw, path)
        if mended == raw:
            break
        raw = mended
    return None


def path_of(field: str) -> Path:
    """`spec.parameters[0].name` as keys and positions."""
    return tuple(
        int(part[1:-1]) if part.startswith("[") else part
        for part in re.findall(r"\[\d+\]|[^.\[]+", field)
    )


def put(raw: Object, path: Path, value: Any) -> Object:
    """The object with this value at the path; None leaves the field out. What is shared with the
    given object is not copied: a template can be a megabyte."""
    name, rest = path[0], path[1:]
    if rest:
        inner = raw.get(str(name))
        if isinstance(inner, list) and isinstance(rest[0], int):
            entries = [value if at == rest[0] else each for at, each in enumerate(inner)]
            return {**raw, str(name): entries}
        if not isinstance(inner, Mapping):
            return raw if value is None else {**raw, str(name): put({}, rest, value)}
        return {**raw, str(name): put(inner, rest, value)}
    if value is None:
        return {key: part for key, part in raw.items() if key != name}
    return {**raw, str(name): value}


def value_at(raw: object, path: Path) -> object:
    """What stands at the path; None: nothing."""
    for part in path:
        if isinstance(part, int):
            raw = raw[part] if isinstance(raw, list) and part < len(raw) else None
        else:
            raw = raw.get(part) if isinstance(raw, Mapping) else None
    return raw


def without_name(sentence: str, path: Path) -> str:
    """Rules name their field, for readers who see no path. Here the path stands before the
    sentence."""
    for start in range(1, len(path)):
        name = shown_path(path[start:])
        if sentence.startswith(f"{name} "):
            return sentence[len(name) + 1 :]
    return sentence


def _shown(sentence: str, raw: Object, path: Path) -> str:
    value = value_at(raw, path)
    if sentence in _WRONG_TYPES:
        sentence = wrong_type(value, _WRONG_TYPES[sentence])
    elif isinstance(value, str) and sentence.startswith("must be '"):
        near = nearest(value, re.findall("'([^']*)'", sentence))
        sentence = f"{sentence}; did you mean {near}?" if near else sentence
    return without_name(sentence, path)
