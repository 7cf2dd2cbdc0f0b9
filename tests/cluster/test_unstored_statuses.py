"""At most one Job per due time, while no status can be stored and Jobs vanish by their ttl.

The operator loses the right to patch statuses, or a webhook lets each patch hang. The operator is
killed at a random moment, the trouble ends, and the operator is started again. By then Jobs that
the first process created may be gone, and with them the names that lock their due times: only what
a stored status announced can tell the next process of them. The API server's audit log knows every
Job that ever was.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.faults.stage import IN_A_NAMESPACE, RBAC, RIGHTS, binding, put, times
from tests.cluster.harness import Cluster
from tests.cluster.hostile_webhook import hostile_webhook, wait_until_in_force
from tests.cluster.operator_process import OperatorProcess, operator
from tests.cluster.world import Json, World, eventually, names, once, template

USER = "evenkeel-unannounced"
STATUSES: list[Json] = [
    {"apiGroups": ["evenkeel.dev"], "resources": ["scheduledjobs/status"], "verbs": ["patch"]}
]
ALL_BUT_STATUSES = [*IN_A_NAMESPACE["creates"], *(rule for rule in RIGHTS if rule not in STATUSES)]
REST_S = 240.0  # Pods come and go on a machine that is full of tests
UNANNOUNCED_S = 12  # how long after the right is gone the first run is due that nothing announced


@dataclass(frozen=True)
class Form:
    """One length of the trouble."""

    ttl_s: int
    unstored_s: int
    pre_schedule_s: int
    every_s: int
    copies: int = 1
    hangs: bool = False


FORMS = {
    "a short ttl": Form(ttl_s=5, unstored_s=24, pre_schedule_s=6, every_s=2),
    "a minute": Form(ttl_s=60, unstored_s=430, pre_schedule_s=10, every_s=5, copies=10),
    "a short ttl, hanging": Form(ttl_s=5, unstored_s=24, pre_schedule_s=6, every_s=2, hangs=True),
    "five minutes, hanging": Form(
        ttl_s=300, unstored_s=430, pre_schedule_s=10, every_s=5, copies=10, hangs=True
    ),
    "five minutes": Form(ttl_s=300, unstored_s=430, pre_schedule_s=10, every_s=5, copies=10),
}


QUICK = FORMS["a short ttl"]
Trouble = AbstractContextManager[None]


@pytest.fixture
def world(kwok_cluster: Cluster) -> Iterator[World]:
    kwok_cluster.install_crd()
    found = World(kwok_cluster)
    for name, rules in ((USER, ALL_BUT_STATUSES), (f"{USER}-statuses", STATUSES)):
        put(found, f"{RBAC}/clusterroles", {"metadata": {"name": name}, "rules": rules})
    put(found, f"{RBAC}/clusterrolebindings", binding(USER, user=USER))
    yield found
    found.call("DELETE", f"{RBAC}/clusterrolebindings/{USER}")
    for name in (USER, f"{USER}-statuses"):
        found.call("DELETE", f"{RBAC}/clusterroles/{name}")
    found.leave()
    found.close()


SERIES: dict[str, Json] = {
    "all": {"missedRuns": "All", "catchUpLimit": 1000},
    "latest": {"missedRuns": "Latest"},
    "forbid": {"concurrencyPolicy": "Forbid", "runs_for": "2s"},
    "fails": {"retry": {"limit": 1, "delaySeconds": 1}, "fate": "fail"},
}


class Scene:
    """A namespace with schedules of all kinds, the operator's rights in it, and its Jobs so far."""

    def __init__(self, world: World, form: Form) -> None:
        self.world, self.form, self.ns = world, form, world.namespace("unstored")
        self.give_right()
        self.dues: dict[str, int] = {}

    def give_right(self) -> None:
        bound = binding(f"{USER}-statuses", name="statuses", user=USER)
        self.world.call("POST", f"{RBAC}/namespaces/{self.ns}/rolebindings", bound)
        eventually(lambda: self.has_right, "the right is in force")

    def take_right(self) -> None:
        self.world.call("DELETE", f"{RBAC}/namespaces/{self.ns}/rolebindings/statuses")
        eventually(lambda: not self.has_right, "the right is gone")

    @property
    def has_right(self) -> bool:
        review = {
            "spec": {
                "user": USER,
                "resourceAttributes": {
                    "verb": "patch",
                    "group": "evenkeel.dev",
                    "resource": "scheduledjobs",
                    "subresource": "status",
                    "namespace": self.ns,
                },
            }
        }
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return bool(self.world.call("POST", path, review)["status"]["allowed"])

    def add(
        self, name: str, count: int, *, runs_for: str = "", fate: str = "", **spec: Any
    ) -> None:
        """A schedule with so many due times, whose Jobs vanish by the ttl."""
        vanishes = template(ttlSecondsAfterFinished=self.form.ttl_s, runs_for=runs_for, fate=fate)
        self.world.create(self.ns, name, jobTemplate=vanishes, **spec)
        self.dues[name] = count

    def add_series(self) -> None:
        """Schedules that are due before, during and after the time without a status."""
        every_s = self.form.every_s
        count = (self.form.unstored_s + 8) // every_s
        for copy in range(self.form.copies):
            for name, spec in SERIES.items():
                rule = times(count, seconds_apart=every_s, first_in=8)
                self.add(f"{name}-{copy}", count, **rule, **spec)

    def add_before(self) -> None:
        """What is queued and retrying at the kill, as a stored status tells it."""
        for copy in range(self.form.copies):
            rule, longer = times(2, first_in=8), f"{10 + self.form.copies}s"
            self.add(f"queue-{copy}", 2, **rule, concurrencyPolicy="Queue", runs_for=longer)
            later = {"limit": 1, "delaySeconds": self.form.unstored_s + 5}
            self.add(f"retries-{copy}", 1, at=once(due_in=8), retry=later, fate="fail")

    def add_dates(self) -> None:
        """One date that is announced before the right is gone, and one that cannot be."""
        ahead_s = self.form.pre_schedule_s
        for copy in range(self.form.copies):
            self.add(f"announced-{copy}", 1, at=once(due_in=ahead_s - 1))
            self.add(f"held-{copy}", 1, at=once(due_in=ahead_s + UNANNOUNCED_S))

    def waits(self, word: str, reason: str) -> bool:
        """The stored statuses of these schedules name a run that waits for this reason."""
        return all(
            reason in {row["reason"] for row in self.world.waiting(self.ns, f"{word}-{copy}")}
            for copy in range(self.form.copies)
        )

    def verdicts(self) -> dict[str, int]:
        return {name: sum(self.world.counts(self.ns, name).values()) for name in self.dues}

    def ends(self, word: str) -> Counter[str]:
        """How the runs of these schedules ended, over all copies."""
        found: Counter[str] = Counter()
        for copy in range(self.form.copies):
            found.update(self.world.counts(self.ns, f"{word}-{copy}"))
        return found

    def assert_none_ran_twice(self) -> list[str]:
        created = self.world.created(self.ns)
        twice = [name for name, count in Counter(created).items() if count > 1]
        assert twice == [], f"{len(twice)} of {len(created)} Jobs were created twice"
        return created


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "form",
    [
        pytest.param(form, marks=pytest.mark.long if form is not QUICK else ())
        for form in FORMS.values()
    ],
    ids=FORMS,
)
def test_no_due_time_runs_twice_when_statuses_were_not_stored_for_longer_than_the_ttl(
    world: World, tmp_path: Path, form: Form
) -> None:
    scene = Scene(world, form)
    kubeconfig = world.cluster.user_kubeconfig(USER)
    settings = {"MIN_INTERVAL": "1", "PRE_SCHEDULE": f"{form.pre_schedule_s}"}
    flags = ("--namespace", scene.ns)
    with operator(kubeconfig, directory=tmp_path, settings=settings, flags=flags) as running:
        scene.add_series()
        scene.add_before()
        eventually(lambda: scene.waits("queue", "queued"), "runs are queued")
        eventually(lambda: scene.waits("retries", "retrying"), "runs wait for their next attempt")
        scene.add_dates()
        eventually(lambda: scene.waits("announced", "launching"), "the first dates are announced")

        if form.hangs:
            trouble = with_a_webhook_that_hangs(scene, tmp_path)
        else:
            trouble = without_the_right(scene)
        stay_unstored(scene, running, trouble)

        eventually(
            lambda: scene.verdicts() == scene.dues,
            "every due time has one verdict",
            within_s=REST_S + form.unstored_s,
        )
        created = scene.assert_none_ran_twice()
        count = form.copies
        queued = [name for name in created if name.startswith("queue-")]
        assert len(queued) == 2 * count, "what was queued did not go on"
        assert scene.ends("held") == {"succeeded": count}, "what was held did not go on"
        assert scene.ends("retries") == {"failed": count}, "what was retrying did not go on"
        assert scene.ends("all")["missed"] == 0


