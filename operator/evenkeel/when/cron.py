"""Reads a cron text into bit masks, by the rules of docs/schedules.md.

`compile` calls `parse_cron`, and so does the second opinion of `evenkeel lint`. A text that it does
not understand raises `BadField`, and nothing else, with the field and what to write instead. We
parse cron ourselves because the libraries read some texts differently (59/5, 22-2, 5L or L5), and
because a refusal must say more than "bad syntax". Tests compare the parser with croniter and
cronsim, and `evenkeel lint` with croniter. The operator uses neither: croniter takes 40 to 190 us
for a text, this parser and the rest of `compile` together 20 us.

The parser knows no zones and no dates: whether any day matches, `compile` asks of the calendar.
"""

import functools
import hashlib
import re
from dataclasses import dataclass
from typing import NoReturn

from evenkeel.errors import BadField
from evenkeel.model import DayMatch
from evenkeel.when import cron_words as words
from evenkeel.when import days
from evenkeel.when.cron_words import Field, shown

_PLAIN = re.compile(r"[ -~\t\r\n]*")
_SPACES = re.compile(r"[ \t\r\n]+")
_HASHED = re.compile(r"H(\(([^()]*)\))?")


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


def parse_cron(text: str, *, day_match: DayMatch, seed: str) -> CronFields:
    """The bit masks of a cron text. `seed` (namespace/name) is hashed for `H`."""
    if len(text) > words.LONGEST_TEXT:
        raise _bad(f"{len(text)} characters are too many; at most {words.LONGEST_TEXT} are read")
    if _PLAIN.fullmatch(text) is None:
        raise _bad(words.PLAIN_ASCII)
    five = _split(text.upper())
    read = [
        _read_field(field, word, seed if "H" in word else "")
        for field, word in zip(words.FIELDS, five, strict=True)
    ]
    (minute, _), (hour, _), (dom, dom_unset), (month, _), (dow, dow_unset) = read
    return CronFields(
        minute=minute,
        hour=hour,
        dom=dom,
        month=month,
        dow=dow,
        either=day_match is DayMatch.OR and not dom_unset and not dow_unset,
        by_real_minutes=five[0][0] in "*?" or five[1][0] in "*?",
    )


def _split(text: str) -> list[str]:
    found = [word for word in _SPACES.split(text) if word]
    if not found:
        raise _bad(words.EMPTY)
    if found[0].startswith("@"):
        return _alias(found)
    if found[0].startswith(("TZ=", "CRON_TZ=")):
        raise _bad(words.ZONE_INSIDE)
    if len(found) != 5:
        raise _bad(words.found(len(found)))
    return found


def _alias(found: list[str]) -> list[str]:
    alias = found[0]
    if alias == "@EVERY":
        raise _bad(words.EVERY)
    if alias not in words.ALIASES:
        raise _bad(f"{shown(alias.lower())} {words.UNKNOWN_ALIAS}")
    if len(found) > 1:
        raise _bad(f"{shown(alias.lower())} {words.NOT_ALONE}")
    return words.ALIASES[alias].split()


@functools.lru_cache(maxsize=4096)
def _read_field(field: Field, word: str, seed: str) -> tuple[int, bool]:
    """The mask of one field, and whether it is unset (`*`). Cached: most fields occur many
    times."""
    mask, unset = 0, False
    for item in word.split(","):
        item_mask, item_unset = _read_item(field, item, seed)
        mask |= item_mask
        unset |= item_unset
    return mask, unset


def _read_item(field: Field, item: str, seed: str) -> tuple[int, bool]:
    """The mask of one entry of a list, and whether it is a star, which leaves the field unset."""
    if not item:
        _refuse(field, item, words.EMPTY_ENTRY)
    _refuse_dialects(field, item)
    head, slash, step_text = item.partition("/")
    step = _step(field, item, step_text) if slash else 1
    if head in ("*", "?"):
        return _bits(field, field.low, field.full_high, step), step == 1
    if head.startswith("H"):
        return _hashed(field, item, head, step if slash else None, seed), False
    if "#" in head or (head.endswith("L") and field is not words.MONTH):  # JUL is a month
        if slash:
            _refuse(field, item, words.STEP_OF_A_DAY)
        return _counted_day(field, item), False
    low_text, dash, high_text = head.partition("-")
    low = _value(field, item, low_text)
    if dash:
        high = _value(field, item, high_text)
        if high < low:
            _refuse(field, item, _turned_round(field, low_text, high_text))
    else:
        high = max(low, field.full_high) if slash else low
    return _bits(field, low, high, step), False


