"""Reads a cron text into bit masks, by the rules of docs/schedules.md.

Only `compile` calls `parse_cron`. A text that it does not understand raises `BadField`, and nothing
else, with the field and what to write instead. We parse cron ourselves because the libraries read
some texts differently (59/5, 22-2, 5L or L5), and because a refusal must say more than "bad
syntax". Tests compare the parser with croniter and cronsim. They are not used at run time: croniter
takes 40 to 190 us for a text, this parser and the rest of `compile` together 20 us.

The parser knows no zones and no dates: whether any day matches, `compile` asks of the calendar.
"""

import functools
import hashlib
import re
from dataclasses import dataclass
from typing import NoReturn

from evenkeel.errors import BadField
from evenkeel.model import DayMatch
from evenkeel.when import days

LONGEST_TEXT = 256
_SHOWN = 40

_ALIASES = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_SPACES = re.compile(r"[ \t\r\n]+")
_HASHED = re.compile(r"H(\((.*)\))?")


@dataclass(frozen=True, slots=True)
class CronFields:
    """A cron text as bit masks. `days` defines the bits of the three day fields."""

    minute: int
    hour: int
    dom: int
    month: int
    dow: int
    either: bool
    """Both day fields are set, and a day matches if one of them does."""
    by_real_minutes: bool
    """Minute or hour begins with a star: due at every real minute whose local time matches."""


@dataclass(frozen=True, slots=True, eq=False)
class _Field:
    name: str
    low: int
    high: int
    names: dict[str, int]
    full_high: int
    """The last value of `*` and `N/step`: 6 for the day of week, because 7 is Sunday again."""
    hash_high: int
    """The last value of `H`: 28 for the day of month, the last day that every month has."""


_MINUTE = _Field("minute", 0, 59, {}, 59, 59)
_HOUR = _Field("hour", 0, 23, {}, 23, 23)
_DOM = _Field("day of month", 1, 31, {}, 31, 28)
_MONTH = _Field("month", 1, 12, {name: n for n, name in enumerate(_MONTHS, 1)}, 12, 12)
_DOW = _Field("day of week", 0, 7, {name: n for n, name in enumerate(_DAYS)}, 6, 6)
_FIELDS = (_MINUTE, _HOUR, _DOM, _MONTH, _DOW)


def parse_cron(text: str, *, day_match: DayMatch, seed: str) -> CronFields:
    """The bit masks of a cron text. `seed` (namespace/name) is hashed for `H`."""
    if len(text) > LONGEST_TEXT:
        raise _bad(f"{len(text)} characters are too many; at most {LONGEST_TEXT} are read")
    if not text.isascii():
        raise _bad(f"{_shown(text)} has characters outside ASCII; write plain digits and letters")
    words = _split(text.upper())
    read = [
        _read_field(field, word, seed if "H" in word else "")
        for field, word in zip(_FIELDS, words, strict=True)
    ]
    (minute, _), (hour, _), (dom, dom_unset), (month, _), (dow, dow_unset) = read
    return CronFields(
        minute=minute,
        hour=hour,
        dom=dom,
        month=month,
        dow=dow,
        either=day_match is DayMatch.OR and not dom_unset and not dow_unset,
        by_real_minutes=words[0][0] in "*?" or words[1][0] in "*?",
    )


def _split(text: str) -> list[str]:
    words = [word for word in _SPACES.split(text) if word]
    if not words:
        raise _bad(
            "is empty; five fields are expected: minute, hour, day of month, month, day of week"
        )
    if words[0].startswith("@"):
        return _alias(" ".join(words))
    if words[0].startswith(("TZ=", "CRON_TZ=")):
        raise _bad("a zone inside the text is not supported; use the field timeZone")
    if len(words) != 5:
        hint = ""
        if len(words) == 6:
            hint = "; seconds are not supported: use interval.every for runs off the minute"
        elif len(words) == 7:
            hint = "; seconds and years are not supported: use interval.every, or at for one run"
        raise _bad(
            "five fields are expected (minute, hour, day of month, month, day of week), "
            f"{len(words)} are given{hint}"
        )
    return words


def _alias(text: str) -> list[str]:
    if text.startswith("@EVERY"):
        raise _bad("@every is not supported; use interval.every, such as interval: {every: 25m}")
    if text not in _ALIASES:
        known = " ".join(_ALIASES).lower()
        raise _bad(f"{_shown(text.lower())} is not known; the aliases are {known}")
    return _ALIASES[text].split()


@functools.lru_cache(maxsize=4096)
def _read_field(field: _Field, word: str, seed: str) -> tuple[int, bool]:
    """The mask of one field, and whether it is unset (`*`). Cached: most fields occur many
    times."""
    mask, unset = 0, False
    for item in word.split(","):
        item_mask, item_unset = _read_item(field, item, seed)
        mask |= item_mask
        unset |= item_unset
    return mask, unset


