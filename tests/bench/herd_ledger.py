"""A herd of 500 due in one second, while the ledger's store does not answer, against no store.

Two operators with a namespace each on one API server: one with a PostgreSQL, one with `none`. Their
schedules are due a quarter of a minute apart, so rounds of the one lie between rounds of the other.
In half of the rounds, in random order, the database is stopped in its tracks (it holds its
connections and says nothing) until the round is over. Lateness as in `herd`. Rounds count only if
what the one before left was done when they began.
"""

import random
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from tests.bench._arrivals import Arrivals
from tests.bench._cluster import Json, Place, place
from tests.bench._machine import Idle
from tests.bench._measure import say
from tests.bench.herd import Herd, Kind, Round
from tests.cluster.operator_process import operator
from tests.cluster.world import moment
from tests.ledger.postgres_server import PostgresServer

HERD = 500
ROUNDS = 9
EVERY_S = 30
APART_S = EVERY_S // 2
ROUNDS_LIMIT = 40
KINDS = ("stalled", "answering", "none")


def rows() -> Iterator[dict[str, Any]]:
    with ExitStack() as stack:
        here = stack.enter_context(place())
        arrivals = stack.enter_context(Arrivals(here.cluster.kubeconfig))
        server = PostgresServer(durable=True)
        stack.callback(server.remove)
        server.start()
        url = server.url(server.new_database())
        stored = operated(stack, here, arrivals, "stored", url=url, offset_s=0)
        alone = operated(stack, here, arrivals, "alone", url="none", offset_s=APART_S)
        idle = Idle()
        kinds = all_rounds(server, stored, alone)
        stalled, answering, none = (kinds[name] for name in KINDS)
        beside: dict[str, Any] = {}
        for name in KINDS:
            beside |= kinds[name].beside(name, HERD)
        yield {
            "name": "500 in one second while the store stalls, p99 to that without a store",
            "value": stalled.median(99) / none.median(99),
            "unit": "x",
            "beside": beside
            | {
                "answering_ratio": answering.median(99) / none.median(99),
                "p50_ratio": stalled.median(50) / none.median(50),
                "machine_idle": idle.share(),
            },
        }


def operated(
    stack: ExitStack, here: Place, arrivals: Arrivals, word: str, *, url: str, offset_s: int
) -> Herd:
    herd = Herd(here, arrivals, HERD, kind=word)
    flags = ("--namespace", f"{word}-{HERD}")
    settings = {"STORE_URL": url}
    running = stack.enter_context(
        operator(
            here.kubeconfig, directory=here.directory, settings=settings, flags=flags, name=word
        )
    )
    anchor = moment(time.time() // 60 * 60 - 60)
    spec: Json = {"interval": {"every": f"{EVERY_S}s", "offset": f"{offset_s}s", "anchor": anchor}}
    herd.operated_by(running, lambda _: spec)
    return herd


def all_rounds(server: PostgresServer, stored: Herd, alone: Herd) -> dict[str, Kind]:
    kinds = {name: Kind() for name in KINDS}
    wanted = ["stalled", "answering"] * ROUNDS
    random.shuffle(wanted)
    for _ in range(ROUNDS_LIMIT):
        if not wanted and len(kinds["none"].rounds) >= ROUNDS:
            return kinds
        note(kinds, "none", *one(alone, offset_s=APART_S))
        if not wanted:
            continue
        name = wanted.pop()
        if name == "stalled":
            server.pause()
        try:
            found, fair = one(stored, offset_s=0)
        finally:
            if name == "stalled":
                server.resume()
        note(kinds, name, found, fair)
        if not fair:
            wanted.insert(0, name)
    raise AssertionError("the machine is too busy: rounds never begin at rest")


def one(herd: Herd, *, offset_s: int) -> tuple[Round | None, bool]:
    """The next round, and whether it began at rest."""
    due = int(time.time() - offset_s) // EVERY_S * EVERY_S + EVERY_S + offset_s
    fair = herd.calm(until=due - 1) and time.time() < due
    if time.time() >= due:
        return None, False
    return herd.ours(due, until=due + APART_S - 3), fair


def note(kinds: dict[str, Kind], name: str, found: Round | None, fair: bool) -> None:
    if found is None:
        return
    if fair:
        kinds[name].rounds.append(found)
    say(
        f"       herd_ledger: {name:9} p50 {found.at(50):.3f} p99 {found.at(99):.3f} max"
        f" {found.at(100):.3f} s" + ("" if fair else ", not counted: it did not begin at rest")
    )
