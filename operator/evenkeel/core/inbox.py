"""The scheduler's inbox: bounded, and full without losing anything.

Hints from watches coalesce per object, so there are never more than objects; results of
orchestrators are refused while full and their sender waits; queries are refused as busy.
The shell offers from the loop's own thread and is told by `on_arrival` to wake the loop.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable

from evenkeel.core.messages import Message


class Inbox:
    """Messages in order of arrival; a newer hint takes the place of the older one it outdates."""

    def __init__(self, *, size: int) -> None:
        self._size = size
        # Not a dict: that looks past all it has lost at its front each time the first is taken.
        self._messages: OrderedDict[Hashable, Message] = OrderedDict()
        self._hints = 0
        self._arrivals = 0
        self.on_arrival: Callable[[], None] = lambda: None

    def __len__(self) -> int:
        return len(self._messages)

    @property
    def full(self) -> bool:
        """Counts what is bounded only: a list of ten thousand schedules must not refuse results."""
        return len(self._messages) - self._hints >= self._size

    def hint(self, key: Hashable, message: Message) -> None:
        """The newest sight of an object; the one not yet read is outdated by it."""
        key = ("hint", key)
        self._hints += key not in self._messages
        self._messages[key] = message
        self.on_arrival()

    def offer(self, message: Message) -> bool:
        """A result or a query; False when full: a result waits and comes again, a query is busy."""
        if self.full:
            return False
        self._arrivals += 1
        self._messages[self._arrivals] = message
        self.on_arrival()
        return True

    def drain(self, limit: int) -> list[Message]:
        """Take up to `limit` messages, oldest first: a storm of hints must not hold up due runs."""
        taken: list[Message] = []
        while self._messages and len(taken) < limit:
            key, message = self._messages.popitem(last=False)
            self._hints -= isinstance(key, tuple)
            taken.append(message)
        return taken
