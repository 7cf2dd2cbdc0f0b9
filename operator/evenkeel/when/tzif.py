"""Reads a TZif file (RFC 8536): the clock changes of a zone, and the rule for later years.

Only `zone` calls `read_tzif`, with files of the pinned tzdata package, which are trusted to be well
formed. Python's zoneinfo reads the same files but does not give its callers the changes, and to ask
it for each minute takes 1 us a minute; tests compare the two for every zone. Leap seconds are
ignored; the package has none.
"""

import datetime as dt
import re
import struct
from dataclasses import dataclass

_HEADER = struct.Struct(">4s c 15x 6L")
_TYPE = struct.Struct(">l B B")
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Changes:
    """offsets[i] applies before instants[i], and offsets[i + 1] from it on."""

    instants: list[int]
    offsets: list[int]


def read_tzif(data: bytes) -> tuple[Changes, "Rule"]:
    """The changes that the file lists, and the rule for the time after them."""
    at = _HEADER.size + _block_size(data, 0, time_size=4)
    _, _, _, _, _, times, types, chars = _HEADER.unpack_from(data, at)
    body = at + _HEADER.size
    instants = list(struct.unpack_from(f">{times}q", data, body))
    kinds = data[body + 8 * times : body + 9 * times]
    type_at = body + 9 * times
    utc_offsets = [
        int(offset) for offset, _, _ in _TYPE.iter_unpack(data[type_at : type_at + 6 * types])
    ]
    footer = data[body + _block_size(data, at, time_size=8) :].strip(b"\n").decode("ascii")
    assert chars, "a zone without names is no zone"
    return Changes(instants, [utc_offsets[0], *(utc_offsets[k] for k in kinds)]), Rule(footer)


def _block_size(data: bytes, at: int, *, time_size: int) -> int:
    """How many bytes of tables follow the header at `at`."""
    _, _, is_ut, is_std, leaps, times, types, chars = _HEADER.unpack_from(data, at)
    parts = times * (time_size + 1), types * 6, chars, leaps * (time_size + 4), is_std, is_ut
    return sum(int(part) for part in parts)


_OFFSET = r"([+-]?\d+)(?::(\d+))?(?::(\d+))?"
_NAME = r"(?:<[^>]+>|[A-Za-z]+)"
_RULE = re.compile(rf"{_NAME}{_OFFSET}(?:{_NAME}(?:{_OFFSET})?,([^,]+),([^,]+))?")
_TIME = re.compile(_OFFSET)


class Rule:
    """A POSIX TZ text such as `CET-1CEST,M3.5.0,M10.5.0/3`: two changes a year, or none."""

    def __init__(self, text: str) -> None:
        matched = _RULE.fullmatch(text)
        assert matched, f"a zone's rule is not understood: {text}"
        self.standard_s = -_seconds(*matched.group(1, 2, 3))
        self.changes = matched[7] is not None
        if self.changes:
            has_offset = matched[4] is not None
            self.summer_s = (
                -_seconds(*matched.group(4, 5, 6)) if has_offset else self.standard_s + 3600
            )
            self._begin, self._end = matched[7], matched[8]

    def of_year(self, year: int) -> list[tuple[int, int]]:
        """The changes of one year: (instant, offset from then on), ascending."""
        if not self.changes:
            return []
        return sorted(
            [
                (_wall_instant(self._begin, year) - self.standard_s, self.summer_s),
                (_wall_instant(self._end, year) - self.summer_s, self.standard_s),
            ]
        )


def _seconds(hours: str, minutes: str | None, seconds: str | None) -> int:
    size = abs(int(hours)) * 3600 + int(minutes or 0) * 60 + int(seconds or 0)
    return -size if hours.startswith("-") else size


def _wall_instant(text: str, year: int) -> int:
    day_text, _, time_text = text.partition("/")
    matched = _TIME.fullmatch(time_text or "2")
    assert matched, f"a rule's time is not understood: {time_text}"
    return _rule_day(day_text, year) * 86_400 + _seconds(*matched.group(1, 2, 3))


def _rule_day(text: str, year: int) -> int:
    """Days since the epoch of `M3.5.0` (last Sunday of March), `J60` (no leap days) or `59`."""
    new_year = dt.date(year, 1, 1).toordinal() - _EPOCH_DAY
    if text[0] == "J":
        leap = dt.date(year, 3, 1).toordinal() - dt.date(year, 2, 28).toordinal() == 2
        day = int(text[1:])
        return new_year + day - 1 + (1 if leap and day >= 60 else 0)
    if text[0] != "M":
        return new_year + int(text)
    month, week, day_of_week = map(int, text[1:].split("."))
    first = dt.date(year, month, 1)
    day = 1 + (day_of_week - first.isoweekday()) % 7 + 7 * (week - 1)
    length = 31 if month == 12 else (dt.date(year, month + 1, 1) - first).days
    while day > length:
        day -= 7
    return first.toordinal() - _EPOCH_DAY + day - 1
