"""The noun that the modules of notes share."""

from dataclasses import dataclass

from evenkeel.manifests.findings import Path


@dataclass(frozen=True, slots=True)
class Remark:
    """A note about one field of a schedule."""

    path: Path
    sentence: str
