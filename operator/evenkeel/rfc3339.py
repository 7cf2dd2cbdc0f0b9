"""Instants as Kubernetes writes them: RFC 3339, in UTC. No other module prints one by itself."""

import datetime as dt
import re

from evenkeel.model import Instant

LAST: Instant = 253_402_300_799
"""9999-12-31T23:59:59Z; datetime ends there."""

_SHAPE = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII
)


def show(instant: Instant) -> str:
    """`2026-01-01T00:00:00Z`."""
    moment = dt.datetime.fromtimestamp(instant, dt.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def show_exact(seconds: float) -> str:
    """To the millisecond: `2026-01-01T00:00:00.250Z`."""
    milliseconds = round(seconds * 1000)
    return f"{show(milliseconds // 1000)[:-1]}.{milliseconds % 1000:03}Z"


def show_ahead(instant: Instant, ahead_s: int) -> str:
    """By a wall clock that is so many seconds ahead of UTC: `2026-01-01T01:00:00+01:00`. Where it
    shows UTC, the text ends in `Z` as Go writes it; so it does where the year would be 10000."""
    if ahead_s == 0 or instant + ahead_s > LAST:
        return show(instant)
    sign, ahead_min = "-" if ahead_s < 0 else "+", abs(ahead_s) // 60
    return f"{show(instant + ahead_s)[:-1]}{sign}{ahead_min // 60:02}:{ahead_min % 60:02}"


def read(text: object) -> Instant | None:
    """The instant, fractions dropped; None when it is not RFC 3339."""
    if not isinstance(text, str) or not (found := _SHAPE.fullmatch(text)):
        return None
    year, month, day, hour, minute, second, sign, zone_h, zone_m = found.groups()
    try:
        moment = dt.datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second), tzinfo=dt.UTC
        )
    except ValueError:
        return None
    if sign and (int(zone_h) > 23 or int(zone_m) > 59):
        return None
    shift = (int(zone_h) * 3600 + int(zone_m) * 60) * (-1 if sign == "-" else 1) if sign else 0
    instant = int(moment.timestamp()) - shift
    # Beyond these years nothing is due, and no name or text could be made of it.
    return instant if 0 <= instant <= LAST else None