def stay_unstored(scene: Scene, running: OperatorProcess, trouble: Trouble) -> None:
    """Let no status be stored, kill the operator meanwhile, and begin anew when it is over."""
    form, world = scene.form, scene.world
    before = len(world.created(scene.ns))
    with trouble:
        until = time.monotonic() + form.unstored_s
        assert not scene.waits("held", "launching"), "this machine is too slow: nothing is held"
        time.sleep(random.uniform(form.pre_schedule_s, form.unstored_s))
        running.require_running()
        running.kill()
        created = scene.assert_none_ran_twice()
        assert not any(name.startswith("held-") for name in created), "a create was not announced"
        time.sleep(max(0.0, until - time.monotonic()))
        eventually(
            lambda: set(created[before:]) - set(names(world.jobs(scene.ns))),
            "Jobs vanish of which no stored status tells more than that they may be created",
        )
    running.start()


@contextmanager
def without_the_right(scene: Scene) -> Iterator[None]:
    """The operator may not patch statuses."""
    scene.take_right()
    yield
    scene.give_right()


@contextmanager
def with_a_webhook_that_hangs(scene: Scene, directory: Path) -> Iterator[None]:
    """Each patch of a status gets no answer, and is not stored."""
    with hostile_webhook(
        scene.world, scene.ns, directory=directory, of="scheduledjobs/status"
    ) as webhook:
        wait_until_in_force(webhook)
        yield