def _bits(field: Field, low: int, high: int, step: int) -> int:
    mask = 0
    for value in range(low, high + 1, step):
        mask |= 1 << value
    if field is words.DAY_OF_WEEK and mask >> 7:
        mask = mask & days.ANY_DAY_OF_WEEK | 1
    return mask


def _hashed(field: Field, item: str, head: str, step: int | None, seed: str) -> int:
    """`H` is one value, chosen by a hash of the name. `H/15` is every 15th value, from a start
    below 15 that the hash chooses."""
    matched = _HASHED.fullmatch(head)
    if matched is None:
        _refuse(field, item, words.BAD_HASH)
    low, high = field.low, field.hash_high
    if matched[1] is not None:
        low_text, _, high_text = matched[2].partition("-")
        low = _value(field, item, low_text)
        high = _value(field, item, high_text)
        if high < low:
            _refuse(field, item, _turned_round(field, low_text, high_text))
        if high > field.hash_high:
            _refuse(field, item, field.hash_out_of_range)
    digest = hashlib.sha256(f"{seed}\0{field.name}".encode()).digest()
    number = int.from_bytes(digest[:8], "big")
    width = high - low + 1
    if step is None:
        return 1 << (low + number % width)
    return _bits(field, low + number % min(step, width), high, step)


def _counted_day(field: Field, item: str) -> int:
    """`L` in the day of month; `5#2` (second Friday) and `5L` (last Friday) in the day of week."""
    if field is words.DAY_OF_MONTH and item == "L":
        return days.LAST_DAY_OF_MONTH
    if field is not words.DAY_OF_WEEK:
        _refuse(field, item, words.NO_DAY_FIELD)
    if item == "L":
        _refuse(field, item, words.LAST_OF_WHICH_DAY)
    if item.endswith("L"):
        return days.last_day_of_week(_value(field, item, item[:-1]) % 7)
    day_text, _, nth_text = item.partition("#")
    if nth_text not in ("1", "2", "3", "4", "5"):
        _refuse(field, item, words.WHICH_OF_THE_MONTH)
    return days.nth_day_of_week(_value(field, item, day_text) % 7, int(nth_text))


def _value(field: Field, item: str, text: str) -> int:
    if text not in field.names and not text.isdigit():
        _refuse(field, item, field.not_understood)
    value = field.value(text)
    if not field.low <= value <= field.high:
        _refuse(field, item, field.out_of_range)
    return value


def _step(field: Field, item: str, text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        _refuse(field, item, words.BAD_STEP)
    return int(text)


def _turned_round(field: Field, low: str, high: str) -> str:
    if field is words.DAY_OF_WEEK and field.value(high) == 0:
        return f"{words.BACKWARDS}{words.SUNDAY_LAST}{low}-7"
    if field is words.DAY_OF_WEEK and field.value(low) == 7:
        return f"{words.BACKWARDS}{words.SUNDAY_FIRST}{high}"
    ranges = f"{low}-{field.full_high},{field.low}-{high}"
    return f"{words.BACKWARDS}{words.TWO_RANGES}{ranges}"


def _refuse_dialects(field: Field, item: str) -> None:
    """Refuse R and W, which other programs have, with a sentence that says what to write
    instead."""
    if item == "R" or item.startswith(("R/", "R(")):
        _refuse(field, item, words.RANDOM)
    if field is words.DAY_OF_MONTH and item.endswith("W"):
        _refuse(field, item, words.NEAREST_WEEKDAY)


def _refuse(field: Field, item: str, sentence: str) -> NoReturn:
    raise _bad(f"{field.name} {shown(item)} {sentence}")


def _bad(sentence: str) -> BadField:
    return BadField("schedule", sentence)
