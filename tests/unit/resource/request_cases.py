"""RunRequests that are right and wrong, for tests of the reader and of a real API server.

One table for both, as `cases` has it for ScheduledJobs.
"""

from typing import Any

from tests.unit.resource.cases import Bad, Json

NIGHTLY: Json = {"schedule": "nightly"}
JANUARY: Json = {"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}
UID = "3f0c9a52-6d1e-4f36-9a2b-51f0f2f3c0de"


def run_request(spec: Any, *, name: str = "again", ns: str = "shop", **metadata: Any) -> Json:
    """A RunRequest as the API server hands it out."""
    return {
        "apiVersion": "evenkeel.dev/v1alpha1",
        "kind": "RunRequest",
        "metadata": {
            "name": name,
            "namespace": ns,
            "uid": UID,
            "generation": 2,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": spec,
    }


def wish(**fields: Any) -> Json:
    """The spec of a request for the schedule `nightly`."""
    return {**NIGHTLY, **fields}


def backfill(**fields: Any) -> Json:
    """The spec of a request for the due times of January."""
    return wish(range=JANUARY, **fields)


GOOD_REQUESTS: dict[str, Json] = {
    "one run now": wish(),
    "one run with a due time": wish(at="2026-01-01T03:00:00+01:00"),
    "one run later": wish(at="2126-01-01T03:00:00Z"),
    "a backfill": backfill(),
    "all of a backfill": backfill(
        include="All",
        order="NewestFirst",
        maxActive=100,
        overlap="Policy",
        stopAfterFailures=0,
        suspend=True,
        parameters=[{"name": "DAY", "value": ""}, {"name": "_day2", "value": "$(SECRET)"}],
        force=True,
        dryRun=True,
        ttlSecondsAfterFinished=0,
    ),
    "one run with what works without a range": wish(
        overlap="Allow", suspend=True, force=True, dryRun=True, ttlSecondsAfterFinished=86_400
    ),
    "defaults of a range, written out for one run": wish(
        include="NotSucceeded", order="OldestFirst", maxActive=1, stopAfterFailures=3
    ),
    "a schedule whose name has dots": {"schedule": "a.b-c.9"},
    "a schedule with the longest name": {"schedule": "a" * 253},
    "twenty parameters": wish(
        parameters=[{"name": f"P{number}", "value": "x" * 4096} for number in range(20)]
    ),
    "explicit nulls": wish(
        at=None,
        range=None,
        include=None,
        order=None,
        maxActive=None,
        overlap=None,
        stopAfterFailures=None,
        suspend=None,
        parameters=None,
        force=None,
        dryRun=None,
        ttlSecondsAfterFinished=None,
    ),
}

_RFC3339 = "write an RFC 3339 time with a zone"
_NAME = "write the name of an environment variable"

REQUESTS_REFUSED_BY_BOTH: tuple[Bad, ...] = (
    Bad(
        "at and range",
        backfill(at="2026-01-01T00:00:00Z"),
        "spec",
        "at most one of at and range can be set: at is for one run, range for a backfill",
    ),
    Bad(
        "a range backwards",
        wish(range={"from": JANUARY["to"], "to": JANUARY["from"]}),
        "spec.range",
        "from must be earlier than to",
    ),
    Bad(
        "a range of nothing, in two zones",
        wish(range={"from": "2026-01-01T01:00:00+01:00", "to": "2026-01-01T00:00:00Z"}),
        "spec.range",
        "from must be earlier than to",
    ),
    *(
        Bad(f"{field} without a range", wish(**{field: value}), f"spec.{field}", sentence)
        for field, value, sentence in (
            ("include", "All", "include works with range only: write a range, or remove include"),
            ("order", "NewestFirst", "order works with range only"),
            ("maxActive", 2, "maxActive works with range only"),
            ("stopAfterFailures", 0, "stopAfterFailures works with range only"),
        )
    ),
    Bad(
        "include with at",
        wish(at="2026-01-01T00:00:00Z", include="NotRun"),
        "spec.include",
        "include works with range only",
    ),
    Bad(
        "a schedule of another namespace",
        {"schedule": "shop/nightly"},
        "spec.schedule",
        "names a ScheduledJob of the same namespace: write its name alone",
    ),
    *(
        Bad(why, {"schedule": name}, "spec.schedule", "write the name of a ScheduledJob")
        for why, name in (
            ("no name", ""),
            ("a name with capitals", "Nightly"),
            ("a name with a line feed behind it", "nightly\n"),
            ("a name that begins with a dash", "-nightly"),
            ("a name with two dots", "a..b"),
            ("a name of another script", "n\u0131ghtly"),
        )
    ),
    *(
        Bad(f"{why} as at", wish(at=text), "spec.at", _RFC3339)
        for why, text in (
            ("a date without a time", "2026-01-01"),
            ("a day that no month has", "2026-02-31T00:00:00Z"),
            ("yesterday", "yesterday"),
        )
    ),
    Bad("a fraction of a second", wish(at="2026-01-01T00:00:00.5Z"), "spec.at", "whole seconds"),
    Bad(
        "a range from a date alone",
        wish(range={**JANUARY, "from": "2026-01-01"}),
        "spec.range.from",
        _RFC3339,
    ),
    *(
        Bad(
            f"a parameter named {name!r}",
            wish(parameters=[{"name": name, "value": "x"}]),
            "spec.parameters[0].name",
            _NAME,
        )
        for name in ("", "1DAY", "A-B", "A B", "DAY\n", "TÄG")
    ),
    Bad(
        "a parameter twice",
        wish(parameters=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),
        "spec.parameters",
        "each name may stand once: two parameters have the same",
    ),
)
"""Said in the same words by the API server and by `read_request`."""

REQUESTS_REFUSED_IN_OTHER_WORDS: tuple[tuple[Bad, str], ...] = (
    (Bad("no schedule", {}, "spec.schedule", "is required"), "Required"),
    (
        Bad("a schedule that is a number", {"schedule": 5}, "spec.schedule", "must be a string"),
        "must be of type string|expected string",
    ),
    (
        Bad(
            "a schedule with too long a name",
            {"schedule": "a" * 254},
            "spec.schedule",
            "must have at most 253 characters",
        ),
        "Too long",
    ),
    (
        Bad(
            "a range without to",
            wish(range={"from": "2026-01-01T00:00:00Z"}),
            "spec.range.to",
            "is required",
        ),
        "Required",
    ),
    (
        Bad("a range in words", wish(range="January"), "spec.range", "must be an object"),
        "must be of type object|expected map",
    ),
    *(
        (Bad(why, backfill(**fields), f"spec.{field}", sentence), words)
        for why, field, fields, sentence, words in (
            (
                "none at once",
                "maxActive",
                {"maxActive": 0},
                "must be at least 1",
                "greater than or equal to 1",
            ),
            (
                "101 at once",
                "maxActive",
                {"maxActive": 101},
                "must be at most 100",
                "less than or equal to 100",
            ),
            (
                "a negative number of failures",
                "stopAfterFailures",
                {"stopAfterFailures": -1},
                "must be at least 0",
                "greater than or equal to 0",
            ),
            (
                "a negative lifetime",
                "ttlSecondsAfterFinished",
                {"ttlSecondsAfterFinished": -1},
                "must be at least 0",
                "greater than or equal to 0",
            ),
            (
                "an include that nobody knows",
                "include",
                {"include": "Failed"},
                "must be 'NotSucceeded', 'NotRun' or 'All'",
                "Unsupported value",
            ),
            (
                "an order that nobody knows",
                "order",
                {"order": "Random"},
                "must be 'OldestFirst' or 'NewestFirst'",
                "Unsupported value",
            ),
            (
                "an overlap that nobody knows",
                "overlap",
                {"overlap": "Replace"},
                "must be 'Wait', 'Allow' or 'Policy'",
                "Unsupported value",
            ),
            (
                "force in quotes",
                "force",
                {"force": "true"},
                "must be true or false",
                "must be of type boolean|expected boolean",
            ),
        )
    ),
    (
        Bad(
            "21 parameters",
            wish(parameters=[{"name": f"P{number}", "value": ""} for number in range(21)]),
            "spec.parameters",
            "must have at most 20 entries",
        ),
        "Too many",
    ),
    (
        Bad(
            "a parameter without value",
            wish(parameters=[{"name": "A"}]),
            "spec.parameters[0].value",
            "is required",
        ),
        "Required",
    ),
    (
        Bad(
            "a value of 4,097 characters",
            wish(parameters=[{"name": "A", "value": "x" * 4097}]),
            "spec.parameters[0].value",
            "must have at most 4096 characters",
        ),
        "Too long",
    ),
    (
        Bad(
            "a value that is a number",
            wish(parameters=[{"name": "A", "value": 7}]),
            "spec.parameters[0].value",
            "must be a string",
        ),
        "must be of type string|expected string",
    ),
)
"""Refused by both; the API server's words follow."""

REQUESTS_REFUSED_WHILE_DECODED: tuple[Bad, ...] = (
    Bad(
        "parameters as a mapping",
        wish(parameters={"A": "1"}),
        "spec.parameters",
        "must be a list",
    ),
)
"""Refused by the API server before it looks at the schema."""
