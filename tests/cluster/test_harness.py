"""The harness itself: what every other test in this directory takes for granted."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.harness import (
    Cluster,
    HarnessError,
    Options,
    build,
    existing,
    processes,
    start,
    stop,
    sweep,
)
from tests.cluster.harness import state as states
from tests.cluster.harness.processes import Process, kill, this_process
from tests.cluster.harness.state import State
from tests.cluster.starters import REPOSITORY, WAIT, killed_at_the_end, swept


@pytest.fixture
def name() -> Iterator[str]:
    """A cluster name of the test's own; whatever it leaves there is stopped."""
    mine = f"test-{secrets.token_hex(3)}"
    yield mine
    stop(mine)


class TestAControlPlaneOfOurOwn:
    def test_answers_in_the_version_that_was_built(self, own_cluster: Cluster) -> None:
        answer = json.loads(own_cluster.kubectl("version", "-o", "json").stdout)

        assert answer["serverVersion"]["gitVersion"] == "v1.36.3"
        assert own_cluster.server.startswith("https://127.0.0.1:")

    def test_keeps_what_is_created(self, own_cluster: Cluster, namespace: str) -> None:
        own_cluster.kubectl("-n", namespace, "create", "configmap", "note", "--from-literal=a=b")

        assert json_of(own_cluster, namespace, "configmap", "note")["data"] == {"a": "b"}

    def test_refuses_with_kubectls_own_words(self, own_cluster: Cluster) -> None:
        with pytest.raises(HarnessError, match='namespaces "nowhere" not found'):
            own_cluster.kubectl("get", "namespace", "nowhere")

        assert own_cluster.kubectl("get", "namespace", "nowhere", check=False).returncode == 1

    def test_people_can_use_the_kubectl_beside_the_kubeconfig(self, own_cluster: Cluster) -> None:
        program = own_cluster.kubeconfig.parent / "bin" / "kubectl"

        answer = subprocess.run(
            [program, "get", "namespaces", "-o", "name"],
            env={**os.environ, "KUBECONFIG": str(own_cluster.kubeconfig)},
            capture_output=True,
            text=True,
            check=True,
        )

        assert "namespace/default" in answer.stdout

    def test_knows_another_user_and_gives_them_nothing(self, own_cluster: Cluster) -> None:
        theirs = own_cluster.user_kubeconfig("ann/o+dev", groups=["team a", "team b"])

        told = own_cluster.kubectl(
            "--kubeconfig", str(theirs), "auth", "whoami", "-o", "json"
        ).stdout
        refused = own_cluster.kubectl(
            "--kubeconfig", str(theirs), "get", "jobs.batch", "-A", check=False
        )

        user = json.loads(told)["status"]["userInfo"]
        assert user["username"] == "ann/o+dev"
        assert {"team a", "team b"} <= set(user["groups"])
        assert "forbidden" in refused.stderr

    def test_audits_jobs_and_nothing_else(self, own_cluster: Cluster, namespace: str) -> None:
        own_cluster.kubectl("-n", namespace, "create", "configmap", "unseen")
        own_cluster.kubectl("-n", namespace, "create", "job", "seen", "--image=none")

        def mine() -> list[dict[str, Any]]:
            events = own_cluster.audited(namespace)
            return [event for event in events if event["objectRef"].get("namespace") == namespace]

        eventually(
            lambda: any(
                (event["verb"], event["user"]["username"]) == ("create", "admin")
                for event in mine()
            )
        )
        assert {event["objectRef"]["resource"] for event in mine()} == {"jobs"}
        assert {event["level"] for event in own_cluster.audited("")} == {"Metadata"}

    def test_refuses_an_owner_that_one_may_not_update(
        self, own_cluster: Cluster, namespace: str
    ) -> None:
        own_cluster.kubectl("-n", namespace, "create", "configmap", "owner")
        owner = json_of(own_cluster, namespace, "configmap", "owner")
        may = ["create", "role", "may", "--verb=create,get", "--resource=configmaps"]
        own_cluster.kubectl("-n", namespace, *may)
        own_cluster.kubectl("-n", namespace, "create", "rolebinding", "b", "--role=may", "--user=u")
        owned = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "owned",
                "namespace": namespace,
                "ownerReferences": [
                    {
                        "apiVersion": "v1",
                        "kind": "ConfigMap",
                        "name": "owner",
                        "uid": owner["metadata"]["uid"],
                        "blockOwnerDeletion": True,
                    }
                ],
            },
        }

        theirs = str(own_cluster.user_kubeconfig("u"))

        def refused() -> bool:
            create = ("--kubeconfig", theirs, "create", "-f", "-")
            done = own_cluster.kubectl(*create, input=json.dumps(owned), check=False)
            return "cannot set blockOwnerDeletion" in done.stderr

        eventually(refused)  # at first the API server may not know of the role

    def test_comes_back_with_its_data_after_a_crash(
        self, own_cluster: Cluster, namespace: str
    ) -> None:
        own_cluster.kubectl("-n", namespace, "create", "configmap", "before")

        own_cluster.stop_api_server()
        unreachable = own_cluster.kubectl("get", "namespaces", check=False)
        own_cluster.start_api_server()

        assert "refused" in unreachable.stderr
        assert json_of(own_cluster, namespace, "configmap", "before")


