"""The proof of a Job template: a dry run that the API server accepts or refuses.

A refused template is a condition; launching goes on all the same, for a dry run may be stricter
than the create. It is proven again every ten minutes, and at once when a Job of it was created.
"""

from evenkeel.core.agenda import ProveTemplate
from evenkeel.core.effects import CheckTemplate
from evenkeel.core.messages import TemplateChecked
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Schedule
from evenkeel.reasons import ConditionReason, ConditionType, EventReason
from evenkeel.resource.job import pod_name_problem

PROVE_AGAIN_S = 600.0
"""A webhook or a class that was missing when a template was refused may be there by then."""

_KIND = ConditionType.TEMPLATE_ACCEPTED
_TOO_LONG = ConditionReason.POD_NAME_TOO_LONG


def prove(turn: Turn, entry: Entry, schedule: Schedule) -> None:
    """A template that is not accepted yet is proven by a dry run, unless arithmetic refuses it."""
    problem = pod_name_problem(schedule) if b'"Indexed"' in schedule.template else None
    if problem is not None:
        turn.condition(entry, _KIND, "False", _TOO_LONG, problem)
        return
    known = entry.conditions.get(_KIND)
    if known is not None and known.status == "True":
        return
    if known is not None and known.reason == _TOO_LONG:  # an edit beside the template mended it
        del entry.conditions[_KIND]
    turn.emit(CheckTemplate(schedule))


def checked(turn: Turn, entry: Entry, message: TemplateChecked) -> None:
    """What the dry run of a template said."""
    if entry.template_hash != message.template_hash:
        return
    old = entry.conditions.get(_KIND)
    refused = old is not None and old.status == "False"
    if refused and message.accepted is None:
        return  # what could not be asked takes nothing back
    if old is not None and old.reason == _TOO_LONG:
        return  # no dry run of a Job knows the names of its Pods
    status = {True: "True", False: "False", None: "Unknown"}[message.accepted]
    turn.condition(entry, _KIND, status, message.reason, message.message)
    if message.accepted is not False:
        return
    if not entry.proof_waits:
        entry.proof_waits = True
        turn.agenda.put_delay(turn.monotonic + PROVE_AGAIN_S, ProveTemplate(entry.uid))
    if refused:
        return  # told before
    turn.event(entry, EventReason.TEMPLATE_REFUSED, message.message, warning=True)
    # Not the sentence: it quotes the template.
    turn.log("template refused", level="warning", schedule=entry.key)


def prove_again(turn: Turn, entry: Entry, task: ProveTemplate) -> None:
    """Ten minutes have passed."""
    entry.proof_waits = False
    prove_if_refused(turn, entry)


def prove_if_refused(turn: Turn, entry: Entry) -> None:
    """A Job of a template that was refused could be created, or time has passed."""
    known, schedule = entry.conditions.get(_KIND), entry.schedule
    if schedule is None or known is None or known.status != "False" or known.reason == _TOO_LONG:
        return
    turn.emit(CheckTemplate(schedule))
