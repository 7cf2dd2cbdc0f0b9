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
