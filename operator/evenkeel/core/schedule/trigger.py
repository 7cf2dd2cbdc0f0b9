"""The annotation evenkeel.dev/trigger: another id than the last one makes one request.

The id is kept in `status.internal.trigger` once the request exists. Its name is made of the
schedule's uid and the id, so a process that asks again finds the request there already.
"""

import base64
import hashlib

from evenkeel.core.effects import MakeRequest
from evenkeel.core.messages import TriggerMade
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn
from evenkeel.reasons import EventReason

_NAME_LENGTH = 63
_HASH_LENGTH = 8


def look(turn: Turn, entry: Entry, wanted: str) -> None:
    """Make a request, unless that was done for this id."""
    if not wanted or wanted in (entry.trigger, entry.trigger_asked):
        return
    entry.trigger_asked = wanted
    name = request_name(entry.uid, entry.name, wanted)
    turn.emit(MakeRequest(entry.uid, entry.ns, entry.name, name, wanted))


def made(turn: Turn, entry: Entry, message: TriggerMade) -> None:
    """The request exists, or the API server has refused it: then another id is a new try."""
    if message.trigger != entry.trigger_asked:
        return
    if message.made:
        entry.trigger, entry.trigger_asked = message.trigger, ""
        turn.dirty(entry)
        return
    sentence = f"the annotation evenkeel.dev/trigger made no RunRequest: {message.sentence}"
    turn.event(entry, EventReason.FAILED_CREATE, sentence, warning=True)
    turn.log("trigger refused", level="warning", schedule=entry.key)


def request_name(uid: str, schedule_name: str, trigger: str) -> str:
    """The schedule's name, cut, and eight letters of a hash."""
    digest = hashlib.sha256(f"{uid}/{trigger}".encode()).digest()
    suffix = base64.b32encode(digest).decode().lower()[:_HASH_LENGTH]
    cut = schedule_name[: _NAME_LENGTH - _HASH_LENGTH - 1].rstrip("-.")
    return f"{cut}-{suffix}"
