"""The errors that are shown to a person, sorted by what the person can do.

    EvenkeelError
      UserMistake            somebody must change something; trying again cannot help
        BadField             ... in a manifest: names the field and says what to write instead
        BadSetting           ... in options, variables or the settings file
      CannotStart            no API server, no CRD, or a missing right; another start may succeed
      Busy                   ask again in a moment

The result of a create is not an error: see `model.Verdict`. Failed requests to the API server raise
exceptions of `kube.api`, and `kube` handles them.
"""

from evenkeel.reasons import ConditionReason


class EvenkeelError(Exception):
    """The base class. Its text is a sentence that can be shown as it is."""


class UserMistake(EvenkeelError):
    """Somebody must change something; trying again cannot help."""


class BadField(UserMistake):
    """A field of a manifest is wrong. `field` is its path, `sentence` says what to write
    instead."""

    def __init__(
        self, field: str, sentence: str, *, reason: ConditionReason = ConditionReason.INVALID
    ) -> None:
        super().__init__(f"{field}: {sentence}")
        self.field = field
        self.sentence = sentence
        self.reason = reason


class BadSetting(UserMistake):
    """An option, a variable or the settings file is wrong."""


class CannotStart(EvenkeelError):
    """The API server, the CRD or a right is missing; another start may succeed."""


class Busy(EvenkeelError):
    """The scheduler's inbox is full. The same question may be answered a moment later."""
