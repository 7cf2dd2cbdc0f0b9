"""A status was stored: what waited for that goes on."""

from evenkeel.core.effects import WriteStatus
from evenkeel.core.messages import StatusWritten
from evenkeel.core.schedule import history
from evenkeel.core.schedule.entry import Entry
from evenkeel.core.schedule.turn import Turn


def status_written(turn: Turn, entry: Entry, message: StatusWritten) -> None:
    """The status of this revision is stored."""
    entry.written = max(entry.written, message.revision)
    revision, mark = entry.sent
    if message.revision >= revision:
        entry.stored_mark = mark
    if entry.revision > entry.written:
        turn.emit(WriteStatus(entry.uid))
    history.clean(turn, entry)
