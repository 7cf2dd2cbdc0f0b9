"""Writes objects as YAML that kubectl, and every other reader, takes for the same objects.

`evenkeel advise` calls `document`. PyYAML alone would write some strings plain that kubectl reads
as something else: y and n as booleans, 1e3 and 0o17 as numbers. A string is written plain only if
no YAML reader could take it for another type.
"""

import re
from collections.abc import Mapping
from typing import Any

import yaml

_PLAIN = re.compile(r"[A-Za-z_/][-A-Za-z0-9_./]*(:[-A-Za-z0-9_./]+)*", re.ASCII)
_TAKEN_FOR_ANOTHER_TYPE = frozenset(
    ("y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf")
)
_OTHER_LINE_ENDS = frozenset("\r\x85\u2028\u2029")
_STRING = "tag:yaml.org,2002:str"


class _Dumper(yaml.SafeDumper):
    """Writes no anchors: a reader of two equal parts would have to look one of them up."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    if _PLAIN.fullmatch(text) and text.lower() not in _TAKEN_FOR_ANOTHER_TYPE:
        return dumper.represent_scalar(_STRING, text)
    # Where a block cannot hold the text, PyYAML writes it with quotes all the same. It does not see
    # that a block would lose these ends of lines.
    in_block = "\n" in text and not _OTHER_LINE_ENDS.intersection(text)
    return dumper.represent_scalar(_STRING, text, style="|" if in_block else '"')


_Dumper.add_representer(str, _string)


def document(value: Mapping[str, Any]) -> str:
    """One document, without a separator. The fields keep their order."""
    return yaml.dump(dict(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**20)
