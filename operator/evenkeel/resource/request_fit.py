"""Whether a schedule allows the parameters that a request gives. Pure.

The scheduler asks when it plans a request, and `evenkeel lint` where one set of files holds both:
they say the same sentence.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from evenkeel.model import Request, Schedule
from evenkeel.reasons import RequestReason

CHOICES_SHOWN = 10
"""An enum may have 50 values of 4 kB, and a condition has room for a sentence."""

VALUE_SHOWN = 64


@dataclass(frozen=True, slots=True)
class WrongParameter:
    """An entry of `spec.parameters` that the schedule does not allow."""

    number: int
    part: str
    """Which field of the entry: `name` or `value`."""
    reason: RequestReason
    sentence: str

    @property
    def field(self) -> str:
        """The path as the API server writes it."""
        return f"spec.parameters[{self.number}].{self.part}"


def wrong_parameters(request: Request, schedule: Schedule) -> Iterator[WrongParameter]:
    """All of them, in their order."""
    known = {parameter.name: parameter for parameter in schedule.parameters}
    for number, (name, value) in enumerate(request.parameters):
        if name not in known:
            names = ", ".join(known) or "none"
            sentence = f"{name} is no parameter of {schedule.name}, which has {names}"
            yield WrongParameter(number, "name", RequestReason.UNKNOWN_PARAMETER, sentence)
        elif known[name].choices and value not in known[name].choices:
            sentence = f"{name} may be one of {_shown(known[name].choices)}"
            yield WrongParameter(number, "value", RequestReason.VALUE_NOT_ALLOWED, sentence)


def _shown(choices: tuple[str, ...]) -> str:
    shown = [
        choice if len(choice) <= VALUE_SHOWN else f"{choice[:VALUE_SHOWN]}…"
        for choice in choices[:CHOICES_SHOWN]
    ]
    more = len(choices) - len(shown)
    return ", ".join([*shown, *([f"and {more} more"] if more else [])])
