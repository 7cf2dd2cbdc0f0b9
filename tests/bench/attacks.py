"""One tenant does its worst: how late are the runs of another, beside a bare client?

Each attack has a cluster and an operator of its own, with default settings. Ten victims are due one
a second; a bare client creates a Job each full second. `python -m tests.bench.attacks [NAME...]`
measures some of them.
"""

import json
import math
import resource
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.bench._audit import Creates, StatusPatches
from tests.bench._cluster import ACCOUNT, SCHEDULES, TEMPLATE, Json, Place, place
from tests.bench._machine import Idle, resident_mb, wait_calm
from tests.bench._measure import long_form, percentile
from tests.cluster.hostile_webhook import denial, hostile_webhook, wait_until_in_force
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import World, moment

VICTIMS = 10
SETTLE_S = 10
"""From the attack to the first run that is measured."""
MINUTE_S = 60
HALF_OPEN = b"GET /livez HTTP/1.1\r\nHost: x\r\nX-a: "
CROWD = 1_100
HERD = 1_500
LARGE_KB, LARGE = 250, 60
FEW_FILES = 1_024
ADMINISTRATOR = "admin"
FATE = "test.evenkeel.dev/fate"


@dataclass
class Attack:
    """What one attack may use, and what it finds beside the lateness of the victims."""

    here: Place
    world: World
    running: OperatorProcess
    ns: str
    """The attacker's own."""
    beside: dict[str, Any] = field(default_factory=dict)
    looks: list[Callable[[], None]] = field(default_factory=list)
    """Called once a second while it lasts."""

    def schedules(self, count: int, **spec: Any) -> None:
        self.here.schedules(self.ns, count, lambda _: spec, word="hostile")

    def most(self, name: str, number: float) -> None:
        self.beside[name] = max(self.beside.get(name, 0), round(number, 1))

    def watch_replaced(self, ns: str, name: str) -> None:
        """How many Jobs of a schedule with Replace are there at once."""

        def look() -> None:
            jobs = [job for job in self.world.jobs(ns, name) if not job["status"].get("succeeded")]
            self.most("replaced_at_once", len(jobs))

        self.looks.append(look)


