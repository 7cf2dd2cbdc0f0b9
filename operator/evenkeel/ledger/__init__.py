"""The ledger: what was promised, and what became of it, for weeks.

`open_store` is the one way to a store. `rows` has the nouns, `store` the protocol that SQLite and
PostgreSQL fulfil, `audit` the arithmetic that compares what was expected with what is recorded.
The scheduler never waits for a store.
"""

from evenkeel.ledger.opening import open_store
from evenkeel.ledger.store import BadStore, OlderTerm, RunStore, StoreAway

__all__ = ["BadStore", "OlderTerm", "RunStore", "StoreAway", "open_store"]
