"""Types for parameters as users write them: names, values, and a list without equal names.

`v1alpha1` and `request_v1alpha1` annotate their fields with them: a request gives values for the
parameters of a schedule, so both take the same names and values.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from evenkeel.resource.text import PatternText, cel, refusal

PARAMETERS_MAX = 20
"""Each stands in the environment of each container."""

CHOICES_MAX = 50
NAME_LENGTH = 128
VALUE_LENGTH = 4096

NAME_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"
NAME_SENTENCE = (
    "write the name of an environment variable: letters, digits and _, no digit first,"
    " such as BATCH_SIZE"
)
NAMES_DIFFER = "each name may stand once: two parameters have the same"

ParameterName = Annotated[str, PatternText(NAME_LENGTH, NAME_PATTERN, NAME_SENTENCE)]
ParameterValue = Annotated[str, Field(max_length=VALUE_LENGTH)]


@dataclass(frozen=True, slots=True)
class NamesDiffer:
    """Of a list: no two entries have the same name."""

    def check(self, entries: list[Any]) -> list[Any]:
        """Return the entries, or raise a `refusal`."""
        if len({entry.name for entry in entries}) < len(entries):
            raise refusal(NAMES_DIFFER)
        return entries

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        rule = "self.all(one, self.exists_one(other, other.name == one.name))"
        return {**handler(schema), "x-kubernetes-validations": [cel(rule, NAMES_DIFFER)]}
