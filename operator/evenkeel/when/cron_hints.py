"""What was probably meant by a cron text that is right and does something else.

`core.schedule.accept` adds the hint to the condition ScheduleAccepted, and `evenkeel lint` makes it
a note. CronJob accepts such a text without a word. Only one mistake is known here: a step that is
larger than its field.
"""

import re

from evenkeel.model import DAY_S
from evenkeel.when import cron_words as words
from evenkeel.when.compile import LONGEST_INTERVAL_S
from evenkeel.when.cron_words import Field, shown

# Field: what it is a part of, and the unit of an interval of so many.
_STEPS: dict[Field, tuple[str, str, int]] = {
    words.MINUTE: ("hour", "m", 60),
    words.HOUR: ("day", "h", 3600),
    words.DAY_OF_MONTH: ("month", "d", DAY_S),
    words.MONTH: ("year", "", 0),
    words.DAY_OF_WEEK: ("week", "d", DAY_S),
}
_STEP = re.compile(r"[*?H]/0*([0-9]+)", re.IGNORECASE)


def hint(text: str) -> str:
    """A sentence about the first step that is larger than its field; empty if there is none.

    `*/60` of minutes is what it looks like, once an hour; `*/90` is the same and looks like every
    90 minutes. The text must be right."""
    fields = text.split()
    if len(fields) != len(words.FIELDS):
        return ""  # an alias
    for field, word in zip(words.FIELDS, fields, strict=True):
        for entry in word.split(","):
            step = _STEP.fullmatch(entry)
            if step is not None and int(step[1]) > field.full_high - field.low + 1:
                return _sentence(field, entry, int(step[1]))
    return ""


def _sentence(field: Field, entry: str, step: int) -> str:
    whole, unit, unit_s = _STEPS[field]
    name = "day" if field in (words.DAY_OF_MONTH, words.DAY_OF_WEEK) else field.name
    said = f"{field.name} {shown(entry)} matches one {name} of each {whole} only."
    if not unit or step * unit_s > LONGEST_INTERVAL_S:
        return said
    return f"{said} If every {step} {name}s was meant, write interval: {{every: {step}{unit}}}."
