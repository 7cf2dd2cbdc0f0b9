"""What happens outside the operator: schedules that users make, change and delete, and what becomes
of their Jobs. Everything by seed, and nothing of it depends on what the operator does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.sim.controllers import Fate, kind_of, run_of
from tests.sim.network import SILENCE_S
from tests.sim.server import Json, status_reply

from evenkeel import rfc3339
from evenkeel.kube.api import Reply
from evenkeel.model import BY_SCHEDULE
from evenkeel.resource.job import LABEL_SCHEDULE
from evenkeel.resource.names import NOTE_TRIGGER

NEW_YEAR = 1_798_761_600
"""2027-01-01T00:00:00Z."""

EVER = float("inf")


NO_LEDGER = "no ledger"

MISTAKES_FROM = 10_000
"""From this seed on users make edits that are refused. What was found below stays what it was."""


PLACED_FROM = 20_000
"""From this seed on intervals are placed, and quotas and policies refuse Jobs."""


FORGED_FROM = 60_000
"""From this seed on a stored status may be forged, and the watch of Jobs may fall silent for ever.
"""

UNSTORED_FROM = 70_000
"""From this seed on statuses cannot be stored for long: see unstored.py."""

REQUESTS_FROM = 1_000_000
"""From this seed on there are requests, and what `PLACED_FROM` brings: see requested.py."""


@dataclass(frozen=True, slots=True)
class Deed:
    """Something a user, or an administrator of the cluster, does at `at_s`."""

    at_s: float
    what: str
    """create, patch, delete, delete job, edit job, cancel run, set clock, stop clock, mend clock,
    block, tell again, compact, forge status, scrape; and of requests: request, patch request,
    delete request."""
    name: str = ""
    body: Json = field(default_factory=dict)
    value: float = 0.0
    ns: str = "default"


def admits_all(at_s: float, job: Json) -> Reply | None:
    """Nothing is refused."""
    return None


@dataclass(frozen=True, slots=True)
class World:
    """A story to be played with and without faults."""

    name: str
    deeds: tuple[Deed, ...]
    lasts_s: float
    base: int = NEW_YEAR
    fate: Callable[[Json], Fate] = lambda job: Fate()
    settings: dict[str, Any] = field(default_factory=dict)
    calm_from_s: float = 0.0
    """In a storm: faults end here, and the operator must converge by `lasts_s`."""
    admission: Callable[[float, Json], Reply | None] = admits_all
    """What refuses the create of a Job: a quota, a policy."""
    tags: frozenset[str] = frozenset()
    """What the oracles must know: `wall` (the clock is set), `deleted jobs`, `no ledger`."""


def template(version: int = 1, **spec: Any) -> Json:
    """A Job template; another version is another template."""
    container = {"name": "main", "image": f"work:{version}"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"spec": {"template": {"spec": pod}, **spec}}


def every(seconds: int, *, offset: int = 0, **spec: Any) -> Json:
    """A spec with an interval at a fixed offset."""
    return {
        "interval": {"every": f"{seconds}s", "offset": f"{offset}s"},
        "jobTemplate": template(),
        **spec,
    }


def create(at_s: float, name: str, spec: Json, *, ns: str = "default") -> Deed:
    """A schedule is applied for the first time."""
    return Deed(at_s, "create", name, spec, ns=ns)


def patch(at_s: float, name: str, **spec: Any) -> Deed:
    """Fields of its spec are changed."""
    return Deed(at_s, "patch", name, {"spec": spec})


def request(at_s: float, name: str, schedule: str, *, ns: str = "default", **spec: Any) -> Deed:
    """A RunRequest is created."""
    return Deed(at_s, "request", name, {"schedule": schedule, **spec}, ns=ns)


def patch_request(at_s: float, name: str, *, ns: str = "default", **spec: Any) -> Deed:
    """Fields of its spec are changed."""
    return Deed(at_s, "patch request", name, {"spec": spec}, ns=ns)


def delete_request(at_s: float, name: str, *, ns: str = "default") -> Deed:
    """A RunRequest is deleted."""
    return Deed(at_s, "delete request", name, ns=ns)


def trigger(at_s: float, name: str, wish: str, *, ns: str = "default") -> Deed:
    """The annotation of a schedule that asks for one run."""
    return Deed(at_s, "patch", name, {"metadata": {"annotations": {NOTE_TRIGGER: wish}}}, ns=ns)


def delete(at_s: float, name: str) -> Deed:
    """A schedule is deleted."""
    return Deed(at_s, "delete", name)


def exceeded_quota() -> Reply:
    """It may heal."""
    return status_reply(403, "Forbidden", 'jobs.batch "a" is forbidden: exceeded quota: few')


def denied_by_policy() -> Reply:
    """It cannot heal."""
    message = 'admission webhook "policy.example.com" denied the request: not this one'
    return status_reply(403, "Forbidden", message)


def from_seed(seed: int) -> World:
    """A small world of its own for each seed."""
    rng = Random(f"world {seed}")
    chaos_s = rng.uniform(60, 200)
    lasts_s = chaos_s + 100
    base = NEW_YEAR + rng.choice((0, 7, 3_600 - 40, 86_400 * 86 + 3_540))
    deeds: list[Deed] = []
    tags: set[str] = set()
    profiles: dict[str, tuple[float, float, float]] = {}
    for number in range(rng.randint(1, 4)):
        name = f"job-{number}"
        ns = rng.choice(("default", "default", "other"))
        begin = rng.choice((0.0, 0.0, rng.uniform(0, chaos_s / 2)))
        spec, period = _spec(rng, base=base, chaos_s=chaos_s)
        if seed >= PLACED_FROM and "interval" in spec and rng.random() < 0.7:
            del spec["interval"]["offset"]
        # starts, runs (as a share of the period), fails
        profiles[name] = (
            rng.choice((0.2, 1.0, 3.0)),
            rng.choice((0.1, 0.5, 1.6)) * min(period, 60),
            rng.choice((0.0, 0.0, 0.3, 1.0)),
        )
        deeds.append(Deed(begin, "create", name, spec, ns=ns))
        deeds += _life(rng, name, ns, begin=begin, end=chaos_s, base=base, tags=tags)
        if seed >= MISTAKES_FROM:
            deeds += _mistakes(rng, name, ns, begin=begin, end=chaos_s)
    if rng.random() < 0.2:
        tags.add("wall")
        jump = rng.choice((-7_200.0, -20.0, -3.0, 5.0, 45.0, 7_200.0))
        deeds.append(Deed(rng.uniform(10, chaos_s), "set clock", value=jump))
    deeds += [Deed(rng.uniform(5, chaos_s), "compact") for _ in range(rng.choice((0, 0, 1, 3)))]
    if FORGED_FROM <= seed < REQUESTS_FROM:
        lasts_s += SILENCE_S  # until a watch that fell silent is given up
        if "wall" not in tags:
            deeds += _forgery(seed, deeds, chaos_s=chaos_s)
    deeds.sort(key=lambda deed: deed.at_s)

    def fate(job: Json) -> Fate:
        run = run_of(job)
        name = (job["metadata"].get("labels") or {}).get(LABEL_SCHEDULE, "")
        starts_s, runs_s, fails = profiles.get(name, (1.0, 1.0, 0.0))
        # Another run of the same due time may have another fate.
        by = kind if (kind := kind_of(job)) != BY_SCHEDULE else ""
        dice = Random(f"{seed} {name} {run[1:] if run else ''}{by}")
        return Fate(
            starts_s * dice.uniform(0.5, 1.5),
            runs_s * dice.uniform(0.7, 1.3),
            dice.random() >= fails,
        )

    return World(
        name=f"seed {seed}",
        deeds=tuple(deeds),
        lasts_s=lasts_s,
        base=base,
        fate=fate,
        admission=_admission(seed, chaos_s=chaos_s) if seed >= PLACED_FROM else admits_all,
        settings={"grace_s": rng.choice((5, 30)), "prune_s": 30, "index_rebuild_s": 60},
        calm_from_s=chaos_s,
        tags=frozenset(tags),
    )


def _forgery(seed: int, deeds: list[Deed], *, chaos_s: float) -> list[Deed]:
    """Of one schedule, in two worlds of three."""
    rng = Random(f"forgery {seed}")
    if rng.random() < 0.33:
        return []
    made = rng.choice([deed for deed in deeds if deed.what == "create"])
    at_s = rng.uniform(made.at_s, chaos_s)
    return [Deed(at_s, "forge status", made.name, ns=made.ns, value=seed)]


def _admission(seed: int, *, chaos_s: float) -> Callable[[float, Json], Reply | None]:
    """A quota that is full for a while, and a policy that denies some runs."""
    rng = Random(f"admission {seed}")
    begin = rng.uniform(5, chaos_s)
    full = (begin, min(chaos_s, begin + rng.choice((0, 3, 20, 60))))
    denied = rng.choice((0.0, 0.0, 0.1, 0.5))

    def admission(at_s: float, job: Json) -> Reply | None:
        if full[0] <= at_s < full[1]:
            return exceeded_quota()
        dice = Random(f"{seed} {job['metadata']['name']}")
        return denied_by_policy() if at_s < chaos_s and dice.random() < denied else None

    return admission


def _spec(rng: Random, *, base: int, chaos_s: float) -> tuple[Json, float]:
    """A schedule of any kind with any policies."""
    kind = rng.choice(("interval", "interval", "cron", "hourly", "at", "zone"))
    period = float(rng.choice((10, 15, 20, 30, 45, 60)))
    spec: Json = {"jobTemplate": template()}
    if kind == "interval":
        spec["interval"] = {"every": f"{period:g}s", "offset": f"{rng.randrange(int(period))}s"}
    elif kind == "cron":
        spec["schedule"], period = "* * * * *", 60.0
    elif kind == "zone":
        spec["schedule"], period = "*/1 * * * *", 60.0
        spec["timeZone"] = rng.choice(("Europe/Berlin", "Australia/Lord_Howe", "America/Santiago"))
    elif kind == "hourly":
        minute = (base + int(rng.uniform(20, chaos_s))) // 60 % 60
        spec["hourly"], period = {"minute": minute}, 3_600.0
    else:
        spec["at"] = rfc3339.show(base + int(rng.uniform(-20, chaos_s)))
    spec["concurrencyPolicy"] = rng.choice(("Allow", "Forbid", "Replace", "Queue"))
    spec["missedRuns"] = rng.choice(("Latest", "Latest", "Skip", "All"))
    limit = rng.choice((1, 2, 5)) if rng.random() < 0.3 else None
    if limit and spec["missedRuns"] == "All":  # elsewhere it does nothing, and is refused
        spec["catchUpLimit"] = limit
    if rng.random() < 0.3:
        spec["startingDeadlineSeconds"] = rng.choice((1, 10, 40))
    if rng.random() < 0.3:
        spec["retry"] = {"limit": rng.choice((1, 2)), "delaySeconds": rng.choice((0, 5, 20))}
    longest = rng.choice((1, 2)) if rng.random() < 0.2 else None
    if longest and spec["concurrencyPolicy"] == "Queue":
        spec["maxQueued"] = longest
    if rng.random() < 0.15:
        spec["pauseAfterFailures"] = rng.choice((1, 3))
    if rng.random() < 0.3:
        spec["successfulJobsHistoryLimit"] = rng.choice((0, 1))
        spec["failedJobsHistoryLimit"] = rng.choice((0, 1))
    if rng.random() < 0.15:
        spec["jobTemplate"] = template(ttlSecondsAfterFinished=rng.choice((0, 5, 100)))
    if rng.random() < 0.15:
        spec["pendingDeadlineSeconds"] = rng.choice((1, 10))
    if rng.random() < 0.7:
        spec["endTime"] = rfc3339.show(base + int(chaos_s) + 30)
    return spec, period


def _mistakes(rng: Random, name: str, ns: str, *, begin: float, end: float) -> list[Deed]:
    """A zone that does not exist, and how it is mended."""
    if rng.random() < 0.5:
        return []
    at_s = float(int(rng.uniform(begin + 2, end))) + rng.choice((0.0, 0.4, 0.99))
    none = dict.fromkeys(("schedule", "hourly", "interval", "at"))
    other = none | {"interval": {"every": f"{rng.choice((15, 40))}s", "offset": "3s"}}
    mended = {"timeZone": None} | rng.choice(({}, other, other))
    mend_s = at_s + rng.choice((0.5, rng.uniform(1, 60)))
    wrong, right = {"spec": {"timeZone": "Mars/Phobos"}}, {"spec": mended}
    return [Deed(at_s, "patch", name, wrong, ns=ns), Deed(mend_s, "patch", name, right, ns=ns)]


def _life(
    rng: Random, name: str, ns: str, *, begin: float, end: float, base: int, tags: set[str]
) -> list[Deed]:
    """What is done to a schedule after it was made."""

    def change(at_s: float, **spec: Any) -> Deed:
        return Deed(at_s, "patch", name, {"spec": spec}, ns=ns)

    deeds: list[Deed] = []
    for _ in range(rng.choice((0, 0, 1, 2, 4))):
        # Edits at a due second, where a run may use half of two specs, and in between.
        at_s = float(int(rng.uniform(begin + 2, end))) + rng.choice((0.0, 0.0, 0.4, 0.99))
        deed = rng.choice(("timing", "template", "suspend", "blink", "recreate", "policy", "gone"))
        if deed == "timing":
            seconds = rng.choice((10, 12, 25, 40))
            wish = {"interval": {"every": f"{seconds}s", "offset": "0s"}}
            others = dict.fromkeys(("schedule", "hourly", "at", "timeZone"))
            deeds.append(change(at_s, **wish, **others))
        elif deed == "template":
            deeds.append(change(at_s, jobTemplate=template(rng.randrange(100))))
        elif deed == "suspend":
            deeds.append(change(at_s, suspend=True))
            deeds.append(change(at_s + rng.uniform(0.01, 50), suspend=False))
        elif deed == "blink":
            deeds.append(change(at_s, suspend=True))
            deeds.append(change(at_s + 0.001, suspend=False))
        elif deed == "policy":
            policy = rng.choice(("Allow", "Forbid", "Replace", "Queue"))
            queue = {} if policy == "Queue" else {"maxQueued": None}
            deeds.append(change(at_s, concurrencyPolicy=policy, **queue))
        elif deed == "recreate":
            spec, _ = _spec(rng, base=base, chaos_s=end)
            deeds.append(Deed(at_s, "delete", name, ns=ns))
            deeds.append(Deed(at_s + rng.choice((0.0, 0.5, 9.0)), "create", name, spec, ns=ns))
        elif rng.random() < 0.3:
            deeds.append(Deed(at_s, "delete", name, ns=ns))
        elif rng.random() < 0.3:
            tags.add("deleted jobs")
            deeds.append(Deed(at_s, "delete job", name, ns=ns))
    return deeds
