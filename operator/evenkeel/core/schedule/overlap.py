"""What a due time does when runs of its schedule still hold their place. Pure and total."""

import enum

from evenkeel.model import Concurrency


class Overlap(enum.StrEnum):
    """The answer."""

    START = "start"
    SKIP = "skip"
    QUEUE = "queue"
    REPLACE = "replace"
    """Cancel those that hold a place or wait for one, then start."""
    REPLACE_QUEUED = "replace_queued"
    """Cancel the same, then wait for the requested run."""


def overlap(
    policy: Concurrency, *, occupying: int, queued: int, max_queued: int, requested: int = 0
) -> Overlap:
    """Decide for one due time. A run holds its place from launch to its end, waiting for a retry
    included; `queued` counts those that wait for a place.

    `requested` are requested runs with overlap Wait in the place. No policy speaks of them: one due
    time waits for them, and later ones meet that waiting one by the policy.
    """
    if policy is Concurrency.ALLOW:
        return Overlap.START
    if policy is Concurrency.QUEUE:
        # Behind a queue even when a place is free: the order of due times is kept.
        if occupying == requested == queued == 0:
            return Overlap.START
        return Overlap.QUEUE if queued < max_queued else Overlap.SKIP
    met = occupying + (queued if requested else 0)
    if policy is Concurrency.FORBID and met:
        return Overlap.SKIP
    if requested:
        return Overlap.REPLACE_QUEUED if met else Overlap.QUEUE
    return Overlap.REPLACE if met else Overlap.START