class TestStartAndStop:
    def test_two_run_side_by_side(self, own_cluster: Cluster, namespace: str, name: str) -> None:
        other = start(name, own=True)

        assert other.server != own_cluster.server
        assert namespace not in other.kubectl("get", "namespaces").stdout
        assert namespace in own_cluster.kubectl("get", "namespaces").stdout

    def test_the_command_line_starts_one_for_two_who_ask_at_once(self, name: str) -> None:
        up = ("up", "--name", name, "--pods", "kwok")  # kind makes no such cluster
        with ThreadPoolExecutor() as both:
            first, second = both.map(lambda _: harness(*up), range(2))

        assert first.stdout == second.stdout == f"export KUBECONFIG={kubeconfig(name)}\n"
        assert start(name, "kwok").kubeconfig == kubeconfig(name)
        assert f"{name}: running, built" in harness("status", "--name", name).stdout
        with pytest.raises(HarnessError, match="runs with other options: stop it first"):
            start(name, "kwok", Options(profile="default"))
        sweep()  # `up` is over, and so is whoever asked; the cluster is kept all the same
        assert loaded(name).processes["etcd"].alive

        assert harness("down", "--name", name).stdout == ""

        assert name not in states.names()

    def test_stop_leaves_nothing(self, name: str) -> None:
        cluster = start(name, own=True)
        before = loaded(name)
        assert len(before.processes) == 3

        cluster.stop()

        assert_nothing_is_left(before)
        cluster.stop()  # twice does no harm
        with pytest.raises(HarnessError, match="has been stopped"):
            cluster.stop_api_server()

    def test_a_cluster_whose_starter_was_killed_is_cleaned_up(self, name: str) -> None:
        with killed_at_the_end(
            "from tests.cluster.harness import start",
            f"start({name!r}, own=True)",
        ):
            left = loaded(name)
            assert left.ready
            assert all(process.alive for process in left.processes.values())

        swept(name)

        assert_nothing_is_left(left)

    def test_a_half_started_cluster_is_cleaned_up_by_the_next_start(self, name: str) -> None:
        with killed_at_the_end(
            "from tests.cluster.harness import control_plane, start",
            f"control_plane.BuiltCluster._wait = lambda *_: {WAIT}",
            f"start({name!r}, own=True)",
        ):
            left = loaded(name)
            assert not left.ready
            assert left.processes["kube-apiserver"].alive

        with pytest.raises(HarnessError):
            start(f"{name}-b", options=Options(api_server_flags=("--no-such-flag",)), own=True)

        eventually(lambda: name not in states.names())  # by that start, or another's just before
        assert_nothing_is_left(left)

    def test_one_that_lost_a_process_is_started_anew(self, name: str) -> None:
        first = start(name, own=True)
        kill([loaded(name).processes["kube-controller-manager"]])

        second = start(name, own=True)

        assert second.kubectl("get", "serviceaccount", "default").returncode == 0
        first.stop()  # an old handle means the old cluster, not the one that has its name now
        assert loaded(name).processes["etcd"].alive

    def test_one_that_fails_shows_the_end_of_the_right_log(self, name: str) -> None:
        with pytest.raises(HarnessError) as failure:
            start(name, options=Options(api_server_flags=("--no-such-flag",)), own=True)

        first, *rest = str(failure.value).splitlines()
        assert first == "kube-apiserver ended while it was starting."
        assert rest[0].endswith("logs/kube-apiserver.log:")
        assert "unknown flag: --no-such-flag" in "\n".join(rest)
        assert name not in states.names()

    def test_a_process_of_whose_threads_one_still_runs_has_not_ended(self) -> None:
        """It holds its port: an API server that was begun anew found its own taken."""
        program = [
            "import ctypes, threading, time",
            "threading.Thread(target=time.sleep, args=(60,)).start()",
            "print('ready', flush=True)",
            "ctypes.CDLL(None).pthread_exit(None)",
        ]
        command = [sys.executable, "-c", "\n".join(program)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as half:
            assert half.stdout
            assert half.stdout.readline() == "ready\n"
            stat = Path(f"/proc/{half.pid}/stat")
            eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
            known = processes.known(half.pid)

            assert known.alive
            kill([known])
            assert not known.alive

    def test_a_process_that_is_not_ours_is_not_ended(self) -> None:
        with subprocess.Popen(["sleep", "60"]) as stranger:
            kill([Process(pid=stranger.pid, started="another boot:1")])

            assert stranger.poll() is None
            stranger.kill()


class TestChoice:
    def test_a_named_kubeconfig_comes_first(
        self, own_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        given = tmp_path / "given"
        given.write_bytes(own_cluster.kubeconfig.read_bytes())
        monkeypatch.setenv("EVENKEEL_TEST_KUBECONFIG", str(given))
        monkeypatch.setenv("PATH", str(own_cluster.kubeconfig.parent / "bin"))

        found = start()

        assert (found.kind, found.kubeconfig, found.server) == ("named", given, own_cluster.server)
        assert found.kubectl("get", "namespace", "default").returncode == 0
        found.stop()
        assert found.kubectl("get", "namespace", "default").returncode == 0
        with pytest.raises(HarnessError, match="needs a control plane of our own"):
            found.stop_api_server()

    def test_a_named_kubeconfig_that_is_missing_is_not_replaced(self, tmp_path: Path) -> None:
        with pytest.raises(HarnessError, match="is not there"):
            start(kubeconfig=tmp_path / "none")

    def test_the_current_context_is_never_used(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
    ) -> None:
        monkeypatch.setenv("KUBECONFIG", str(tmp_path / "production"))

        assert start(name, own=True).kubeconfig == kubeconfig(name)

    def test_an_old_kubectl_on_the_path_is_not_used(
        self, fake: Callable[..., Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        fake("kubectl", """echo '{"clientVersion": {"gitVersion": "v1.29.14"}}'""")

        assert existing.kubectl() == str(build.built("controlplane") / "kubectl")
        assert "is older than 1.30" in capsys.readouterr().err

    def test_a_kubectl_on_the_path_that_is_new_enough_is_used(
        self, fake: Callable[..., Path]
    ) -> None:
        calls = fake("kubectl", """echo '{"clientVersion": {"gitVersion": "v1.30.0"}}'""")

        assert existing.kubectl() == str(calls.with_suffix(""))


class TestBuild:
    @pytest.fixture(autouse=True)
    def cache(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        return tmp_path / "cache" / "evenkeel"

    @pytest.fixture
    def tiny(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
        """A part of one line, so that a build takes seconds."""
        module = tmp_path / "tiny"
        module.mkdir()
        (module / "go.mod").write_text("module tiny\n\ngo 1.26.0\n")
        (module / "go.sum").touch()
        (module / "main.go").write_text('package main\n\nfunc main() { println("hello") }\n')
        part = build.Part(version="v1", about="seconds", module=module, names=("alias",))
        monkeypatch.setitem(build.PARTS, "tiny", part)
        return module

    def test_happens_once_and_leaves_only_the_programs(
        self, tiny: Path, cache: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with ThreadPoolExecutor() as both:
            first, second = both.map(lambda _: build.built("tiny"), range(2))

        assert first == second
        assert sorted(path.name for path in first.iterdir()) == ["alias", "tiny"]
        run = subprocess.run([first / "alias"], capture_output=True, text=True, check=True)
        assert run.stderr == "hello\n"
        assert capsys.readouterr().err.count("building tiny v1, once") == 1
        assert sorted(path.name for path in cache.iterdir()) == ["tiny-v1", "tiny.log"]

        (tiny / "main.go").write_text("package main\n\nfunc main() { nonsense }\n")
        with pytest.raises(HarnessError, match=r"(?s)building tiny failed.*undefined: nonsense"):
            build.built("tiny")
        assert [path.name for path in (cache / "tiny-v1").glob("[!.]*")] == [first.name]


class TestFakeNode:
    @pytest.mark.parametrize(
        ("fate", "status"),
        [
            ("succeed", {"succeeded": 1}),
            ("fail", {"failed": 1}),
            ("hang", {"active": 1, "ready": 1}),
            ("pending", {"active": 1, "ready": 0}),
        ],
    )
    def test_gives_a_job_the_end_that_its_pod_names(
        self, kwok_cluster: Cluster, namespace: str, fate: str, status: dict[str, int]
    ) -> None:
        kwok_cluster.kubectl("apply", "-f", "-", input=json.dumps(job(namespace, fate)))

        eventually(lambda: counts(kwok_cluster, namespace) == status)

        if fate == "fail":
            pods = json_of(kwok_cluster, namespace, "pods")["items"]
            ended = pods[0]["status"]["containerStatuses"][0]["state"]["terminated"]
            assert ended["exitCode"] == 1
        kwok_cluster.kubectl("-n", namespace, "delete", "job", "probe", "--timeout=90s")
        eventually(lambda: not json_of(kwok_cluster, namespace, "pods")["items"])

    def test_runs_a_pod_as_long_as_it_says(self, kwok_cluster: Cluster, namespace: str) -> None:
        slow = job(namespace, "succeed")
        annotations = slow["spec"]["template"]["metadata"]["annotations"]
        annotations["test.evenkeel.dev/runs-for"] = "15s"  # long enough to be seen
        kwok_cluster.kubectl("apply", "-f", "-", input=json.dumps(slow))

        eventually(lambda: counts(kwok_cluster, namespace) == {"active": 1, "ready": 1})
        eventually(lambda: counts(kwok_cluster, namespace) == {"succeeded": 1})


def job(namespace: str, fate: str) -> dict[str, Any]:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "probe", "namespace": namespace},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": {"test.evenkeel.dev/fate": fate}},
                "spec": {
                    "restartPolicy": "Never",
                    "containers": [{"name": "work", "image": "none"}],
                },
            },
        },
    }


def counts(cluster: Cluster, namespace: str) -> dict[str, int]:
    """Of the Job's Pods, by what became of them; only the numbers that say something."""
    status = json_of(cluster, namespace, "job", "probe").get("status", {})
    found = {key: status[key] for key in ("active", "succeeded", "failed") if status.get(key)}
    return {**found, "ready": status.get("ready", 0)} if "active" in found else found


def json_of(cluster: Cluster, namespace: str, *what: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        cluster.kubectl("-n", namespace, "get", *what, "-o", "json").stdout
    )
    return found


def eventually(true: Callable[[], bool], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"not so after {seconds} seconds"
        time.sleep(0.1)


def loaded(name: str) -> State:
    found = states.load(name)
    assert found
    return found


def kubeconfig(name: str) -> Path:
    return states.directory(name) / "kubeconfig"


def assert_nothing_is_left(cluster: State) -> None:
    assert not [name for name, process in cluster.processes.items() if process.alive]
    assert cluster.name not in states.names()
    assert this_process().alive


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.cluster.harness", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
