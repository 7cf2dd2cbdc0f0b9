"""Clusters for the tests, started once a session and only if a test asks.

`cluster` is any real API server: a kubeconfig named by EVENKEEL_TEST_KUBECONFIG, kind, or our own.
`own_cluster` is always our own (faults, other users, the audit log). `kwok_cluster` is our own with
a fake node, on which Jobs finish; `node_cluster` has a real one, on which Pods run: ours, kind's,
or that of the named kubeconfig. `namespace` is in whichever of them the test asks for. With
EVENKEEL_TEST_CLUSTER=NAME they are found or started under that name and left running, which saves
the start when one test is run again and again. `helm` runs helm.

`postgres_server` is a PostgreSQL of this session's own, `database` a new database in it, and
`pgbouncer` the port of a PgBouncer in transaction mode before it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tests.cluster.harness import (
    Cluster,
    HarnessError,
    build,
    images,
    node,
    prepare,
    promtool,
    start,
)
from tests.cluster.harness.cluster import Pods
from tests.cluster.harness.crd_validator import CrdValidator
from tests.cluster.harness.helm import Helm, program
from tests.cluster.harness.helm import helm as run_helm
from tests.cluster.harness.report import say
from tests.ledger import postgres_server as postgres

KEPT = os.environ.get("EVENKEEL_TEST_CLUSTER")
if KEPT and (worker := os.environ.get("PYTEST_XDIST_WORKER")):
    KEPT = f"{KEPT}-{worker}"  # each has its own: their tests kill API servers

# How long an example takes says how busy the machine is: no test fails over it.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

_unavailable: dict[tuple[Pods, bool], str] = {}  # why a cluster cannot be in this session


def pytest_configure() -> None:
    """A shell without job control starts what goes into the background with Ctrl-C ignored, all
    processes of ours inherit it, and those that a test interrupts would go on for ever."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # An operator that a test starts without a data directory keeps its ledger in this one.
    os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="evenkeel-tests-")


def pytest_unconfigure() -> None:
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    # Not above: whoever runs one test without workers need not have xdist.
    from tests.side_by_side import SideBySide

    return SideBySide(config, log)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Builds what the chosen tests need before the first of them: a test's time limit is not meant
    for minutes of compiling, and whoever waits should see the progress."""
    if session.config.option.collectonly:
        return
    wanted = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else nullcontext():
        if "cluster" in wanted:
            _prepare("none")
        if "own_cluster" in wanted:
            _prepare("none", own=True)
        if "kwok_cluster" in wanted:
            _prepare("kwok")
        if "node_cluster" in wanted:
            _prepare("node")
        if any("alerts" in item.path.name for item in session.items):
            with suppress(HarnessError):  # the tests say what is missing
                promtool.program()
        if "postgres_server" in wanted:
            postgres.missing()
        if "pgbouncer" in wanted:
            postgres.missing_pgbouncer()
        parts = {"cronjob-specs", "crdvalidator", "helm", "helm-docs", "registry"}
        for part in parts & {name.replace("_", "-") for name in wanted}:
            with suppress(HarnessError):  # the fixture tells it to the tests that need it
                build.built(part)


def _prepare(pods: Pods, *, own: bool = False) -> None:
    try:
        prepare(pods, own=own)
    except HarnessError as error:  # the tests that need no cluster should run all the same
        _unavailable[pods, own] = str(error)
        say(str(error))


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with _running(KEPT or _name(), "none") as found:
        yield found


@pytest.fixture(scope="session")
def own_cluster(cluster: Cluster) -> Iterator[Cluster]:
    if cluster.kind == "built":
        yield cluster
        return
    with _running(f"{KEPT}-own" if KEPT else _name(), "none", own=True) as found:
        yield found


@pytest.fixture(scope="session")
def kwok_cluster() -> Iterator[Cluster]:
    with _running(f"{KEPT}-kwok" if KEPT else _name(), "kwok") as found:
        yield found


@pytest.fixture(scope="session")
def node_cluster() -> Iterator[Cluster]:
    with _running(f"{KEPT}-node" if KEPT else _name(), "node") as found:
        if found.pods != "node":
            pytest.skip(f"no real node: {node.impossible()}")
        if found.kind == "kind":  # our own has it from the start
            images.give_busybox(found)
        yield found


@pytest.fixture(scope="session")
def helm() -> Helm:
    """`helm("template", ...)`, by the words of harness/helm.py."""
    program()
    return run_helm


@pytest.fixture(scope="session")
def helm_docs() -> Path:
    return build.built("helm-docs")


@pytest.fixture(scope="session")
def crdvalidator() -> CrdValidator:
    """Kubernetes 1.30's judgement of a CRD and of its objects."""
    return CrdValidator(build.built("crdvalidator") / "crdvalidator")


@pytest.fixture(scope="session")
def cronjob_specs() -> Path:
    return build.built("cronjob-specs")


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> Iterator[str]:
    asked = [
        each
        for each in ("node_cluster", "kwok_cluster", "own_cluster")
        if each in request.fixturenames
    ]
    found: Cluster = request.getfixturevalue(asked[0] if asked else "cluster")
    name = f"test-{secrets.token_hex(4)}"
    found.kubectl("create", "namespace", name)
    yield name
    # Gone in a few seconds, which no test waits for: the next one has a name of its own.
    found.kubectl("delete", "namespace", name, "--wait=false", check=False)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.PostgresServer]:
    if sentence := postgres.missing():
        pytest.skip(sentence)
    server = postgres.PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def pgbouncer(postgres_server: postgres.PostgresServer) -> Iterator[int]:
    if sentence := postgres.missing_pgbouncer():
        pytest.skip(sentence)
    with postgres.pgbouncer(postgres_server) as port:
        yield port


@pytest.fixture
def database(postgres_server: postgres.PostgresServer) -> Iterator[str]:
    name = postgres_server.new_database()
    yield name
    postgres_server.drop_database(name)


@contextmanager
def _running(name: str, pods: Pods, *, own: bool = False) -> Iterator[Cluster]:
    if (pods, own) in _unavailable:
        pytest.fail(_unavailable[pods, own])
    found = start(name, pods, own=own, keep=KEPT is not None)
    try:
        yield found
    finally:
        if not KEPT:
            found.stop()


def _name() -> str:
    return f"test-{secrets.token_hex(3)}"
