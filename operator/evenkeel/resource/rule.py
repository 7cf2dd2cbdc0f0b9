"""A rule about fields of a spec that depend on one another, in its two forms.

`rules` and `request_rules` hold the rules; `crd` publishes them and `guard` asks them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import JsonValue

from evenkeel.resource.text import cel, unless_unchanged

S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Rule(Generic[S]):
    """One rule. `holds` in Python and `cel` in the CRD must accept the same specs."""

    field: str
    cel: str
    sentence: str
    holds: Callable[[S], bool]
    unchanged: str = ""
    """CEL for "these fields stand so since before the rule came": then the rule passes."""

    def published(self) -> dict[str, JsonValue]:
        """The entry of x-kubernetes-validations at the spec."""
        entry = cel(self.cel, self.sentence, path=f".{self.field}" if self.field else None)
        return unless_unchanged(entry, self.unchanged) if self.unchanged else entry
