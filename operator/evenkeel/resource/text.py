"""Types for the text fields of the resource: patterns with a sentence each, and RFC 3339 times.

`v1alpha1` annotates its string fields with `PatternText` and `InstantText`. Each pattern has the
sentence that is shown if the text does not match, by the API server (CEL message) and by `read`.
Only the form of a text is checked: whether a zone exists, or a cron text is possible, `when`
checks.
"""

import datetime
import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from evenkeel.model import Instant
from evenkeel.rfc3339 import LAST

DURATION_PATTERN = r"^([0-9]+(w|d|h|m|s))+$"
CLOCK_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
WHOLE_SECONDS = "times are whole seconds, such as 2030-01-31T06:00:00Z"
RFC3339 = "write an RFC 3339 time with a zone, such as 2030-01-31T06:00:00Z"

_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)
_FRACTION = r"^[^.]*\.[0-9]*[1-9][0-9]*(Z|[+-][0-9:]+)$"
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def cel(rule: str, message: str, *, path: str | None = None) -> dict[str, JsonValue]:
    """One entry of x-kubernetes-validations."""
    entry: dict[str, JsonValue] = {"rule": rule, "message": message}
    if path is not None:
        entry["fieldPath"] = path
    return entry


def unless_unchanged(
    entry: dict[str, JsonValue], unchanged: str = "oldSelf.hasValue() && oldSelf.value() == self"
) -> dict[str, JsonValue]:
    """The same rule, but what was stored before the rule came passes while nobody changes it.

    Without this Kubernetes 1.30 to 1.32 would refuse every status of such an object: they check the
    rules of the spec then, without ratcheting. No version ratchets a rule whose evaluation fails.
    """
    return {**entry, "rule": f"{unchanged} || {entry['rule']}", "optionalOldSelf": True}


def cel_text(text: str) -> str:
    """A CEL string literal. Backslashes of a pattern are escaped, or CEL would read them as
    escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def has_form_of_instant(text: str) -> str:
    """CEL for "this text looks like a time": of any other text `timestamp` fails the evaluation."""
    return f"{text}.matches({cel_text(f'^{_RFC3339.pattern}$')})"


def refusal(sentence: str) -> PydanticCustomError:
    """A validation error whose message is exactly the sentence, even if it contains braces."""
    return PydanticCustomError("refused", "{sentence}", {"sentence": sentence})


@dataclass(frozen=True, slots=True)
class Text(ABC):
    """The base of the text types: a check for pydantic, and keywords for the CRD.

    Every text has a greatest length: without it CEL's estimated cost exceeds the API server's
    limit.
    """

    longest: int

    @abstractmethod
    def check(self, value: str) -> str:
        """Return the value, or raise a `refusal`."""

    @abstractmethod
    def published(self) -> dict[str, Any]:
        """Keywords for the CRD, in addition to type and lengths."""

    def __get_pydantic_core_schema__(
        self, _source: object, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        plain = core_schema.str_schema(strict=True, max_length=self.longest)
        return core_schema.no_info_after_validator_function(self.check, plain)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **self.published()}


@dataclass(frozen=True, slots=True)
class PatternText(Text):
    """A text that matches a pattern. `sentence` says what to write instead.

    The CRD has the pattern in CEL and not as OpenAPI `pattern`: the API server would put the bare
    pattern in front of the sentence.
    """

    pattern: str
    sentence: str

    def check(self, value: str) -> str:
        # fullmatch: Python's $ also matches before a trailing line feed, that of CEL does not
        if _compiled(self.pattern).fullmatch(value) is None:
            raise refusal(self.sentence)
        return value

    def published(self) -> dict[str, Any]:
        rule = cel(f"self.matches({cel_text(self.pattern)})", self.sentence)
        return {"x-kubernetes-validations": [rule]}


@dataclass(frozen=True, slots=True)
class RuledText(Text):
    """A text that the API server checks by rules of its own, and Python in `evenkeel.when`."""

    rules: Callable[[], list[dict[str, JsonValue]]]

    def check(self, value: str) -> str:
        return value

    def published(self) -> dict[str, Any]:
        return {"x-kubernetes-validations": self.rules()}


@dataclass(frozen=True, slots=True)
class InstantText(Text):
    """An RFC 3339 time. The CRD has no `format: date-time`: the API server would say "must be of
    type date-time" in front of the sentence, or instead of it."""

    longest: int = 40

    def check(self, value: str) -> str:
        try:
            parse_instant(value)
        except ValueError as mistake:
            raise refusal(str(mistake)) from None
        return value

    def published(self) -> dict[str, Any]:
        form = has_form_of_instant("self")
        # A date that does not exist fails the evaluation, which refuses it with the same sentence.
        exists = "timestamp(self).getSeconds() >= 0"
        whole = f"!self.matches({cel_text(_FRACTION)})"
        return {
            "x-kubernetes-validations": [
                unless_unchanged(cel(f"{form} && {exists}", RFC3339)),
                unless_unchanged(cel(whole, WHOLE_SECONDS)),
            ],
        }


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def parse_instant(text: str) -> Instant:
    """The instant of an RFC 3339 text. ValueError with a sentence for the owner if it is wrong."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(RFC3339)
    if match[2] is not None and match[2].strip(".0"):
        raise ValueError(WHOLE_SECONDS)
    try:
        instant = datetime.datetime.fromisoformat(match[1] + match[3])
    except (
        ValueError
    ):  # of the right form, but there is no such time: 31 February, hour 25, offset +99:99
        raise ValueError(RFC3339) from None
    seconds = round((instant - _EPOCH).total_seconds())
    if not 0 <= seconds <= LAST:
        raise ValueError("times lie between 1970 and 9999")
    return seconds


def parse_clock(text: str) -> int:
    """Seconds after midnight of `HH:MM`. The text must match CLOCK_PATTERN."""
    return int(text[:2]) * 3600 + int(text[3:5]) * 60
