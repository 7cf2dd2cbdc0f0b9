"""Reads YAML exactly as kubectl does. PyYAML alone reads many scalars differently.

kubectl (sigs.k8s.io/yaml, measured with `kubectl label --local`) reads 22:00, 1:30:00 and dates as
strings; yes, no, on, off, y, n as booleans; 010 and 0o10 as 8, 08 as 8, 1_000 as 1000; numbers too
large for a float as strings; keys as strings. It refuses .inf and .nan. Anchors are resolved; a
document that contains itself, or has more than NODES_MAX nodes with anchors resolved, is refused.

`documents` calls `load_all`, and `positions` calls `compose_all`.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

NODES_MAX = 1_000_000
"""Nodes of one document, anchors resolved: a kilobyte of YAML can stand for billions of nodes."""

DEPTH_MAX = 200
"""Depth of nesting. JSON encoders refuse more, and recursion would end in a traceback."""

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_INTEGER = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_NUMBER_TAG = "tag:yaml.org,2002:number"


class TooMuchError(yaml.YAMLError):
    """The document is too deep, too large, or contains itself."""


class _Loader(yaml.CSafeLoader):
    """A loader that reads plain scalars and keys as Go's YAML library does."""

    yaml_implicit_resolvers: dict[str, list[Any]] = {}  # noqa: RUF012 - PyYAML's own shape

    def construct_object_of_strings(self, node: yaml.MappingNode) -> Iterator[dict[str, Any]]:
        """A mapping, made in two steps as PyYAML does, so that an anchor inside can refer to it."""
        out: dict[str, Any] = {}
        yield out
        self.flatten_mapping(node)
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, dict | list):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key must be a scalar", key_node.start_mark
                )
            out[_key(key)] = self.construct_object(value_node)

    def construct_number(self, node: yaml.ScalarNode) -> int | float | str:
        return number(str(self.construct_scalar(node)))

    def construct_text(self, node: yaml.ScalarNode) -> str:
        return str(self.construct_scalar(node))

    def construct_text_of_bytes(self, node: yaml.ScalarNode) -> str:
        return self.construct_yaml_binary(node).decode("utf-8", "replace")

    def construct_bool(self, node: yaml.ScalarNode) -> bool:
        return self.construct_scalar(node) in _TRUE


def _key(key: Any) -> str:
    if isinstance(key, bool):
        return "true" if key else "false"
    return "null" if key is None else str(key)


def _resolve(tag: str, pattern: str, first: str) -> None:
    for character in first:
        entry = (tag, re.compile(pattern))
        _Loader.yaml_implicit_resolvers.setdefault(character, []).append(entry)


_resolve("tag:yaml.org,2002:bool", f"^(?:{'|'.join(_TRUE + _FALSE)})$", "yYnNtTfFoO")
_resolve("tag:yaml.org,2002:null", "^(?:~|null|Null|NULL)$", "~nN")
_Loader.yaml_implicit_resolvers[""] = [("tag:yaml.org,2002:null", re.compile("^$"))]
_resolve("tag:yaml.org,2002:merge", "^<<$", "<")
_resolve(_NUMBER_TAG, r"^[-+.0-9][-+.0-9a-zA-Z_]*$", "-+.0123456789")
for _tag in (_NUMBER_TAG, "tag:yaml.org,2002:int", "tag:yaml.org,2002:float"):
    _Loader.add_constructor(_tag, _Loader.construct_number)
_Loader.add_constructor("tag:yaml.org,2002:bool", _Loader.construct_bool)
_Loader.add_constructor("tag:yaml.org,2002:map", _Loader.construct_object_of_strings)
# Explicit tags: kubectl reads a timestamp as a string, and bytes as text.
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_text)
_Loader.add_constructor("tag:yaml.org,2002:binary", _Loader.construct_text_of_bytes)


def number(text: str) -> int | float | str:
    """A plain scalar that begins like a number, as Go reads it: an int, a float, or a string."""
    plain = text.replace("_", "")
    match = _INTEGER.fullmatch(plain)
    if match is not None and len(plain) < 66:  # more than 64 binary digits: read as a float below
        sign, hexadecimal, binary, octal, decimal = match.groups()
        digits, base = next(
            (digits, base)
            for digits, base in ((hexadecimal, 16), (binary, 2), (octal, 8), (decimal, 10))
            if digits is not None
        )
        value = int(sign + digits, base)
        if -(2**63) <= value < 2**64:
            return value if value < 2**63 else float(value)  # kubectl holds int64, then float
    if _FLOAT.fullmatch(plain) is not None:
        as_float = float(plain)
        if math.isinf(as_float):
            return text
        # Go writes 1e3 as 1000 when it turns YAML into JSON
        return int(as_float) if as_float.is_integer() and abs(as_float) < 2**63 else as_float
    if plain.lstrip("-+").lower() in (".inf", ".nan"):
        raise yaml.YAMLError(f"{text} is not a number that JSON has")
    return text


def load_all(text: str) -> Iterator[Any]:
    """The documents of a text. Raises YAMLError, and nothing else, if the text is not YAML."""
    try:
        _measure_depth(text)
        yield from _documents(text)
    except (ValueError, TypeError, AttributeError, LookupError) as wrong:
        # a tag that lies about its value (!!int abc, !!map 5), half a surrogate pair
        raise yaml.YAMLError(f"a value is not what its tag says: {wrong}") from None


def compose_all(text: str) -> Iterator[yaml.Node]:
    """The documents of a text that `load_all` has read, as nodes with positions. YAMLError if the
    text is not YAML."""
    _measure_depth(text)
    yield from yaml.compose_all(text, Loader=_Loader)


def _documents(text: str) -> Iterator[Any]:
    loader: Any = _Loader(text)  # its methods are untyped
    try:
        while loader.check_data():
            document = loader.get_data()
            _check_size(document)
            yield document
    finally:
        loader.dispose()


def _measure_depth(text: str) -> None:
    """Refuse deep nesting before any object is built: libyaml's binding builds objects recursively
    in C, and would crash the process."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEPTH_MAX:
                raise TooMuchError(f"nested more than {DEPTH_MAX} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_size(document: Any) -> None:
    """Refuse a document that contains itself, or has too many nodes with anchors resolved. The size
    of a shared part is computed once."""
    sizes: dict[int, int] = {}

    def size(node: Any, depth: int) -> int:
        if not isinstance(node, dict | list):
            return 1
        if depth > DEPTH_MAX:
            raise TooMuchError("an anchor is a part of itself")
        if id(node) not in sizes:
            parts = node.values() if isinstance(node, dict) else node
            sizes[id(node)] = 1 + sum(size(part, depth + 1) for part in parts)
            if sizes[id(node)] > NODES_MAX:
                raise TooMuchError(f"more than {NODES_MAX} nodes")
        return sizes[id(node)]

    size(document, 0)
