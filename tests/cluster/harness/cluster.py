"""The one face of every cluster, whoever made it, and the wishes one may have about it.

Made by choose.py; called by tests. Not guaranteed here: what only a control plane of our own can
do (other users, an audit log, faults); asking another cluster for it is an error with a sentence.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .report import HarnessError

CRDS = Path(__file__).parents[3] / "crds"
OUR_CRDS = tuple(sorted(path.stem for path in CRDS.glob("*.yaml")))
"""Their names, which are those of their files."""

SERVED_SECONDS = 180

GONE_SECONDS = 300
LOOK_AGAIN_SECONDS = 5

Pods = Literal["none", "kwok", "node"]  # what runs them: nothing, a fake node, a real one
Profile = Literal["default", "tuned"]
Kind = Literal["named", "kind", "built"]


@dataclass(frozen=True, slots=True)
class Options:
    """Wishes about a control plane of our own; other clusters are taken as they are."""

    # Flags of the controller manager and the scheduler. "tuned": as fast as the machine goes.
    # "default": what users have, for measuring against: three Jobs a second, and 5 s more to start.
    profile: Profile = "tuned"
    # Shows what OpenShift would refuse: an owner reference to what one may not update.
    owner_references_permission_enforcement: bool = True
    # Where the API server listens, and the address by which nodes and Pods would reach it.
    bind_address: str = "127.0.0.1"
    host_address: str = "127.0.0.1"
    # How long a Job's Pod runs on kwok's fake node, unless its annotation says otherwise.
    pod_seconds: float = 0.2
    # More flags of the API server, for a test about one of them.
    api_server_flags: tuple[str, ...] = ()


DEFAULT = Options()


class Cluster:
    kind: Kind
    pods: Pods
    kubeconfig: Path  # of an administrator
    server: str
    audit_log: Path | None = None  # JSON lines: who did what to evenkeel.dev and batch objects

    def __init__(
        self, *, kind: Kind, pods: Pods, kubeconfig: Path, server: str, kubectl: Path | str
    ) -> None:
        self.kind = kind
        self.pods = pods
        self.kubeconfig = kubeconfig
        self.server = server
        self.kubectl_program = str(kubectl)

    def kubectl(
        self, *args: str, input: str | None = None, check: bool = True, timeout: float = 180
    ) -> subprocess.CompletedProcess[str]:
        """Runs kubectl as the administrator; with `check`, its refusal is an error with its words.

        Another `--kubeconfig` among the arguments wins over the administrator's."""
        try:
            done = subprocess.run(
                [self.kubectl_program, "--kubeconfig", str(self.kubeconfig), *args],
                input=input,
                # Without an input kubectl must not wait for the terminal's.
                stdin=subprocess.DEVNULL if input is None else None,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout,
                env=self._environment(),
            )
        except subprocess.TimeoutExpired as error:
            raise HarnessError(
                f"`kubectl {' '.join(args)}` took more than {timeout:.0f} seconds."
            ) from error
        if check and done.returncode != 0:
            raise HarnessError(f"`kubectl {' '.join(args)}` failed: {done.stderr.strip()}")
        return done

    def install_crd(self) -> None:
        """Our resources, until the server takes objects of each and kubectl knows their fields."""
        self.kubectl("apply", "-f", str(CRDS))
        deadline = time.monotonic() + SERVED_SECONDS
        # Not `kubectl wait`: it fails on a CRD so new that it has no conditions yet, and returns
        # before objects are taken. Not `get` alone: until the schema is published as well, kubectl
        # validates by rules of its own.
        for name in OUR_CRDS:
            for question in (("get", name), ("explain", f"{name.partition('.')[0]}.spec")):
                while (answer := self.kubectl(*question, check=False)).returncode != 0:
                    if time.monotonic() > deadline:
                        raise HarnessError(f"{name} is not served: {answer.stderr.strip()}")
                    time.sleep(0.1)

    def remove_crds(self, *names: str) -> None:
        """These, or ours, with all their objects; until they are gone."""
        wanted = names or OUR_CRDS
        self.kubectl("delete", "crd", *wanted, "--ignore-not-found", "--wait=false")
        self.await_crds_gone(*wanted)

    def await_crds_gone(self, *names: str) -> None:
        """Wait until the deletion of these CRDs, which has begun, is carried out."""
        wanted = ("crd", *(names or OUR_CRDS), "--ignore-not-found")
        begun = time.monotonic()
        look_again_at = begun + LOOK_AGAIN_SECONDS
        while left := self.kubectl("get", *wanted, "-o", "name").stdout.split():
            now = time.monotonic()
            if now > begun + GONE_SECONDS:
                conditions = "jsonpath={..status.conditions}"
                said = self.kubectl("get", *wanted, "-o", conditions, check=False).stdout
                raise HarnessError(f"{', '.join(left)} not gone: {said}")
            if now > look_again_at:
                # The API server deletes the objects first. Where that fails, which it may as soon
                # after a change of the CRD, the next try comes minutes later, or with any write.
                look_again_at = now + LOOK_AGAIN_SECONDS
                written = f"evenkeel.test/look-again={now}"
                self.kubectl("annotate", "--overwrite", *left, written, check=False)
            time.sleep(0.1)

    def audited(self, about: str) -> Iterator[dict[str, Any]]:
        """Who did what to evenkeel.dev and batch objects, by the lines that hold this text."""
        if self.audit_log is None:
            raise self._needs_our_own("an audit log")
        with self.audit_log.open() as lines:
            for line in lines:
                # The log is written behind: its last line may be there by half.
                if about in line and line.endswith("\n"):
                    yield json.loads(line)

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig by which the API server knows its bearer as `user`, in `groups`."""
        raise self._needs_our_own(f"a certificate for {user}")

    def stop_api_server(self) -> None:
        """As a crash does: at once, connections cut, what was asked last perhaps done or not."""
        raise self._needs_our_own("stopping the API server")

    def start_api_server(self) -> None:
        """The same address, the same data; returns when it is ready."""
        raise self._needs_our_own("starting the API server")

    def load_image(self, archive: Path) -> None:
        """Gives the real node an image (images.py) that no registry has."""
        raise HarnessError(f"a {self.kind} cluster takes its images from registries only.")

    def stop(self) -> None:
        """Ends what the harness started; a cluster that was named stays as it is."""

    def _environment(self) -> dict[str, str]:
        # A user's kubectl preferences could change what commands mean.
        return {**os.environ, "KUBERC": "off"}

    def _needs_our_own(self, what: str) -> HarnessError:
        return HarnessError(f"{what} needs a control plane of our own: start(own=True).")
