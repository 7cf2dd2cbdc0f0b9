"""What a due time does when runs of its schedule still hold their place. Pure and total."""

import enum

from evenkeel.model import Concurrency


class Overlap(enum.StrEnum):
    """The answer."""

    START = "start"
    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"
    """Cancel those that hold a place, then start."""


def overlap(policy: Concurrency, *, occupying: int, queued: int, max_queued: int) -> Overlap:
    """Decide for one due time. A run holds its place from launch to its end, waiting for a retry
    included; `queued` counts those that wait for a place."""
    if policy is Concurrency.ALLOW:
        return Overlap.START
    if policy is Concurrency.QUEUE:
        # Behind a queue even when a place is free: the order of due times is kept.
        if occupying == 0 and queued == 0:
            return Overlap.START
        return Overlap.QUEUE if queued < max_queued else Overlap.SKIP
    if occupying == 0:
        return Overlap.START
    return Overlap.SKIP if policy is Concurrency.FORBID else Overlap.REPLACE
