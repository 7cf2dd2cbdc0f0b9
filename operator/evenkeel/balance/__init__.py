"""Even load: chooses the phase of each interval without an offset, and measures the load. Pure.

LoadMap <--put, drop, advance-- the scheduler     the load of each slot, from all schedules
   |--> place            chooses the phase of one interval
   |--> improve_set      lists moves of schedules that arrived together and have not run
   |--> plan_rebalance   lists moves that make the load more even; `confirm` checks the list later
   `--> distribution     describes the load of 24 hours, with its score and its lower bound
"""

from evenkeel.balance.arrivals import improve_set
from evenkeel.balance.load import LoadMap
from evenkeel.balance.move_range import Limits
from evenkeel.balance.nouns import (
    Busiest,
    Concurrency,
    Distribution,
    HourLoad,
    Member,
    Move,
    Placement,
    Plan,
    Skip,
    Stale,
)
from evenkeel.balance.place import place, slot_of
from evenkeel.balance.reasons import improved_sentence, moved_sentence
from evenkeel.balance.rebalance import confirm, move_again, moved, plan_rebalance

__all__ = [
    "Busiest",
    "Concurrency",
    "Distribution",
    "HourLoad",
    "Limits",
    "LoadMap",
    "Member",
    "Move",
    "Placement",
    "Plan",
    "Skip",
    "Stale",
    "confirm",
    "improve_set",
    "improved_sentence",
    "move_again",
    "moved",
    "moved_sentence",
    "place",
    "plan_rebalance",
    "slot_of",
]
