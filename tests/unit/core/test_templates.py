"""What a dry run says of a template is a condition; it never stops launching."""

from tests.builders import cron, edited
from tests.unit.core.world import World

from evenkeel.core.messages import TemplateChecked
from evenkeel.model import Schedule

EVERY_MINUTE = "* * * * *"


def judged(seen: Schedule, *, accepted: bool | None, message: str = "") -> TemplateChecked:
    reason = {True: "Accepted", False: "Refused", None: "NotProven"}[accepted]
    return TemplateChecked(seen.uid, seen.template_hash, accepted, reason, message)


def test_a_refused_template_warns_and_never_stops_launching():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).tell(judged(seen, accepted=False, message="unknown field"))
    assert world.condition("TemplateAccepted") == ("False", "Refused")
    assert world.said("TemplateRefused") == ["unknown field"]
    assert world.run_until("10:01").started() == ["10:01:00"]


def test_a_template_that_could_not_be_judged_is_unknown_and_nobody_is_warned():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).tell(judged(seen, accepted=None, message="exceeded quota"))
    assert world.condition("TemplateAccepted") == ("Unknown", "NotProven")
    assert world.said("TemplateRefused") == []


def test_warnings_of_an_accepted_template_stand_in_its_condition():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).tell(judged(seen, accepted=True, message="would violate PodSecurity"))
    rows = {row["type"]: row for row in world.status()["conditions"]}
    assert rows["TemplateAccepted"]["message"] == "would violate PodSecurity"


def test_what_is_said_of_an_older_template_is_passed_over():
    old = cron(EVERY_MINUTE)
    new = edited(old, template_hash="second")
    world = World().see(old).see(new).tell(judged(new, accepted=True))
    world.tell(judged(old, accepted=False))
    assert world.condition("TemplateAccepted") == ("True", "Accepted")


def test_a_new_template_is_proven_anew_and_another_edit_proves_nothing():
    seen = cron(EVERY_MINUTE)
    world = World().see(seen).tell(judged(seen, accepted=True))
    world.see(edited(seen, priority=7))
    assert len(world.checks) == 1
    new = edited(edited(seen), template_hash="second")
    world.see(new)
    assert [check.schedule.template_hash for check in world.checks] == ["first", "second"]


def test_after_a_restart_only_what_is_not_yet_proven_is_asked_for_again():
    proven, unknown = cron(EVERY_MINUTE), cron(EVERY_MINUTE, name="other")
    world = World().see(proven).see(unknown)
    world.tell(judged(proven, accepted=True)).tell(judged(unknown, accepted=None))
    world.checks.clear()
    world.crash()
    assert [check.schedule.name for check in world.checks] == ["other"]
