"""Text fields of the resource: patterns that speak, and RFC 3339 instants.

`v1alpha1` annotates its string fields with `Spoken` and `InstantText`: one pattern with one
sentence, checked by the API server (pattern and CEL message) and by `read` (the same sentence).
What a text means (is the zone known, is the cron possible) is not decided here.
"""

import datetime
import functools
import re
from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, JsonValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from evenkeel.model import Instant
from evenkeel.resource.rfc3339 import LAST

DURATION_PATTERN = r"^([0-9]+(w|d|h|m|s))+$"
CLOCK_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
WHOLE_SECONDS = "times are whole seconds, such as 2030-01-31T06:00:00Z"
RFC3339 = "write an RFC 3339 time with a zone, such as 2030-01-31T06:00:00Z"

_RFC3339 = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})"
)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def cel(rule: str, message: str, *, path: str | None = None) -> dict[str, JsonValue]:
    """One entry of x-kubernetes-validations."""
    entry: dict[str, JsonValue] = {"rule": rule, "message": message}
    if path is not None:
        entry["fieldPath"] = path
    return entry


def cel_text(text: str) -> str:
    """A CEL string literal; unescaped, a backslash of a pattern would be an escape of CEL."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def said(sentence: str) -> PydanticCustomError:
    """A validation error whose message is exactly the sentence, whatever braces it holds."""
    return PydanticCustomError("said", "{sentence}", {"sentence": sentence})


@dataclass(frozen=True, slots=True)
class Text:
    """What the text fields share: a core schema with a check, and a structural JSON schema.

    Length is bounded because CEL's cost estimate is over any budget for unbounded strings.
    """

    longest: int
    shortest: ClassVar[int] = 1

    def check(self, value: str) -> str:
        """The value, or a `said` error."""
        raise NotImplementedError

    def published(self) -> dict[str, Any]:
        """Keywords for the CRD beside type and lengths."""
        raise NotImplementedError

    def __get_pydantic_core_schema__(
        self, _source: object, _handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        plain = core_schema.str_schema(
            strict=True, min_length=self.shortest, max_length=self.longest
        )
        return core_schema.no_info_after_validator_function(self.check, plain)

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {**handler(schema), **self.published()}


@dataclass(frozen=True, slots=True)
class Spoken(Text):
    """Every pattern of `must` matches and none of `never` is found, or its sentence is said.

    The last of `must` is also published as OpenAPI `pattern`, for editors that know no CEL.
    """

    must: tuple[tuple[str, str], ...]
    never: tuple[tuple[str, str], ...] = ()

    def check(self, value: str) -> str:
        for pattern, sentence in self.never:
            if _compiled(pattern).search(value) is not None:
                raise said(sentence)
        for pattern, sentence in self.must:
            # fullmatch: Python's $ would let a trailing line feed through, RE2's does not
            if _compiled(pattern).fullmatch(value) is None:
                raise said(sentence)
        return value

    def published(self) -> dict[str, Any]:
        rules = [
            cel(f"!self.matches({cel_text(pattern)})", sentence) for pattern, sentence in self.never
        ]
        rules += [
            cel(f"self.matches({cel_text(pattern)})", sentence) for pattern, sentence in self.must
        ]
        return {"pattern": self.must[-1][0], "x-kubernetes-validations": rules}


@dataclass(frozen=True, slots=True)
class InstantText(Text):
    """An RFC 3339 time of the spec; CEL sees `format: date-time` as a timestamp."""

    longest: int = 40

    def check(self, value: str) -> str:
        try:
            parse_instant(value)
        except ValueError as mistake:
            raise said(str(mistake)) from None
        return value

    def published(self) -> dict[str, Any]:
        return {
            "format": "date-time",
            "x-kubernetes-validations": [cel("timestamp(int(self)) == self", WHOLE_SECONDS)],
        }


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def parse_instant(text: str) -> Instant:
    """RFC 3339 to whole seconds UTC; ValueError with a sentence for people."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError(RFC3339)
    if match[2] is not None and match[2].strip(".0"):
        raise ValueError(WHOLE_SECONDS)
    try:
        instant = datetime.datetime.fromisoformat(match[1] + match[3])
    except ValueError:  # 31 February, hour 25, offset +99:99: right in shape, no such time
        raise ValueError(RFC3339) from None
    seconds = round((instant - _EPOCH).total_seconds())
    if not 0 <= seconds <= LAST:
        raise ValueError("times lie between 1970 and 9999")
    return seconds


def parse_clock(text: str) -> int:
    """`HH:MM`, already matched against CLOCK_PATTERN, to seconds after midnight."""
    return int(text[:2]) * 3600 + int(text[3:5]) * 60
