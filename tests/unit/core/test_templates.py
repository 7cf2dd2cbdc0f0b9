"""What a dry run says of a template is a condition; it never stops launching.

Whether a schedule is ready follows from its other conditions.
"""

from tests.builders import cron, edited, instant, rejection
from tests.unit.core.world import World, created

from evenkeel.core.messages import TemplateChecked
from evenkeel.model import Concurrency, Retry, Schedule, Verdict
from evenkeel.reasons import ConditionReason

EVERY_MINUTE = "* * * * *"


def judged(seen: Schedule, *, accepted: bool | None, message: str = "") -> TemplateChecked:
    reason = {True: "Accepted", False: "Refused", None: "NotProven"}[accepted]
    return TemplateChecked(seen.uid, seen.template_hash, accepted, reason, message)


def test_a_refused_template_warns_and_never_stops_launching():
    seen = cron(EVERY_MINUTE)
    world = (
        World(proves=False).see(seen).tell(judged(seen, accepted=False, message="unknown field"))
    )
    assert world.condition("TemplateAccepted") == ("False", "Refused")
    assert world.said("TemplateRefused") == ["unknown field"]
    assert world.run_until("10:01").started() == ["10:01:00"]


def test_a_template_that_could_not_be_judged_is_unknown_and_nobody_is_warned():
    seen = cron(EVERY_MINUTE)
    world = (
        World(proves=False).see(seen).tell(judged(seen, accepted=None, message="exceeded quota"))
    )
    assert world.condition("TemplateAccepted") == ("Unknown", "NotProven")
    assert world.said("TemplateRefused") == []


def test_warnings_of_an_accepted_template_stand_in_its_condition():
    seen = cron(EVERY_MINUTE)
    world = (
        World(proves=False)
        .see(seen)
        .tell(judged(seen, accepted=True, message="would violate PodSecurity"))
    )
    rows = {row["type"]: row for row in world.status()["conditions"]}
    assert rows["TemplateAccepted"]["message"] == "would violate PodSecurity"


def test_what_is_said_of_an_older_template_is_passed_over():
    old = cron(EVERY_MINUTE)
    new = edited(old, template_hash="second")
    world = World(proves=False).see(old).see(new).tell(judged(new, accepted=True))
    world.tell(judged(old, accepted=False))
    assert world.condition("TemplateAccepted") == ("True", "Accepted")


def test_a_new_template_is_proven_anew_and_another_edit_proves_nothing():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False).see(seen).tell(judged(seen, accepted=True))
    world.see(edited(seen, priority=7))
    assert len(world.checks) == 1
    new = edited(edited(seen), template_hash="second")
    world.see(new)
    assert [check.schedule.template_hash for check in world.checks] == ["first", "second"]


def test_after_a_restart_only_what_is_not_yet_proven_is_asked_for_again():
    proven, unknown = cron(EVERY_MINUTE), cron(EVERY_MINUTE, name="other")
    world = World(proves=False).see(proven).see(unknown)
    world.tell(judged(proven, accepted=True)).tell(judged(unknown, accepted=None))
    world.checks.clear()
    world.crash()
    assert [check.schedule.name for check in world.checks] == ["other"]


# --- Ready and Stalled ----------------------------------------------------------------------------


def conditions(world: World) -> dict[str, tuple[str, str]]:
    rows = world.status()["conditions"]
    return {row["type"]: (row["status"], row["reason"]) for row in rows}


def message_of(world: World, kind: str) -> str:
    rows = {row["type"]: row for row in world.status()["conditions"]}
    return str(rows[kind]["message"])


def test_while_its_template_is_refused_a_schedule_is_not_ready_and_stalled():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False).see(seen)
    world.tell(judged(seen, accepted=False, message="spec.foo: unknown field"))
    assert conditions(world)["Ready"] == ("False", "Refused")
    assert conditions(world)["Stalled"] == ("True", "Refused")
    assert message_of(world, "Stalled") == "jobTemplate: spec.foo: unknown field"
    world.tell(judged(seen, accepted=True))
    assert conditions(world)["Ready"] == ("True", "Scheduled")
    assert "Stalled" not in conditions(world)


def test_the_first_status_says_at_once_that_a_template_is_refused():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False).see(seen)
    assert world.statuses == {}
    world.run_until(world.now + 0.02).tell(judged(seen, accepted=False, message="no"))
    assert conditions(world)["Stalled"] == ("True", "Refused")
    assert world.status()["state"] == "Refused"


def test_a_status_waits_half_a_second_for_its_proof_and_ready_waits_ten():
    seen = cron("0 12 * * *")
    world = World(proves=False).see(seen)
    assert world.run_until("10:00:01").condition("Ready") == ("Unknown", "NotProven")
    assert world.run_until("10:00:09").condition("Ready") == ("Unknown", "NotProven")
    world.run_until("10:00:11")
    assert world.condition("Ready") == ("True", "Scheduled")
    assert world.condition("TemplateAccepted") == ("Unknown", "NotProven")
    world.tell(judged(seen, accepted=False))
    assert world.condition("Ready") == ("False", "Refused")


def test_a_new_template_is_not_ready_before_its_proof():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False).see(seen).tell(judged(seen, accepted=False))
    new = edited(seen, template_hash="second")
    world.see(new)
    assert conditions(world)["Stalled"] == ("True", "Refused"), "what was said of the old one"
    world.tell(judged(new, accepted=True))
    assert conditions(world)["Ready"] == ("True", "Scheduled")
    assert "Stalled" not in conditions(world)


def test_edits_in_a_row_do_not_hold_the_status_back():
    seen = cron("0 12 * * *")
    world = World(proves=False).see(seen)
    for tenth in range(1, 9):
        seen = edited(seen, priority=tenth)
        world.run_until(instant("10:00") + tenth / 10).see(seen)
    assert world.condition("Ready") == ("Unknown", "NotProven")


