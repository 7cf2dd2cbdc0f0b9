"""Time zones, read from the pinned tzdata package and never from the files of the machine.

`compile` loads the zone of a timing; `dst`, `expand`, `balance` and the CLI ask it for UTC offsets.
An unknown name is refused and never taken for UTC. Leap seconds, and times before 1970, are
ignored.
"""

import functools
import importlib.metadata
import importlib.resources
from bisect import bisect_right
from dataclasses import dataclass

from evenkeel.errors import BadField
from evenkeel.model import Instant
from evenkeel.reasons import ConditionReason
from evenkeel.when.tzif import Changes, read_tzif

MAX_INSTANT: Instant = 253_402_300_800
"""The end of the year 9999: nothing is due from here on."""

_MIN_INSTANT = -2 * 86_400  # local times west of Greenwich begin before the epoch
_YEAR_S = 31_556_952
_AHEAD_YEARS = 60
_SHOWN = 40

HOW_TO_WRITE = "write an IANA name such as Europe/Berlin, or UTC"

_zones: list["Zone"] = []


@dataclass(frozen=True, slots=True)
class _Spans:
    instants: list[Instant]
    offsets: list[int]
    until_year: int


class Zone:
    """One zone: its UTC offset, and when the offset changes.

    `number` is its place among the zones that this process has loaded: `columns` holds numbers
    instead of names.
    """

    __slots__ = ("_rule", "_rule_from", "_spans", "name", "number")

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        listed, self._rule = read_tzif(data)
        # The rule applies after the last listed change. `_spans` may lack that change, because it
        # leaves out entries that change only the name of the time.
        self._rule_from = listed.instants[-1] if listed.instants else _MIN_INSTANT
        self._spans = _from_epoch(listed)
        _zones.append(self)
        self.number = _zones.index(self)  # not the length: two threads may read zones at once

    @property
    def unchanging(self) -> bool:
        """Whether the offset never changes: each day then has 24 hours, as in UTC."""
        return not self._spans.instants and not self._rule.changes

    def spans(self, until: Instant) -> tuple[list[Instant], list[int]]:
        """All clock changes up to `until`, or more: offsets[i] applies before instants[i].

        A list is never changed, only replaced by a longer one, so another thread may read it.
        """
        spans = self._spans
        if self._rule.changes:
            year = min(1970 + until // _YEAR_S, 9999) + 1
            if year > spans.until_year:
                spans = self._continued(spans, min(year + _AHEAD_YEARS, 9999))
                self._spans = spans
        return spans.instants, spans.offsets

    def offset_at(self, t: Instant) -> int:
        """The UTC offset in seconds: positive east of Greenwich."""
        instants, offsets = self.spans(t)
        return offsets[bisect_right(instants, t)]

    def quiet_offset(self, a: Instant, b: Instant) -> int | None:
        """The offset during all of [a, b); None if a clock change affects the due times in it."""
        instants, offsets = self.spans(b)
        place = bisect_right(instants, a)
        if place < len(instants) and instants[place] < b:
            return None
        if place and instants[place - 1] + max(0, offsets[place - 1] - offsets[place]) >= a:
            return None  # a change at `a` itself, or a repeated hour that has not ended
        return offsets[place]

    def _continued(self, spans: _Spans, until_year: int) -> _Spans:
        instants, offsets = list(spans.instants), list(spans.offsets)
        last = max([*instants[-1:], self._rule_from])
        first_year = max(1970 + last // _YEAR_S - 1, 1970)
        for year in range(first_year, until_year + 1):
            for instant, offset in self._rule.of_year(year):
                if instant > last and offset != offsets[-1]:
                    instants.append(instant)
                    offsets.append(offset)
        return _Spans(instants, offsets, until_year)


def _from_epoch(listed: Changes) -> _Spans:
    """The changes of the offset from 1970 on. A change of the name alone (CET to MET) is left
    out."""
    place = bisect_right(listed.instants, _MIN_INSTANT)
    instants: list[Instant] = []
    offsets = [listed.offsets[place]]
    for instant, offset in zip(listed.instants[place:], listed.offsets[place + 1 :], strict=True):
        if offset != offsets[-1]:
            instants.append(instant)
            offsets.append(offset)
    return _Spans(instants, offsets, 0)


@functools.cache
def _names() -> dict[str, str]:
    """All names of the tzdata package, by their lower-case form."""
    text = (importlib.resources.files("tzdata") / "zones").read_text("ascii")
    return {name.lower(): name for name in text.split()}


def load_zone(name: str) -> Zone:
    """The zone of an IANA name. Each of the about 600 zones is read once in a process."""
    known = _names().get(name.lower()) if len(name) <= 64 else None
    if known == name:
        return _load(name)
    shown = name if len(name) <= _SHOWN else name[:_SHOWN] + "..."
    remedy = f"write {known}" if known else HOW_TO_WRITE
    raise BadField(
        "timeZone",
        f"{shown!r} is not a known time zone; {remedy}",
        reason=ConditionReason.UNKNOWN_TIME_ZONE,
    )


@functools.cache
def _load(name: str) -> Zone:
    return Zone(name, (importlib.resources.files("tzdata.zoneinfo") / name).read_bytes())


def zone_by_number(number: int) -> Zone:
    """The zone with this number."""
    return _zones[number]


def zone_data_version() -> str:
    """The version of the tzdata package, for the log."""
    return importlib.metadata.version("tzdata")
