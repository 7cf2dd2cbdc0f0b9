"""Our two resources, as the parts see them that treat both alike: the watch, the pruner and the
status writer. Each is given one of these, and the messages that the scheduler gets of it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from evenkeel.core.messages import (
    Message,
    RequestGone,
    RequestsListed,
    RequestWritten,
    ScheduleGone,
    SchedulesListed,
    StatusWritten,
)
from evenkeel.kube.api import requests_path, schedules_path
from evenkeel.resource.names import PLURAL, REQUEST_PLURAL


@dataclass(frozen=True, slots=True)
class Resource:
    """One of them."""

    plural: str
    one: str
    many: str
    path: Callable[[str, str], str]
    """Of a namespace and a name; empty: all namespaces, all names."""
    gone: Callable[[str], Message]
    written: Callable[[str, int], Message]
    listed: Callable[[frozenset[str], float, frozenset[str]], Message]
    optional: bool = False
    """Without it the operator does everything else."""


SCHEDULES = Resource(
    PLURAL,
    "schedule",
    "schedules",
    schedules_path,
    gone=ScheduleGone,
    written=StatusWritten,
    listed=SchedulesListed,
)

REQUESTS = Resource(
    REQUEST_PLURAL,
    "request",
    "requests",
    requests_path,
    gone=RequestGone,
    written=RequestWritten,
    listed=RequestsListed,
    optional=True,
)
