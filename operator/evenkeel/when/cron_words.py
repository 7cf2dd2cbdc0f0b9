"""What a cron text may hold, and the sentences about what it may not.

`cron` refuses texts with these sentences, and `resource.cron_rules` has the API server say the same
ones: a mistake is called by one name wherever it is found.
"""

from dataclasses import dataclass

LONGEST_TEXT = 256
LONGEST_SHOWN = 40
"""At most so many characters of an entry are quoted."""

ALIASES = {
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


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """One of the five."""

    name: str
    low: int
    high: int
    names: dict[str, int]
    full_high: int
    """The last value of `*` and `N/step`: 6 for the day of week, because 7 is Sunday again."""
    hash_high: int
    """The last value of `H`: 28 for the day of month, the last day that every month has."""

    def value(self, text: str) -> int:
        """The number of a name or of digits."""
        return self.names[text] if text in self.names else int(text)

    @property
    def not_understood(self) -> str:
        """About an entry that is no number and no name of this field."""
        names = f" or names such as {next(iter(self.names))}" if self.names else ""
        return (
            f"is not understood; write numbers from {self.low} to {self.high}{names}, "
            "ranges 1-5, steps */2, lists 1,3"
        )

    @property
    def out_of_range(self) -> str:
        return f"is out of range; {self.low} to {self.high} are possible"

    @property
    def hash_out_of_range(self) -> str:
        return f"is out of range; H takes {self.low} to {self.hash_high} here"


MINUTE = Field("minute", 0, 59, {}, 59, 59)
HOUR = Field("hour", 0, 23, {}, 23, 23)
DAY_OF_MONTH = Field("day of month", 1, 31, {}, 31, 28)
MONTH = Field("month", 1, 12, {name: n for n, name in enumerate(_MONTHS, 1)}, 12, 12)
DAY_OF_WEEK = Field("day of week", 0, 7, {name: n for n, name in enumerate(_DAYS)}, 6, 6)
FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)

# --- about the whole text ---------------------------------------------------------------------

PLAIN_ASCII = "write plain ASCII characters only: digits, letters and the signs * ? , - / # ( )"
FIVE = "five fields are expected (minute, hour, day of month, month, day of week)"
EMPTY = f"is empty; {FIVE}"
_HINT_AT_SIX = "; seconds are not supported: use interval.every for runs off the minute"
_HINT_AT_SEVEN = "; seconds and years are not supported: use interval.every, or at for one run"
ZONE_INSIDE = "a zone inside the text is not supported; use the field timeZone"
EVERY = "@every is not supported; use interval.every, such as interval: {every: 25m}"
UNKNOWN_ALIAS = f"is not known; the aliases are {' '.join(ALIASES).lower()}"
NOT_ALONE = "stands alone: remove what follows it"

# --- about one entry, after its field and text ------------------------------------------------

EMPTY_ENTRY = "has an empty entry; remove the comma or write a value"
BAD_STEP = "has a bad step; write a whole number from 1 after the /"
BAD_HASH = "is not understood; write H, H/15, H(0-29) or H(0-29)/10"
STEP_OF_A_DAY = "cannot have a step; list the days instead"
NO_DAY_FIELD = (
    "is not supported here; L stands alone in the day of month, "
    "5#2 and 5L belong to the day of week"
)
LAST_OF_WHICH_DAY = "needs a day before it, such as 5L for the last Friday"
WHICH_OF_THE_MONTH = "needs 1 to 5 after the #, such as 5#2 for the second Friday"
RANDOM = (
    "is not supported (a random time changes at each restart); write H, "
    "a hash of the name, which never changes"
)
NEAREST_WEEKDAY = (
    "is not supported (nearest weekday); give the day of week as 1-5, or list the days"
)
BACKWARDS = "runs backwards; "
TWO_RANGES = "write two ranges in a list: "
SUNDAY_LAST = "Sunday at the end of a range is 7: write "
SUNDAY_FIRST = "Sunday at the start of a range is 0: write 0-"


def found(words: int) -> str:
    """About a text of so many words instead of five."""
    hint = {6: _HINT_AT_SIX, 7: _HINT_AT_SEVEN}.get(words, "")
    return f"{FIVE}, {words if words < 8 else '8 or more'} found{hint}"


def shown(text: str) -> str:
    """An entry in quotes, cut where it is long."""
    cut = text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "..."
    return f"'{cut}'"
