"""Even load: where intervals without an offset start, and how even the whole is. Pure.

LoadMap <--put, drop, advance-- the scheduler     who runs when, by slot
   |--> place            one phase, by looking at all the others
   |--> plan_rebalance   a reviewed set of moves; `confirm` proves later that it still fits
   `--> distribution     the picture for people, with score and bound
"""

from evenkeel.balance.load import LoadMap
from evenkeel.balance.nouns import (
    Distribution,
    HourLoad,
    Member,
    Move,
    Place,
    Plan,
    Skip,
    Stale,
)
from evenkeel.balance.place import place
from evenkeel.balance.reasons import moved_sentence
from evenkeel.balance.rebalance import confirm, move_again, moved, plan_rebalance
from evenkeel.balance.turns import Limits

__all__ = [
    "Distribution",
    "HourLoad",
    "Limits",
    "LoadMap",
    "Member",
    "Move",
    "Place",
    "Plan",
    "Skip",
    "Stale",
    "confirm",
    "move_again",
    "moved",
    "moved_sentence",
    "place",
    "plan_rebalance",
]