def every(seconds: int, offset: int = 0) -> Json:
    anchor = moment((int(time.time()) // seconds - 2) * seconds)
    return {"every": f"{seconds}s", "offset": f"{offset}s", "anchor": anchor}


# --- the attacks ----------------------------------------------------------------------------------


@contextmanager
def nothing(attack: Attack) -> Iterator[None]:
    """For comparison."""
    yield


@contextmanager
def slow_statuses(attack: Attack) -> Iterator[None]:
    """A webhook on statuses that hangs, and 300 suspended schedules."""
    with hostile_webhook(
        attack.world, attack.ns, directory=attack.here.directory, of="scheduledjobs/status"
    ) as webhook:
        attack.schedules(300, interval=every(3600), suspend=True)
        wait_until_in_force(webhook)
        yield


@contextmanager
def statuses_told_to_pause(attack: Attack) -> Iterator[None]:
    """A webhook on statuses that answers 429, for one schedule."""
    with hostile_webhook(
        attack.world, attack.ns, directory=attack.here.directory, of="scheduledjobs/status"
    ) as webhook:
        webhook.answer = denial(429, retry_after_s=60)
        attack.schedules(1, interval=every(10))
        wait_until_in_force(webhook)
        yield


@contextmanager
def creates_told_to_pause(attack: Attack) -> Iterator[None]:
    """A webhook on Jobs that answers 429, for one schedule every 10 s."""
    with hostile_webhook(
        attack.world, attack.ns, directory=attack.here.directory, of="jobs"
    ) as webhook:
        webhook.answer = denial(429, retry_after_s=60)
        attack.schedules(1, interval=every(10))
        wait_until_in_force(webhook)
        yield


@contextmanager
def creates_refused_with_429(attack: Attack) -> Iterator[None]:
    """As before without Retry-After, for sixty schedules."""
    with hostile_webhook(
        attack.world, attack.ns, directory=attack.here.directory, of="jobs"
    ) as webhook:
        webhook.answer = {"allowed": False, "status": {"code": 429, "message": "no"}}
        attack.schedules(60, interval=every(10))
        wait_until_in_force(webhook)
        yield


@contextmanager
def slow_creates(attack: Attack) -> Iterator[None]:
    """A webhook on Jobs that hangs, and two hundred schedules every 10 s."""
    with (
        hostile_webhook(
            attack.world, attack.ns, directory=attack.here.directory, of="jobs"
        ) as webhook,
        replaced(attack),
    ):
        attack.schedules(200, interval=every(10))
        wait_until_in_force(webhook)
        yield


@contextmanager
def slow_dry_runs(attack: Attack) -> Iterator[None]:
    """The same webhook, and two hundred suspended schedules: nothing but dry runs."""
    with (
        hostile_webhook(
            attack.world, attack.ns, directory=attack.here.directory, of="jobs"
        ) as webhook,
        replaced(attack),
    ):
        attack.here.schedules(
            attack.ns,
            200,
            lambda number: {
                "interval": every(3600),
                "suspend": True,
                "jobTemplate": labelled(str(number)),
            },
            word="hostile",
        )
        wait_until_in_force(webhook)
        yield


@contextmanager
def herd(attack: Attack) -> Iterator[None]:
    """Fifteen hundred schedules each minute, before all others by their priority."""
    with replaced(attack):
        attack.schedules(HERD, interval=every(60), priority=1000)
        yield


@contextmanager
def replaced(attack: Attack) -> Iterator[None]:
    """A victim with Replace whose Jobs never end."""
    ns = attack.here.namespace(f"replace-{secrets.token_hex(3)}")
    spec = {"interval": every(10), "concurrencyPolicy": "Replace", "jobTemplate": hanging()}
    attack.here.schedules(ns, 1, lambda _: spec, word="replace")
    attack.watch_replaced(ns, "replace-00000")
    yield


@contextmanager
def half_open(attack: Attack) -> Iterator[None]:
    """1,100 half requests to the health port, and new ones for those that are closed. The operator
    may open 1,024 files, as if its hard limit were so low."""
    files = (FEW_FILES, FEW_FILES)
    resource.prlimit(attack.running.pid, resource.RLIMIT_NOFILE, files)
    over = threading.Event()
    host, _, port = attack.running.address.rpartition(":")
    crowd = threading.Thread(target=press, args=((host, int(port)), over), daemon=True)
    crowd.start()

    def look() -> None:
        began = time.monotonic()
        answered = attack.running.get("/livez")[0] == 200
        attack.most("livez_ms", (time.monotonic() - began) * 1e3)
        attack.beside["livez_asked"] = attack.beside.get("livez_asked", 0) + 1
        attack.beside["livez_failed"] = attack.beside.get("livez_failed", 0) + (not answered)
        descriptors = Path(f"/proc/{attack.running.pid}/fd")
        attack.most("descriptors", len(list(descriptors.iterdir())))

    attack.looks.append(look)
    try:
        yield
    finally:
        over.set()
        crowd.join(timeout=10)


def press(address: tuple[str, int], over: threading.Event) -> None:
    crowd: list[socket.socket] = []
    while not over.is_set():
        crowd = [one for one in crowd if is_open(one)]
        while len(crowd) < CROWD and not over.is_set():
            one = socket.create_connection(address, timeout=5)
            one.setblocking(False)
            crowd.append(one)
            try:
                one.send(HALF_OPEN)
            except OSError:
                break
        over.wait(0.05)
    for one in crowd:
        one.close()


def is_open(one: socket.socket) -> bool:
    try:
        if one.recv(1):
            return True
    except BlockingIOError:
        return True
    except OSError:
        pass
    one.close()
    return False


@contextmanager
def large_templates(attack: Attack) -> Iterator[None]:
    """Sixty templates as large as may be, one of them edited each second."""
    before_mb = resident_mb(attack.running.pid)
    attack.here.schedules(
        attack.ns,
        LARGE,
        lambda number: {"interval": every(3600, number), "jobTemplate": large(number)},
        word="hostile",
    )
    time.sleep(SETTLE_S)
    kept_kb = (resident_mb(attack.running.pid) - before_mb) * 1e3 / LARGE
    attack.beside["kept_kb_a_template"] = round(kept_kb)
    edits = iter(range(10**6))

    def look() -> None:
        number = next(edits)
        path = f"{SCHEDULES}/namespaces/{attack.ns}/scheduledjobs/hostile-{number % LARGE:05}"
        attack.here.send([("PATCH", path, {"spec": {"jobTemplate": large(10**6 + number)}})])

    attack.looks.append(look)
    yield


def large(number: int) -> Json:
    return labelled(f"{number}", args=["x" * (LARGE_KB * 1024)])


def hanging() -> Json:
    pod = {**TEMPLATE["spec"]["template"], "metadata": {"annotations": {FATE: "hang"}}}
    return {"spec": {**TEMPLATE["spec"], "template": pod}}


def labelled(text: str, **container: Any) -> Json:
    """A template that no other is the same as."""
    pod = TEMPLATE["spec"]["template"]["spec"]
    changed = {**pod["containers"][0], **container}
    return {
        "spec": {
            **TEMPLATE["spec"],
            "template": {
                "metadata": {"annotations": {"number": text}},
                "spec": {**pod, "containers": [changed]},
            },
        }
    }


ATTACKS: dict[str, Callable[[Attack], Any]] = {
    "no attack": nothing,
    "statuses that hang": slow_statuses,
    "statuses told to pause": statuses_told_to_pause,
    "creates told to pause": creates_told_to_pause,
    "creates refused with 429": creates_refused_with_429,
    "creates that hang": slow_creates,
    "dry runs that hang": slow_dry_runs,
    "a herd each minute": herd,
    "half-open requests": half_open,
    "large templates": large_templates,
}


# --- measuring ------------------------------------------------------------------------------------


def rows(names: tuple[str, ...] = ()) -> Iterator[dict[str, Any]]:
    for name, attack in ATTACKS.items():
        if names and name not in names:
            continue
        # A cluster of its own: hundreds of schedules of the attack before it would still be due.
        with place(pods="kwok") as here:
            world = World(here.cluster)
            try:
                yield measured(here, world, name, attack)
            finally:
                world.close()


def measured(
    here: Place, world: World, name: str, attack: Callable[[Attack], Any]
) -> dict[str, Any]:
    watched_s = (5 if long_form() else 1) * MINUTE_S
    assert here.cluster.audit_log is not None
    with ExitStack() as stack:
        victims, hostile, bare = (
            here.namespace(f"{word}-{secrets.token_hex(3)}")
            for word in ("victim", "hostile", "bare")
        )
        running = stack.enter_context(
            operator(here.kubeconfig, directory=here.directory, name=f"attack-{hostile}")
        )
        wait_calm(here.pids(), within_s=20)
        here.schedules(
            victims, VICTIMS, lambda number: {"interval": every(10, number)}, word="victim"
        )
        stack.enter_context(each_second(here, bare))
        time.sleep(SETTLE_S)
        before_mb, idle = resident_mb(running.pid), Idle()
        creates = Creates(here.cluster.audit_log, ACCOUNT)
        statuses = StatusPatches(here.cluster.audit_log, ACCOUNT)
        others = Creates(here.cluster.audit_log, ADMINISTRATOR)
        told = Attack(here, world, running, hostile)
        with attack(told):
            time.sleep(SETTLE_S)
            began = math.ceil(time.time())
            while time.time() < began + watched_s:
                next_look = time.monotonic() + 1
                running.require_running()
                told.most("memory_mb", resident_mb(running.pid))
                for look in told.looks:
                    look()
                time.sleep(max(0.0, next_look - time.monotonic()))
            time.sleep(2)
        running.require_running()
        span = {"due_from": began, "due_before": began + watched_s - 1}
        late_ms = [late_s * 1e3 for late_s in creates.lateness_s(**span, of="victim-")]
        bare_ms = [late_s * 1e3 for late_s in others.lateness_s(**span, of="bare-")]
        patched = statuses.received_s()
    gaps_s = [
        later - earlier
        for name_, instants in patched.items()
        if name_.startswith("victim-")
        for earlier, later in pairwise(instants)
    ]
    bare_p99 = percentile(bare_ms, 99)
    return {
        "name": f"{name}: victims later than a bare client, p99",
        "value": percentile(late_ms, 99) - bare_p99,
        "unit": "ms",
        "beside": {
            "p50_ms": percentile(late_ms, 50),
            "p99_ms": percentile(late_ms, 99),
            "max_ms": late_ms[-1],
            "runs": len(late_ms),
            "runs_missing": watched_s - 1 - len(late_ms),
            "bare_p99_ms": bare_p99,
            "bare_max_ms": bare_ms[-1],
            "longest_without_a_status_s": max(gaps_s, default=math.inf),
            "memory_before_mb": round(before_mb, 1),
            **told.beside,
            "machine_idle": idle.share(),
        },
    }


@contextmanager
def each_second(here: Place, ns: str) -> Iterator[None]:
    """The bare client."""
    client = subprocess.Popen(
        [sys.executable, "-m", "tests.bench._each_second", str(here.cluster.kubeconfig), ns],
        stdin=subprocess.PIPE,
    )
    try:
        yield
    finally:
        client.communicate(timeout=30)


if __name__ == "__main__":
    for row in rows(tuple(sys.argv[1:])):
        print(json.dumps(row), flush=True)
