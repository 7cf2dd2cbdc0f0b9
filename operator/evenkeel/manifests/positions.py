"""Finds the line and column of a field in the text that holds it.

`manifest` calls `locate` for each mistake. The text is parsed again, with positions: to keep the
positions of everything that is right would take more memory than the objects. A field that is not
in the text (it is missing, or came in by an anchor) has the position of the nearest object around
it. Where the text cannot be parsed so, the answer is its first line.
"""

import functools
from typing import Any

import yaml

from evenkeel.manifests import yaml12
from evenkeel.manifests.findings import Origin, Path

_ANCHORS_MAX = 20
"""Merges within merges that are followed."""


def locate(origin: Origin, path: Path) -> tuple[int, int]:
    """Line and column, both from 1."""
    roots = _roots(origin.chunk)
    if origin.document >= len(roots):
        return origin.first_line, 1
    mark = _mark(roots[origin.document], (*origin.within, *path))
    return origin.first_line + mark.line, mark.column + 1


@functools.lru_cache(maxsize=1)
def _roots(chunk: str) -> tuple[yaml.Node, ...]:
    """The parsed documents. One text is kept: the mistakes of a text come one after the other."""
    try:
        return tuple(yaml12.compose_all(chunk))
    except yaml.YAMLError:  # JSON values one after another are not YAML
        return ()


def _mark(root: yaml.Node, path: Path) -> Any:
    node, mark = root, root.start_mark
    for part in path:
        found = _entry(node, part)
        if found is None:
            break
        at, node = found
        mark = at.start_mark
    return mark


def _entry(node: yaml.Node, part: str | int, depth: int = 0) -> tuple[yaml.Node, yaml.Node] | None:
    """The node to point at for this part of a path, and the node of its value."""
    if isinstance(part, int):
        if isinstance(node, yaml.SequenceNode) and part < len(node.value):
            return node.value[part], node.value[part]
        return None
    if not isinstance(node, yaml.MappingNode) or depth > _ANCHORS_MAX:
        return None
    for key, value in reversed(node.value):  # of equal keys the last one counts
        if isinstance(key, yaml.ScalarNode) and key.value == part:
            return key, value
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode) and key.value == "<<":
            merged = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for each in merged:
                found = _entry(each, part, depth + 1)
                if found is not None:
                    return found
    return None
