"""The rule by which the API server refuses a time zone that it does not know.

`v1alpha1` puts it into the schema of spec.timeZone. The API server looks the name up in its own
time zone data, `when.zone` in the tzdata package. A zone that only the API server knows becomes a
condition (UnknownTimeZone); so does an unknown zone that was stored before this rule.
"""

from pydantic import JsonValue

from evenkeel.resource.text import cel, cel_text, unless_unchanged
from evenkeel.when.zone import HOW_TO_WRITE

# CEL takes an empty name for UTC, and reads hh:mm as an offset; Local is the API server's own zone.
_NO_NAMES = "!(self in ['', 'Local']) && !self.contains(':')"
_KNOWN = f"timestamp({cel_text('2000-01-01T00:00:00Z')}).getHours(self) >= 0"


def zone_rules() -> list[dict[str, JsonValue]]:
    """The entries of x-kubernetes-validations at a zone.

    An unknown name fails the evaluation. The API server then says "unknown time zone Mars/Base
    evaluating rule: " and the sentence.
    """
    return [unless_unchanged(cel(f"{_NO_NAMES} && {_KNOWN}", HOW_TO_WRITE))]
