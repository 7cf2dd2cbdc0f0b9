"""Durations as users write them: `25m`, `1h30m`, `2d`, `1w`.

`resource.read` parses durations; `format_duration` is called wherever an interval is shown. The
bounds of a field are checked by the caller. Durations are whole seconds.
"""

import re

from evenkeel.errors import BadField

_UNIT_S = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_WHOLE = re.compile(r"([0-9]+[wdhms])+", re.ASCII)
_PART = re.compile(r"([0-9]+)([wdhms])", re.ASCII)
_LONGEST_TEXT = 64  # int() of a very long number would take seconds
_SHOWN = 40


def parse_duration(text: str, *, field: str) -> int:
    """The seconds of a duration. A refusal names `field`."""
    if len(text) > _LONGEST_TEXT or not _WHOLE.fullmatch(text):
        shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
        raise BadField(
            field,
            f"{shown!r} is not a duration; write numbers with the units w, d, h, m or s, "
            "such as 25m or 1h30m",
        )
    return sum(int(number) * _UNIT_S[unit] for number, unit in _PART.findall(text))


def format_duration(seconds: int) -> str:
    """The shortest text that `parse_duration` reads back as the same number."""
    parts = []
    rest = seconds
    for unit, size_s in _UNIT_S.items():
        number, rest = divmod(rest, size_s)
        if number:
            parts.append(f"{number}{unit}")
    return "".join(parts) or "0s"
