"""The blocks that need a cluster, typed as they stand into a shell, on a real API server.

Each test has a namespace and an operator of its own: what the operator says of the load depends on
all schedules that it knows.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import yaml
from tests.cluster.operator_process import environment
from tests.cluster.world import eventually, manifest, seconds, template
from tests.docs.blocks import REPOSITORY, block
from tests.docs.reader import Reader
from tests.unit.test_words import table

EVERY_TEN_SECONDS = {"every": "10s", "offset": "0s"}
YEARLY = {"schedule": "0 3 1 1 *"}  # no due time comes between the commands of a test


def test_the_first_scheduled_job_is_placed(reader: Reader) -> None:
    reader.has_file("sweep.yaml", block("file sweep.yaml").text)
    try:
        reader.follows(block("first"), within_s=45)
    except AssertionError:
        # The first run is at least ten seconds away. A machine that took longer shows it too.
        if not reader.world.jobs(reader.ns):
            raise
        reader.types("kubectl delete sj sweep && kubectl delete events --all")
        reader.follows(block("first"))
    reader.follows(block("refused"))


def test_a_reader_sees_why_a_due_time_was_not_run(reader: Reader) -> None:
    """As the page says: every 10 seconds, and a run takes longer, but no 20 on a busy machine."""
    reader.world.create(
        reader.ns,
        "slow",
        interval=EVERY_TEN_SECONDS,
        concurrencyPolicy="Forbid",
        jobTemplate=template(runs_for="12s"),
    )
    reader.follows(block("why"))


def test_a_cron_job_is_handed_over_and_back(reader: Reader) -> None:
    world, ns = reader.world, reader.ns
    cron_job = {**manifest("backup", **YEARLY), "apiVersion": "batch/v1", "kind": "CronJob"}
    reader.has_file("backup-cronjob.yaml", yaml.safe_dump(cron_job))
    reader.has_file("backup.yaml", yaml.safe_dump(manifest("backup", **YEARLY)))
    reader.types("kubectl apply -f backup-cronjob.yaml")
    reader.types("kubectl create job backup-29384160 --from=cronjob/backup")

    for command in block("handover").commands:
        reader.types(command.line)
    assert reader.types("kubectl get cronjob -o name") == ""
    assert world.condition(ns, "backup", "Ready")["status"] == "True"
    assert reader.types("kubectl get jobs -o name") == "job.batch/backup-29384160\n"

    for command in block("handback").commands:
        reader.types(command.line)
    assert reader.types("kubectl get sj -o name") == ""
    assert reader.types("kubectl get cronjob -o jsonpath={.items[*].spec.suspend}") == "false"
    assert reader.types("kubectl get jobs -o name") == "job.batch/backup-29384160\n"


def test_a_container_can_read_the_due_time_in_both_ways(reader: Reader) -> None:
    """The annotations that the pages name are on the Pod, and no field of the manifest is wrong."""
    world, ns = reader.world, reader.ns
    sweep = yaml.safe_load(block("file sweep.yaml").text)
    (env,) = yaml.safe_load(block("downward").text).values()
    (container,) = sweep["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    names = [each["valueFrom"]["fieldRef"]["fieldPath"] for each in [*container["env"], *env]]
    container["env"] += [{**each, "name": f"{each['name']}_AS_CRONJOB"} for each in env]
    spec = {**sweep["spec"], "interval": EVERY_TEN_SECONDS, "timeZone": "Europe/Berlin"}
    world.create(ns, "sweep", **spec)

    def annotations() -> list[dict[str, str]]:
        pods = world.items(f"/api/v1/namespaces/{ns}/pods")
        return [pod["metadata"]["annotations"] for pod in pods]

    found = eventually(annotations, "the Pod of a run")[0]
    keys = [re.fullmatch(r"metadata\.annotations\['(.+)'\]", name) for name in names]
    utc, local = (found[key[1]] for key in keys if key)
    assert utc.endswith("Z")
    assert not local.endswith("Z")
    assert seconds(local) == seconds(utc)
    eventually(
        lambda: world.condition(ns, "sweep", "TemplateAccepted")["status"] == "True",
        "a dry run accepts it",
        within_s=150,
    )


def test_the_operator_runs_outside_the_cluster(reader: Reader) -> None:
    """Up to its last command, which goes on until Ctrl-C."""
    reader.operator.terminate(within_s=90)
    lines = [command.line for command in block("outside").commands]
    script = "\n".join(["set -e", *lines]).replace(
        "path/to/kubeconfig", str(reader.directory / "kubeconfig")
    )
    kubectl = Path(reader.world.cluster.kubectl_program).parent
    ours = environment({"NAMESPACES": reader.ns, "HEALTH_LISTEN": "127.0.0.1:0"})
    with subprocess.Popen(
        ["bash", "-c", script],
        cwd=REPOSITORY,
        env={
            **ours,
            "PATH": f"{kubectl}{os.pathsep}{ours['PATH']}",
            "KUBECONFIG": str(reader.directory / "kubeconfig"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            reader.world.create(reader.ns, "nightly", **YEARLY)
            eventually(
                lambda: reader.world.status(reader.ns, "nightly").get("nextRunTime"),
                "it schedules",
            )
        finally:
            os.killpg(process.pid, signal.SIGINT)
            said, _ = process.communicate(timeout=60)
    assert "customresourcedefinition" in said
    assert "Traceback" not in said
    reader.operator.start()


def test_the_table_of_metrics_lists_every_series(reader: Reader) -> None:
    told = re.findall(
        r"`((?:evenkeel|scheduler)_\w+)(?:\{(\w+)\})?`", table("metrics.md", "Metrics")
    )
    _, text = reader.operator.get("/metrics")
    served = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    assert {name for name, _ in told} == served
    assert len(told) == len(served)
    for name, label in told:
        labels = set(re.findall(rf"^{name}\{{(\w+)=", text, re.MULTILINE))
        assert labels <= {label}, name
