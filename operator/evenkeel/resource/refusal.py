"""The API server's sentence about a Job, in the words of the ScheduledJob that it is made of. Pure.

The API server names the Job and the Job's fields. Whoever wrote the ScheduledJob knows neither: a
dry run has a name that no Job ever gets, and `spec.template` stands at `spec.jobTemplate.spec`
there. Called for refused dry runs and creates. What is not known here stays as it was said.
"""

import re
from collections.abc import Mapping
from typing import Any

SENTENCE_LIMIT = 1024
STRICT = "strict decoding error: "

_LEAD = re.compile(r"\AJob in version \"[^\"]*\" cannot be handled as a Job: ")
_INVALID = re.compile(r"\AJob\.batch \"[^\"]*\" is invalid: ")
_QUOTED = re.compile(r"(?<=field \")(?=spec\.|metadata\.)")
_GO_FIELD = re.compile(r"Go struct field \w+\.(?=spec\.|metadata\.)")
_BARE = re.compile(r"\A(?=(?:spec|metadata)[.\[:])")
_WARNING = re.compile(r"(?:\A|; )\d{3} \S+ \"((?:[^\"\\]|\\.)*)\"")
_OF_JOB = "spec.jobTemplate."


def is_strict(message: str) -> bool:
    """Whether a field was refused that this API server does not know."""
    return STRICT in message


def refusal(status: Mapping[str, Any], message: str) -> str:
    """`status` is the API server's Status, and `message` its sentence."""
    said = _causes(status) if _INVALID.match(message) else ""
    if not said:
        said = _LEAD.sub("", _INVALID.sub("", message)).removeprefix(STRICT)
        said = _GO_FIELD.sub(_OF_JOB, _in_template(said))
    return said[:SENTENCE_LIMIT]


def warnings(header: str) -> str:
    """The texts of `Warning` headers, which say `299 - "text"` each."""
    found = [re.sub(r"\\(.)", r"\1", text) for text in _WARNING.findall(header)]
    said = "; ".join(_in_template(text) for text in found) if found else header
    return said[:SENTENCE_LIMIT]


def _causes(status: Mapping[str, Any]) -> str:
    """Each mistake with its field, as the API server lists them beside its sentence."""
    details = status.get("details")
    causes = details.get("causes") if isinstance(details, Mapping) else None
    rows = [row for row in causes if isinstance(row, Mapping)] if isinstance(causes, list) else []
    return "; ".join(
        f"{_in_template(str(row.get('field', '')))}: {row.get('message', '')}" for row in rows
    )


def _in_template(said: str) -> str:
    return _QUOTED.sub(_OF_JOB, _BARE.sub(_OF_JOB, said))
