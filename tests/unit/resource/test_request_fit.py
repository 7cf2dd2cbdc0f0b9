"""What of a request its schedule does not allow, in sentences that fit a condition."""

from tests.builders import every, request

from evenkeel.model import Parameter, Request, Schedule
from evenkeel.reasons import RequestReason
from evenkeel.resource.request_fit import wrong_parameters


def schedule(*choices: str) -> Schedule:
    return every(60, parameters=(Parameter("REGION", choices[0], choices),))


def asked(*given: tuple[str, str]) -> Request:
    return request(parameters=given)


def test_each_wrong_entry_is_told_with_its_field_and_reason() -> None:
    report = schedule("eu", "us")
    wrong = list(wrong_parameters(asked(("REGION", "eu"), ("A", ""), ("REGION", "x")), report))
    assert [(one.field, one.reason) for one in wrong] == [
        ("spec.parameters[1].name", RequestReason.UNKNOWN_PARAMETER),
        ("spec.parameters[2].value", RequestReason.VALUE_NOT_ALLOWED),
    ]


def test_a_parameter_without_an_enum_takes_any_text() -> None:
    free = every(60, parameters=(Parameter("REGION", "eu"),))
    assert list(wrong_parameters(asked(("REGION", "any text")), free)) == []


def test_many_choices_and_long_ones_are_cut() -> None:
    many = schedule(*(f"choice-{number}" for number in range(50)))
    (wrong,) = wrong_parameters(asked(("REGION", "x")), many)
    assert wrong.sentence.endswith("choice-8, choice-9, and 40 more")
    (wrong,) = wrong_parameters(asked(("REGION", "x")), schedule("y" * 4096))
    assert len(wrong.sentence) < 100
