"""The errors that reach a person, sorted by what they mean to him.

    EvenkeelError
      UserMistake            a person must change something; never tried again by itself
        BadField             ... in a manifest: names the field and says what to write instead
        BadSetting           ... in flags, environment or the settings file
      CannotStart            the surroundings are not as needed: no API server, no CRD, no right
      Busy                   try again in a moment

What a create proved is no error: see `model.Verdict`. That nobody took a request, or that it got no
answer, is an exception of `kube.api` and ends inside `kube`.
"""


class EvenkeelError(Exception):
    """The root: its text is one sentence that can be shown to a person as it is."""


class UserMistake(EvenkeelError):
    """A person must change something; trying again by itself cannot help."""


class BadField(UserMistake):
    """A field of a manifest is wrong. `field` is its path below spec, `sentence` the remedy."""

    def __init__(self, field: str, sentence: str, *, reason: str = "Invalid") -> None:
        super().__init__(f"{field}: {sentence}")
        self.field = field
        self.sentence = sentence
        self.reason = reason


class BadSetting(UserMistake):
    """A flag, a variable or the settings file is wrong."""


class CannotStart(EvenkeelError):
    """The surroundings are not as needed; another start may succeed."""


class Busy(EvenkeelError):
    """The scheduler's inbox is full; the same question in a moment may be answered."""