def test_a_mistake_in_the_spec_is_shown_at_once_while_the_template_is_not_proven():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False).see(seen).see(rejection(seen))
    assert conditions(world)["Stalled"] == ("True", "Invalid")


def test_a_rejected_spec_is_stalled_whatever_its_template_is():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False).see(seen).tell(judged(seen, accepted=False)).see(rejection(seen))
    assert conditions(world)["Stalled"] == ("True", "Invalid")
    assert message_of(world, "Ready") == "spec.schedule: month 13 does not exist"
    world.see(edited(edited(seen)))
    assert conditions(world)["Stalled"] == ("True", "Refused")


def test_a_run_that_fails_is_missed_or_skipped_leaves_the_schedule_ready():
    seen = cron(EVERY_MINUTE, concurrency=Concurrency.FORBID)
    world = World(proves=False).see(seen).run_until("10:03")
    world.fail(seen, "10:01")
    world.crash(for_s=300).run_until("10:10")
    assert {"failed", "missed", "skipped"} <= world.counts().keys()
    assert conditions(world)["Ready"] == ("True", "Scheduled")


# --- proven again ---------------------------------------------------------------------------------


def test_a_refused_template_is_proven_again_every_ten_minutes_and_warns_once():
    seen = cron("0 12 * * *")
    world = World(proves=False).see(seen).tell(judged(seen, accepted=False, message="no"))
    world.checks.clear()
    world.run_until("10:09:50")
    assert world.checks == []
    world.run_until("10:10:10")
    assert len(world.checks) == 1
    world.tell(judged(seen, accepted=False, message="no"))
    world.run_until("10:20:20")
    assert len(world.checks) == 2
    assert world.said("TemplateRefused") == ["no"]
    world.tell(judged(seen, accepted=True)).run_until("10:50")
    assert len(world.checks) == 2
    assert conditions(world)["Ready"] == ("True", "Scheduled")


def test_a_refused_template_is_proven_at_once_when_a_job_of_it_was_created():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False).see(seen).tell(judged(seen, accepted=False))
    world.checks.clear()
    world.run_until("10:01:01")
    assert [check.schedule.uid for check in world.checks] == [seen.uid]


def test_what_could_not_be_asked_takes_no_refusal_back():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False).see(seen).tell(judged(seen, accepted=False))
    world.tell(judged(seen, accepted=None))
    assert conditions(world)["TemplateAccepted"] == ("False", "Refused")
    assert conditions(world)["Stalled"] == ("True", "Refused")


def test_a_refused_template_is_proven_again_after_a_restart():
    seen = cron("0 12 * * *")
    world = World(proves=False).see(seen).tell(judged(seen, accepted=False))
    world.checks.clear()
    world.crash()
    assert len(world.checks) == 1
    assert conditions(world)["Stalled"] == ("True", "Refused")


# --- a field that one API server knows and another does not --------------------------------------

UNKNOWN = {"reason": ConditionReason.UNKNOWN_FIELD, "message": 'unknown field "spec.new"'}


def test_a_field_that_the_dry_run_knew_holds_the_create_and_is_proven_once_more():
    seen = cron(EVERY_MINUTE)
    world = World(answering=lambda _: None).see(seen).run_until("10:01")
    world.checks.clear()
    world.answer(world.in_flight[0], Verdict.REFUSED, **UNKNOWN)
    assert world.alive() == {"10:01:00": "held"}
    assert world.condition("Degraded") == ("True", "UnknownField")
    assert len(world.checks) == 1
    world.answering = created
    world.run_until("10:01:05")
    assert world.alive() == {"10:01:00": "running"}


def test_a_field_that_no_dry_run_knew_fails_the_run():
    seen = cron(EVERY_MINUTE)
    world = World(proves=False, answering=lambda _: None).see(seen)
    world.tell(judged(seen, accepted=False)).run_until("10:01")
    world.answer(world.in_flight[0], Verdict.REFUSED, **UNKNOWN)
    assert world.ends() == [("10:01:00", "failed", "refused")]
    assert 'unknown field "spec.new"' in world.said("FailedCreate")[0]


def test_a_held_create_fails_as_soon_as_the_dry_run_is_refused_too():
    seen = cron("0 * * * *")
    world = World(answering=lambda _: None).see(seen).run_until("11:00")
    world.proves = False
    world.answer(world.in_flight[0], Verdict.REFUSED, **UNKNOWN)
    world.tell(judged(seen, accepted=False)).run_until("11:00:03")
    world.answer(world.in_flight[0], Verdict.REFUSED, **UNKNOWN)
    assert world.ends() == [("11:00:00", "failed", "refused")]


INDEXED = b'{"spec": {"completionMode": "Indexed", "completions": 10}}'


def test_no_dry_run_lifts_what_arithmetic_refuses_and_an_edit_beside_the_template_does():
    name = "a" * 50
    seen = cron(EVERY_MINUTE, name=name, template=INDEXED, retry=Retry(limit=10))
    world = World(proves=False).see(seen)
    assert world.condition("Stalled", name) == ("True", "PodNameTooLong")
    assert len(world.said("TemplateRefused")) == 1
    world.tell(judged(seen, accepted=True)).run_until("10:02")
    assert world.condition("Stalled", name) == ("True", "PodNameTooLong")
    assert world.checks == []
    mended = edited(seen, retry=Retry())
    world.see(mended).tell(judged(mended, accepted=True))
    assert world.condition("Ready", name) == ("True", "Scheduled")
    assert world.condition("TemplateAccepted", name) == ("True", "Accepted")
