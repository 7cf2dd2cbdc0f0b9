"""The proof of a Job template: a dry run that the API server accepts or refuses.

A refused template is a condition; launching goes on all the same, for what refused the dry run may
have gone by then. It is proven again every ten minutes, and at once when a Job of it was created.

The status of a template that is not proven yet waits for the proof, but not for long: whoever waits
for Ready is to read True or False there, and not first the one and then the other.
"""

from evenkeel.core.agenda import ProofDeadline, ProveTemplate
from evenkeel.core.effects import CheckTemplate
from evenkeel.core.messages import TemplateChecked
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn
from evenkeel.model import Schedule
from evenkeel.reasons import ConditionReason, ConditionType, EventReason
from evenkeel.resource.job import pod_name_problem

PROVE_AGAIN_S = 600.0
"""A webhook or a class that was missing when a template was refused may be there by then."""

SHOWN_AFTER_S = 0.5
"""So long the status of a new template waits for the proof; a dry run takes some 10 ms."""

PROOF_PATIENCE_S = 10.0
"""So long Ready is Unknown without a proof. A thousand templates at once take longer."""

UNASKED = "the API server has not answered the dry run of the template yet"

_KIND = ConditionType.TEMPLATE_ACCEPTED
_TOO_LONG = ConditionReason.POD_NAME_TOO_LONG


def await_proof(turn: Turn, entry: Entry, schedule: Schedule) -> None:
    """Before anything of an accepted spec is shown: a template that was never proven is, first."""
    known = entry.conditions.get(_KIND)
    awaited = known is not None or entry.proof_until_m > 0
    if awaited and entry.template_hash == schedule.template_hash:
        return
    entry.storing.shown_from_m = turn.monotonic + SHOWN_AFTER_S
    entry.proof_until_m = turn.monotonic + PROOF_PATIENCE_S
    turn.agenda.put_delay(entry.storing.shown_from_m, ProofDeadline(entry.uid))


def proof_deadline(turn: Turn, entry: Entry, task: ProofDeadline) -> None:
    """The status is shown now, whatever the proof says; after some time Ready waits no longer."""
    if turn.monotonic < entry.storing.shown_from_m:
        return  # another template has come since
    turn.show(entry)
    if _KIND in entry.conditions:
        return
    if turn.monotonic < entry.proof_until_m:
        turn.agenda.put_delay(entry.proof_until_m, task)
    else:
        turn.condition(entry, _KIND, "Unknown", ConditionReason.NOT_PROVEN, UNASKED)


def prove(turn: Turn, entry: Entry, schedule: Schedule) -> None:
    """A template that is not accepted yet is proven by a dry run, unless arithmetic refuses it."""
    problem = pod_name_problem(schedule) if b'"Indexed"' in schedule.template else None
    known = entry.conditions.get(_KIND)
    if problem is not None:
        turn.condition(entry, _KIND, "False", _TOO_LONG, problem)
        turn.show(entry)
        if known is None or known.reason != _TOO_LONG:
            _tell_refused(turn, entry, problem)
        return
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
    turn.show(entry)
    if message.accepted and message.message and (old is None or old.message != message.message):
        turn.log("template accepted with warnings", level="warning", schedule=entry.key)
    if message.accepted is not False:
        return
    if not entry.proof_waits:
        entry.proof_waits = True
        turn.agenda.put_delay(turn.monotonic + PROVE_AGAIN_S, ProveTemplate(entry.uid))
    if not refused:
        _tell_refused(turn, entry, message.message)


def _tell_refused(turn: Turn, entry: Entry, sentence: str) -> None:
    turn.event(entry, EventReason.TEMPLATE_REFUSED, sentence, warning=True)
    # Not the sentence: it quotes the template.
    turn.log("template refused", level="warning", schedule=entry.key)


def is_accepted(entry: Entry) -> bool:
    """Whether a dry run of the template was accepted."""
    known = entry.conditions.get(_KIND)
    return known is not None and known.status == "True"


def prove_once_more(turn: Turn, entry: Entry) -> None:
    """A dry run was accepted and a create was not: the next dry run may tell that both are not."""
    if entry.schedule is not None:
        turn.emit(CheckTemplate(entry.schedule))


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
