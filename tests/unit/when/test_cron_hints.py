"""A step that is larger than its field is taken, as CronJob takes it, and said."""

import pytest

from evenkeel.when import hint

HINTS = {
    "*/90 * * * *": (
        "minute '*/90' matches one minute of each hour only. "
        "If every 90 minutes was meant, write interval: {every: 90m}."
    ),
    "0 */36 * * *": (
        "hour '*/36' matches one hour of each day only. "
        "If every 36 hours was meant, write interval: {every: 36h}."
    ),
    "0 0 */45 * *": (
        "day of month '*/45' matches one day of each month only. "
        "If every 45 days was meant, write interval: {every: 45d}."
    ),
    "0 0 1 */18 *": "month '*/18' matches one month of each year only.",
    "0 0 * * */10": (
        "day of week '*/10' matches one day of each week only. "
        "If every 10 days was meant, write interval: {every: 10d}."
    ),
    "H/90 * * * *": (
        "minute 'H/90' matches one minute of each hour only. "
        "If every 90 minutes was meant, write interval: {every: 90m}."
    ),
    "0 0 */500 * *": "day of month '*/500' matches one day of each month only.",
    "5,*/90 * * * *": (
        "minute '*/90' matches one minute of each hour only. "
        "If every 90 minutes was meant, write interval: {every: 90m}."
    ),
}


@pytest.mark.parametrize(("text", "sentence"), HINTS.items(), ids=HINTS)
def test_a_step_beyond_its_field_names_the_interval(text: str, sentence: str) -> None:
    assert hint(text) == sentence


@pytest.mark.parametrize(
    "text", ["*/60 * * * *", "0 */24 * * *", "0 0 */31 * *", "0 0 1 */12 *", "@daily", "5 4 * * 1"]
)
def test_a_step_that_is_what_it_looks_like_has_no_hint(text: str) -> None:
    assert hint(text) == ""
