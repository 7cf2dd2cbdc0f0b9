"""What the readers of ScheduledJobs and RunRequests share: nothing in an object makes them raise.

`read` and `request_read` call `guarded` for each object. A wrong object becomes a Rejection with a
sentence for its owner. Pydantic checks the shape of a spec, and its rules check fields that depend
on one another.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from evenkeel.errors import BadField
from evenkeel.model import Instant, Rejection
from evenkeel.reasons import ConditionReason
from evenkeel.resource.rule import Rule
from evenkeel.resource.text import parse_instant

QUOTED_MAX = 200
"""At most so many characters of an error message are quoted: an Event can hold 1,024 in all."""

NOTE_LENGTH = 256
"""An annotation may have 256 KiB, and ours stand in log lines and in rows of the ledger."""

T = TypeVar("T")
S = TypeVar("S", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Identity:
    """Which object it is."""

    uid: str = ""
    ns: str = ""
    name: str = ""
    generation: int = 0


def guarded(raw: object, build: Callable[[Identity], T]) -> T | Rejection:
    """What `build` makes of the object, or the reason for which it is not accepted."""
    whose = Identity()
    try:
        whose = _identity(raw)
        if not whose.name:
            raise BadField("metadata.name", "is required")
        return build(whose)
    except BadField as mistake:
        return _rejection(whose, mistake)
    except Exception as surprise:  # noqa: BLE001 - one bad object must not stop the others
        sentence = f"the object could not be read ({type(surprise).__name__})"
        return _rejection(whose, BadField("", sentence, reason=ConditionReason.UNREADABLE))


def checked(model: type[S], rules: Iterable[Rule[S]], raw: object) -> S:
    """The spec, checked by shape and rules. BadField names the first mistake with its full path."""
    if not isinstance(raw, Mapping):
        raise BadField("spec", "must be an object")
    try:
        spec = model.model_validate(raw)
    except ValidationError as wrong:
        raise _bad_shape(wrong) from None
    for rule in rules:
        if not rule.holds(spec):
            raise BadField(f"spec.{rule.field}" if rule.field else "spec", rule.sentence)
    return spec


def created(raw: Mapping[str, Any]) -> Instant:
    """The creation time. 0 for a manifest that no API server has seen: its caller sets the time."""
    stamp = raw["metadata"].get("creationTimestamp")
    if stamp is None:
        return 0
    try:
        return parse_instant(stamp)
    except (TypeError, ValueError):
        raise BadField("metadata.creationTimestamp", "is not a time") from None


def note(raw: Mapping[str, Any], key: str) -> str:
    """An annotation, cut, without what is no plain text: a line feed or a character that turns the
    direction of writing would let one person forge what others read in a log or a table."""
    notes = raw["metadata"].get("annotations")
    text = notes.get(key) if isinstance(notes, Mapping) else None
    if not isinstance(text, str):
        return ""
    plain = "".join(letter for letter in text[: 4 * NOTE_LENGTH] if letter.isprintable())
    return plain.strip()[:NOTE_LENGTH]


def _rejection(whose: Identity, mistake: BadField) -> Rejection:
    return Rejection(
        whose.uid,
        whose.ns,
        whose.name,
        whose.generation,
        mistake.field,
        mistake.sentence,
        mistake.reason,
    )


def _identity(raw: object) -> Identity:
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    if not isinstance(metadata, Mapping):
        return Identity()
    generation = metadata.get("generation")
    return Identity(
        _text(metadata.get("uid")),
        _text(metadata.get("namespace")) or "default",
        _text(metadata.get("name")),
        generation if type(generation) is int else 0,
    )


def _text(value: object) -> str:
    return value[:253] if isinstance(value, str) else ""


def _bad_shape(wrong: ValidationError) -> BadField:
    first = wrong.errors(include_url=False, include_input=False)[0]
    return BadField(
        _path(first["loc"]), _sentence(first["type"], first.get("ctx", {}), first["msg"])
    )


def _path(places: Iterable[str | int]) -> str:
    """As the API server writes it: `spec.parameters[0].name`."""
    return "spec" + "".join(
        f"[{place}]" if isinstance(place, int) else f".{place[:64]}" for place in places
    )


def _sentence(kind: str, context: Mapping[str, Any], message: str) -> str:
    wording = _SENTENCES.get(kind)
    return (wording.format(**context) if wording is not None else message)[:QUOTED_MAX]


_SENTENCES = {
    "missing": "is required",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "string_unicode": "must be a string of valid Unicode",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    "int_type": "must be a whole number",
    "bool_type": "must be true or false",
    "enum": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
}
