"""Finds what is wrong around the spec of an object: fields beside it, and the metadata.

`mistakes`, `cronjob_mistakes` and `request_mistakes` call `head_mistakes`. The API server checks
all of it; the readers of `resource` look at the name alone.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from evenkeel.manifests.findings import Mistake, Path
from evenkeel.manifests.nearest import nearest
from evenkeel.manifests.template_mistakes import METADATA_FIELDS, unknown_field, wrong_type
from evenkeel.manifests.template_rules import label_mistakes

_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")


def head_mistakes(
    raw: Mapping[str, Any], fields: Collection[str], *, generated: str = ""
) -> Iterator[Mistake]:
    """What is wrong beside a spec that has these fields. `generated` says what becomes of an object
    with generateName in place of a name; empty: it is right."""
    for name in raw:
        if name not in ("apiVersion", "kind", "metadata", "spec", "status"):
            near = nearest(name, ("metadata", "spec"))
            hint = f"; did you mean {near}?" if near else ""
            if name in fields:
                hint = "; it belongs in spec"
            yield Mistake((name,), f"is not a field here{hint}")
    yield from _metadata_mistakes(raw, generated)


def _metadata_mistakes(raw: Mapping[str, Any], generated: str) -> Iterator[Mistake]:
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping):
        what = "is required" if metadata is None else "must be an object"
        yield Mistake(("metadata",) if metadata is not None else ("metadata", "name"), what)
        return
    for name in metadata:
        if name not in METADATA_FIELDS:
            yield Mistake(("metadata", name), unknown_field(name, nearest(name, METADATA_FIELDS)))
    for part, pattern, limit in (("name", _SUBDOMAIN, 253), ("namespace", _LABEL, 63)):
        yield from _name_mistakes(metadata, part, pattern, limit, generated)
    for part in ("labels", "annotations"):
        yield from _string_mistakes(metadata.get(part), ("metadata", part))
    labels = metadata.get("labels")
    if isinstance(labels, Mapping):
        yield from label_mistakes((("metadata", "labels"), labels))


def _name_mistakes(
    metadata: Mapping[str, Any], part: str, pattern: re.Pattern[str], limit: int, generated: str
) -> Iterator[Mistake]:
    text, path = metadata.get(part), ("metadata", part)
    if text is None or text == "":
        is_generated = metadata.get("generateName") is not None
        if part == "name" and (generated or not is_generated):
            yield Mistake(path, f"is required{f'; {generated}' if is_generated else ''}")
    elif not isinstance(text, str):
        yield Mistake(path, wrong_type(text, "string"))
    elif len(text) > limit or pattern.fullmatch(text) is None:
        dots = ", dots" if pattern is _SUBDOMAIN else ""
        yield Mistake(
            path,
            f"must be at most {limit} lowercase letters, digits{dots} and hyphens, "
            "with a letter or digit at each end",
        )


def _string_mistakes(strings: object, path: Path) -> Iterator[Mistake]:
    if strings is None:
        return
    if not isinstance(strings, Mapping):
        yield Mistake(path, "must be an object")
        return
    for name, value in strings.items():
        if not isinstance(value, str):
            yield Mistake((*path, name), wrong_type(value, "string"))
