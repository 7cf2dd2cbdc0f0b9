"""Kubernetes' own end-to-end specs of CronJob, against CronJobs or against ScheduledJobs.

    make conformance            # ScheduledJobs, through a proxy that only renames
    make conformance STOCK=1    # CronJobs, for comparison

The specs are Kubernetes' own code (harness/cronjob_specs), unchanged. Each runs in a process and a
namespace of its own, all at the same time, because most of them wait for minutes. Called by the
command line and by test_cronjob_specs.py. Not guaranteed: anything that Kubernetes does not test.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.cluster.harness import Cluster, HarnessError, build, images, start
from tests.cluster.harness.report import say
from tests.cluster.operator_process import operator
from tests.cluster.renaming_proxy import renaming_proxy

LONGEST_S = 900  # no spec waits longer than 5 minutes for one thing, and few do it twice
MESSAGE_LINES = 8
INDENT = " " * 17  # below the names
BUSYBOX = "/busybox:"  # in the names of the images that Kubernetes' specs may run
SHELL = ("sh",)  # what that image does without a command: it ends at once

# The API server drops metadata that is written through the /status of a custom resource.
IMPOSSIBLE = "should support CronJob API operations"
STEP = "patchedstatus"  # the annotation that is written there
_TAG = re.compile(r" \[[^]]*\]")  # [Slow], [Conformance]


@dataclass(frozen=True)
class Outcome:
    spec: str
    passed: bool
    seconds: float
    message: str
    """Why it failed, in the words of the spec."""

    @property
    def cannot_pass(self) -> bool:
        """Where no custom resource could pass: it failed there, and passed every step before."""
        return self.spec == IMPOSSIBLE and STEP in self.message


def program() -> Path:
    return build.built("cronjob-specs") / "cronjob-specs"


def give_image(cluster: Cluster) -> None:
    """The image that the specs' Jobs name, to a node that cannot pull it."""
    if cluster.kind == "named":
        return
    listed = subprocess.run(
        [program(), "--list-images"], capture_output=True, text=True, check=True, env=_environment()
    )
    names = sorted({line for line in listed.stdout.splitlines() if BUSYBOX in line})
    with tempfile.TemporaryDirectory() as scratch:
        cluster.load_image(images.busybox(Path(scratch), names=names, command=SHELL))


@contextmanager
def scheduled_jobs(cluster: Cluster, directory: Path) -> Iterator[Path]:
    """A kubeconfig by which CronJobs are ScheduledJobs, and an operator that runs them."""
    cluster.install_crd()
    with (
        operator(cluster.kubeconfig, directory=directory),
        renaming_proxy(cluster, directory=directory) as kubeconfig,
    ):
        yield kubeconfig


def specs(directory: Path) -> list[str]:
    """The names of Kubernetes' specs of CronJob, in the order of their source."""
    report = directory / "names.json"
    command = [program(), "--ginkgo.dry-run", "--ginkgo.focus=CronJob", *_quiet(report)]
    # The framework wants to know a server, also where it asks none.
    subprocess.run([*command, "--host=http://127.0.0.1:1"], check=True, env=_environment(),
                   stdout=subprocess.DEVNULL)  # fmt: skip
    found = sorted(_ran(report), key=lambda spec: int(spec["LeafNodeLocation"]["LineNumber"]))
    return [_TAG.sub("", spec["LeafNodeText"]) for spec in found]


def run(kubeconfig: Path, names: Sequence[str], directory: Path) -> list[Outcome]:
    """All of them at once; what each printed stays in the directory."""
    with ExitStack() as until_the_end:
        begun = [
            until_the_end.enter_context(_begun(kubeconfig, name, directory / f"spec-{number}"))
            for number, name in enumerate(names)
        ]
        deadline = time.monotonic() + LONGEST_S
        try:
            for process in begun:
                process.wait(timeout=deadline - time.monotonic())
        finally:
            for process in begun:
                process.kill()
    return [_outcome(name, directory / f"spec-{number}") for number, name in enumerate(names)]


def _begun(kubeconfig: Path, name: str, files: Path) -> subprocess.Popen[bytes]:
    with files.with_suffix(".log").open("wb") as log:
        return subprocess.Popen(
            [
                *(program(), f"--kubeconfig={kubeconfig}"),
                # Its own default is protobuf, which no custom resource speaks.
                "--kube-api-content-type=application/json",
                f"--ginkgo.focus=CronJob {re.escape(name)}",
                *_quiet(files.with_suffix(".json")),
            ],
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def _outcome(name: str, files: Path) -> Outcome:
    report, log = files.with_suffix(".json"), files.with_suffix(".log")
    if not report.exists():
        return Outcome(name, False, 0, f"it ended without a report: see {log}")
    (ran,) = _ran(report)
    failure = ran.get("Failure") or {}
    passed = ran["State"] == "passed"
    return Outcome(name, passed, ran["RunTime"] / 1e9, str(failure.get("Message", "")))


def _ran(report: Path) -> list[dict[str, Any]]:
    """What ginkgo reports of each spec that it chose."""
    (suite,) = json.loads(report.read_text())
    return [
        each
        for each in suite["SpecReports"]
        if each["LeafNodeType"] == "It" and each["State"] != "skipped"
    ]


def _quiet(report: Path) -> list[str]:
    return ["--ginkgo.no-color", "--ginkgo.silence-skips", f"--ginkgo.json-report={report}"]


def _environment() -> dict[str, str]:
    # KUBECONFIG and KUBE_TEST_REPO would lead to other clusters and other images.
    return {key: text for key, text in os.environ.items() if not key.startswith("KUBE")}


def table(outcomes: Sequence[Outcome]) -> str:
    lines = []
    for each in outcomes:
        word = "passed" if each.passed else "failed"
        lines.append(f"{word}  {each.seconds:5.0f} s  {each.spec}")
        if each.cannot_pass:
            lines.append(f"{INDENT}No custom resource can pass it: see docs/cronjob.md.")
        else:
            lines += [INDENT + line for line in each.message.splitlines()[:MESSAGE_LINES]]
    count = sum(each.passed for each in outcomes)
    return "\n".join([*lines, f"{count} of {len(outcomes)} passed"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.cronjob_specs")
    parser.add_argument("--stock", action="store_true", help="against CronJobs themselves")
    stock = parser.parse_args(arguments).stock
    try:
        program()
        directory = Path(tempfile.mkdtemp(prefix="evenkeel-cronjob-specs-"))
        cluster = start(f"specs-{os.getpid()}", "node")
        with ExitStack() as until_the_end:
            until_the_end.callback(cluster.stop)
            give_image(cluster)
            kubeconfig = cluster.kubeconfig
            if not stock:
                kubeconfig = until_the_end.enter_context(scheduled_jobs(cluster, directory))
            names = specs(directory)
            say(f"{len(names)} specs, about 5 minutes. Logs: {directory}")
            outcomes = run(kubeconfig, names, directory)
    except HarnessError as error:
        say(str(error))
        return 1
    print(table(outcomes))
    allowed = [each for each in outcomes if each.passed or (each.cannot_pass and not stock)]
    return 0 if allowed == outcomes else 1


if __name__ == "__main__":
    sys.exit(main())
