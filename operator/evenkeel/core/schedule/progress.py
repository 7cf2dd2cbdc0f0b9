"""How far the status of a schedule or of a request is stored, and how long its creates pause."""

from dataclasses import dataclass

from evenkeel.model import Instant
from evenkeel.reasons import Reason


@dataclass(slots=True)
class Backoff:
    """The pause between creates that are held back: those by schedule, or those of one request."""

    count: int = 0
    """Creates in a row that were held back."""
    since_m: float = 0.0
    until_m: float = 0.0
    """Before it none is sent."""
    message: str = ""
    reason: Reason = Reason.HELD
    answers_awaited_until_m: float | None = None
    """Until then held runs wait for what becomes of creates that got no answer."""

    def end(self) -> None:
        """A create was answered. Creates without an answer are waited for all the same."""
        self.count, self.since_m, self.until_m = 0, 0.0, 0.0
        self.message, self.reason = "", Reason.HELD


@dataclass(slots=True)
class Storing:
    """How far a status is stored."""

    version: str = ""
    """The resourceVersion at first sight: what the first write of the status goes on from."""
    revision: int = 0
    """Of the status as it stands; each change is one more."""
    written: int = 0
    """The revision that is known to be stored."""
    sent: tuple[int, Instant, Instant] = (0, 0, 0)
    """Revision, mark and told mark of the document taken last."""
    stored_mark: Instant = 0
    """The mark of the status that is known to be stored."""
    tells_timing: bool = False
    """The status that is known to be stored tells of a timing."""
    told_mark: Instant = 0
    """What `Entry.told_mark` was when that status was taken."""
    told_generation: int = 0
    """The newest spec of which a status is stored, or was asked to be stored before others."""
    shown_from_m: float = 0.0
    """Until then it is not written: the proof of the template is expected."""

    def change(self, generation: int) -> bool:
        """The status has changed. Whether it must be asked for: it is not, while it is asked for
        already and speaks of the same spec."""
        asked = self.revision > self.written and self.told_generation == generation
        self.revision += 1
        return not asked

    def ask(self, generation: int) -> bool:
        """Somebody asks for the status to be stored. Whether it is awaited: what was told until now
        speaks of another spec."""
        awaited = self.told_generation != generation
        self.told_generation = generation
        return awaited