def _read_item(field: _Field, item: str, seed: str) -> tuple[int, bool]:
    """The mask of one entry of a list, and whether it is a star, which leaves the field unset."""
    if not item:
        _refuse(field, item, "has an empty entry; remove the comma or write a value")
    _refuse_dialects(field, item)
    head, slash, step_text = item.partition("/")
    step = _step(field, item, step_text) if slash else 1
    if head in ("*", "?"):
        return _bits(field, field.low, field.full_high, step), step == 1
    if head.startswith("H"):
        return _hashed(field, item, head, step if slash else None, seed), False
    if "#" in head or (head.endswith("L") and field is not _MONTH):  # JUL is a month
        if slash:
            _refuse(field, item, "cannot have a step; list the days instead")
        return _counted_day(field, item), False
    low_text, dash, high_text = head.partition("-")
    low = _value(field, item, low_text)
    if dash:
        high = _value(field, item, high_text)
        if high < low:
            _refuse(field, item, _turned_round(field, low, high))
    else:
        high = max(low, field.full_high) if slash else low
    return _bits(field, low, high, step), False


def _bits(field: _Field, low: int, high: int, step: int) -> int:
    mask = 0
    for value in range(low, high + 1, step):
        mask |= 1 << value
    if field is _DOW and mask >> 7:
        mask = mask & days.ANY_DAY_OF_WEEK | 1
    return mask


def _hashed(field: _Field, item: str, head: str, step: int | None, seed: str) -> int:
    """`H` is one value, chosen by a hash of the name. `H/15` is every 15th value, from a start
    below 15 that the hash chooses."""
    matched = _HASHED.fullmatch(head)
    if matched is None:
        _refuse(field, item, "is not understood; write H, H/15, H(0-29) or H(0-29)/10")
    low, high = field.low, field.hash_high
    if matched[1] is not None:
        low_text, _, high_text = matched[2].partition("-")
        low = _value(field, item, low_text)
        high = _value(field, item, high_text)
        if high < low:
            _refuse(field, item, _turned_round(field, low, high))
        if high > field.hash_high:
            _refuse(field, item, f"is out of range; H takes {field.low} to {field.hash_high} here")
    digest = hashlib.sha256(f"{seed}\0{field.name}".encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    width = high - low + 1
    if step is None:
        return 1 << (low + number % width)
    return _bits(field, low + number % min(step, width), high, step)


def _counted_day(field: _Field, item: str) -> int:
    """`L` in the day of month; `5#2` (second Friday) and `5L` (last Friday) in the day of week."""
    if field is _DOM and item == "L":
        return days.LAST_DAY_OF_MONTH
    if field is not _DOW:
        _refuse(
            field,
            item,
            "is not supported here; L stands alone in the day of month, "
            "5#2 and 5L belong to the day of week",
        )
    if item == "L":
        _refuse(field, item, "needs a day before it, such as 5L for the last Friday")
    if item.endswith("L"):
        return days.last_day_of_week(_value(field, item, item[:-1]) % 7)
    day_text, _, nth_text = item.partition("#")
    if nth_text not in ("1", "2", "3", "4", "5"):
        _refuse(field, item, "needs 1 to 5 after the #, such as 5#2 for the second Friday")
    return days.nth_day_of_week(_value(field, item, day_text) % 7, int(nth_text))


def _value(field: _Field, item: str, text: str) -> int:
    if text in field.names:
        return field.names[text]
    if not text.isdigit():
        names = f" or names such as {next(iter(field.names))}" if field.names else ""
        _refuse(
            field,
            item,
            f"is not understood; write numbers from {field.low} to {field.high}{names}, "
            "ranges 1-5, steps */2, lists 1,3",
        )
    if not field.low <= int(text) <= field.high:
        _refuse(field, item, f"is out of range; {field.low} to {field.high} are possible")
    return int(text)


def _step(field: _Field, item: str, text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        _refuse(field, item, "has a bad step; write a whole number from 1 after the /")
    return int(text)


def _turned_round(field: _Field, low: int, high: int) -> str:
    if field is _DOW and high == 0:
        return f"runs backwards; Sunday at the end of a range is 7: write {low}-7"
    return f"runs backwards; write two ranges in a list: {low}-{field.full_high},{field.low}-{high}"


def _refuse_dialects(field: _Field, item: str) -> None:
    """Refuse R and W, which other programs have, with a sentence that says what to write
    instead."""
    if item == "R" or item.startswith(("R/", "R(")):
        _refuse(
            field,
            item,
            "is not supported (a random time changes at each restart); write H, "
            "a hash of the name, which never changes",
        )
    if field is _DOM and item.endswith("W"):
        _refuse(
            field,
            item,
            "is not supported (nearest weekday); give the day of week as 1-5, or list the days",
        )


def _refuse(field: _Field, item: str, sentence: str) -> NoReturn:
    raise _bad(f"{field.name} {_shown(item)} {sentence}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _bad(sentence: str) -> BadField:
    return BadField("schedule", sentence)
