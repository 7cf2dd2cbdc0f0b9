"""The order of the steps, and the least that each can reach."""

from tests.unit.balance.members import A_MORNING_IN_MARCH, fixed

from evenkeel.balance.convert import Conversion
from evenkeel.balance.nouns import Member
from evenkeel.balance.steps import Group, ordered
from evenkeel.model import SLOT_S, Cron

START = A_MORNING_IN_MARCH // SLOT_S * SLOT_S


def group(pattern: str, count: int, *, every_s: int = 3600, weight: int = 1) -> Group:
    return Group(pattern, Conversion(every_s), tuple(members(pattern, count, weight=weight)))


def members(pattern: str, count: int, *, weight: int = 1) -> list[Member]:
    return [fixed(Cron(pattern), key=f"{pattern}/{n}", weight=weight) for n in range(count)]


def test_the_step_that_lowers_the_busiest_minute_most_comes_first() -> None:
    found = ordered([group("0 */6 * * *", 10), group("0 * * * *", 30)], [], START)
    assert [each.group.pattern for each in found] == ["0 * * * *", "0 */6 * * *"]
    assert [each.minute for each in found] == [10, 1]


def test_what_stays_bounds_every_step() -> None:
    stays = members("0 0 1 * *", 1) + members("0 5 * * *", 4, weight=9)
    (found,) = ordered([group("0 5,17 * * *", 7, every_s=43_200)], stays, START)
    assert (found.minute, found.slot) == (4, 36)


def test_the_mean_bounds_every_step() -> None:
    (found,) = ordered([group("* * * * *", 3, every_s=60)], [], START)
    assert (found.minute, found.slot, found.helps) == (3, 45, False)


def test_of_steps_that_lower_no_peak_yet_the_bigger_crowd_comes_first() -> None:
    groups = [group("40 * * * *", 5), group("20 * * * *", 8), group("* * * * *", 4, every_s=60)]
    found = ordered(groups, members("0 0 * * *", 90), START)
    assert [each.group.pattern for each in found] == ["20 * * * *", "40 * * * *", "* * * * *"]
    assert [each.helps for each in found] == [True, True, False]


def test_of_equal_minutes_the_lower_slot_comes_first() -> None:
    light, heavy = group("0 1,13 * * *", 3), group("0 2,14 * * *", 3, weight=5)
    found = ordered([light, heavy], members("0 20 * * *", 3), START)
    assert found[0].group is heavy
