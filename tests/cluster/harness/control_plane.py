"""A control plane of our own: etcd, API server, controller manager, and a scheduler for Pods.

Called by choose.py under the lock of the cluster's name. All of it runs from one program
(build.py), listens on loopback and lives in one private directory (state.py), so several run side
by side; a real node (node.py) has namespaces of its own (enclosure.py), and the API server listens
on its private address instead. Not guaranteed: without a node, Jobs get Pods that nobody runs.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from . import (
    build,
    components,
    enclosure,
    images,
    kwok,
    locks,
    node,
    ports,
    processes,
    state,
)
from .api import Api
from .cluster import Cluster, Options, Pods
from .pki import Authority, Certificate, write_kubeconfig
from .report import HarnessError
from .state import State

API_SERVER = "kube-apiserver"
START_SECONDS = 180  # alone on two cores it takes 3 s; a machine full of tests is far slower


def asks(pods: Pods, options: Options) -> dict[str, Any]:
    """What the cluster will be, for comparing; builds the programs, which may take minutes."""
    ours = build.built("controlplane")
    programs = {name: str(ours / name) for name in ("controlplane", "kubectl")}
    if pods == "kwok":
        programs["kwok"] = str(build.built("kwok") / "kwok")
    if pods == "node":
        programs["containerd"] = str(build.built("containerd"))
    return {"pods": pods, "options": dataclasses.asdict(options), "programs": programs}


def start(found: State) -> Cluster:
    """Brings up what a fresh state asks for."""
    cluster = BuiltCluster(found)
    cluster.lay_out()
    cluster.run()
    return cluster


def usable(found: State) -> bool:
    """Whether everything still runs, but for what a test has stopped on purpose."""
    return all(p.alive or name in found.stopped for name, p in found.processes.items())


def attach(found: State) -> Cluster:
    cluster = BuiltCluster(found)
    if found.stopped:
        cluster.bring_back()
    return cluster


def reserve_port(found: State) -> None:
    """Writes a free port into the state before anybody else may look for one."""
    with locks.held(state.root() / "ports.lock", waiting_for="another cluster's choice of a port"):
        others = [other for name in state.names() if (other := state.load(name))]
        found.port = ports.free(taken={other.port for other in others})
        found.save()


class BuiltCluster(Cluster):
    def __init__(self, found: State) -> None:
        self._state = found
        self._directory = found.directory
        self._options = Options(**found.asked["options"])
        self._authority = Authority(self._directory / "pki")
        server = f"https://{found.address}:{found.port}"
        super().__init__(
            kind="built",
            pods=found.asked["pods"],
            kubeconfig=self._directory / "kubeconfig",
            server=server,
            kubectl=self._directory / "bin" / "kubectl",
        )
        self.audit_log = self._directory / "audit.log"

    def lay_out(self) -> None:
        """Certificates, kubeconfigs and the kubectl beside them."""
        reserve_port(self._state)
        if self.pods == "node":
            enclosure.build(self._state)
        address = self._state.address
        self.server = f"https://{address}:{self._state.port}"
        self._authority.create()
        self._authority.server(
            "serving",
            [
                "DNS:localhost",
                "DNS:kubernetes",
                "DNS:kubernetes.default",
                "DNS:kubernetes.default.svc",
                f"IP:{components.FIRST_SERVICE}",
                *sorted({"IP:127.0.0.1", f"IP:{self._options.host_address}", f"IP:{address}"}),
            ],
        )
        self._authority.signing_key("tokens")
        self._authority.client("admin", "admin", ["system:masters"])
        self._write_kubeconfig(self.kubeconfig, self._pair("admin"))
        for component in ("kube-controller-manager", "kube-scheduler"):
            user = self._authority.client(component, f"system:{component}")
            self._write_kubeconfig(self._directory / f"{component}.kubeconfig", user)
        if self.pods == "node":
            self._lay_out_node()
        components.write_audit_policy(self._directory)
        (self._directory / "bin").mkdir()
        (self._directory / "bin" / "kubectl").symlink_to(self._program("kubectl"))

    def run(self) -> None:
        profile = self._options.profile
        self._spawn(components.etcd(self._directory))
        self._spawn_api_server()  # it waits for etcd by itself
        self._spawn(
            components.controller_manager(
                self._directory,
                profile=profile,
                authority=self._authority,
                tokens=self._pair("tokens", public=".pub"),
            )
        )
        # Without this account no Pod can be created in the default namespace.
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._wait("kube-controller-manager", lambda api: api.answers(account))
        if self.pods != "none":
            self._spawn(components.scheduler(self._directory, profile=profile))
        if self.pods == "node":
            self._run_node()
        if self.pods == "kwok":
            kwok.write_config(self._directory, pod_seconds=self._options.pod_seconds)
            self.kubectl("apply", "-f", "-", input=kwok.NODE)
            self._spawn(kwok.command(self._directory, self.kubeconfig), program="kwok")
            self._wait("kwok", lambda api: api.node_ready(kwok.NODE_NAME))

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        digest = hashlib.sha256("\0".join([user, *groups]).encode()).hexdigest()[:16]
        path = self._directory / f"user-{digest}.kubeconfig"
        if not path.exists():
            # A name of its own: two test workers may ask for one user at the same moment.
            name = f"user-{digest}-{secrets.token_hex(4)}"
            self._write_kubeconfig(path, self._authority.client(name, user, groups))
        return path

    def load_image(self, archive: Path) -> None:
        images.load(
            [
                *enclosure.inside(self._state),
                *node.ctr(self._state, "images", "import", str(archive)),
            ],
            environment=node.environment(self._state),
            file=archive,
        )

    def stop_api_server(self) -> None:
        with self._changing():
            self._state.stopped = [API_SERVER]
            self._state.save()  # before the deed, or another caller takes the cluster for a wreck
            processes.kill([self._state.processes[API_SERVER]])

    def start_api_server(self) -> None:
        with self._changing():
            self.bring_back()

    def bring_back(self) -> None:
        """Under the lock of the name: starts what a test has stopped."""
        if not self._state.processes[API_SERVER].alive:
            self._spawn_api_server()
        self._state.stopped = []
        self._state.save()

    def stop(self) -> None:
        with state.newest(self._state) as found:
            if found:
                destroy(found)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The newest state, and nobody else changes it."""
        with state.newest(self._state) as found:
            if not found:
                raise HarnessError(f"the cluster {self._state.name!r} has been stopped.")
            self._state = found
            yield

    def _lay_out_node(self) -> None:
        authority = self._authority
        for component, user, groups in (
            ("kubelet", f"system:node:{node.name(self._state)}", ["system:nodes"]),
            ("kube-proxy", "system:kube-proxy", []),
        ):
            pair = authority.client(component, user, groups)
            self._write_kubeconfig(self._directory / f"{component}.kubeconfig", pair)
        authority.client("kubelet-client", "kube-apiserver", ["system:masters"])
        node.write_files(self._state, authority=authority.certificate)

    def _run_node(self) -> None:
        found, place = self._state, enclosure.inside(self._state)
        variables = node.environment(found)
        self._spawn(node.containerd(found), program="", place=place, environment=variables)
        # The sandbox's image must be there before the kubelet starts the first Pod.
        archive = images.busybox(self._directory)
        self._wait("containerd", lambda _: self._imports(archive))
        self._spawn(node.kubelet(found), place=place, environment=variables)
        self._spawn(node.kube_proxy(found), place=place, environment=variables)
        self._wait("kubelet", lambda api: api.node_ready(node.name(found)))
        self._wait("kube-proxy", lambda _: node.proxy_ready(found))

    def _imports(self, archive: Path) -> bool:
        try:
            self.load_image(archive)
        except HarnessError:
            return False  # containerd does not listen yet; a better reason is in its log
        return True

    def _spawn_api_server(self) -> None:
        command = components.api_server(
            self._directory,
            port=self._state.port,
            options=self._reachable(),
            authority=self._authority,
            serving=self._pair("serving"),
            tokens=self._pair("tokens", public=".pub"),
            kubelet_client=self._pair("kubelet-client") if self.pods == "node" else None,
        )
        inside = self.pods == "node"  # by its network only: the node and its Pods must reach it
        place = enclosure.inside(self._state, network_only=True) if inside else []
        self._spawn(command, place=place)
        self._wait(API_SERVER, lambda api: api.answers("/readyz"))

    def _reachable(self) -> Options:
        """Loopback for us alone; a real node's address, which only this machine has a way to."""
        if self.pods != "node":
            return self._options
        address = self._state.address
        return dataclasses.replace(self._options, bind_address=address, host_address=address)

    def _spawn(
        self,
        command: Sequence[str],
        *,
        program: str = "controlplane",
        place: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`program`: one of ours; empty: `command` names it. `place`: a prefix for `command`."""
        name = command[0]
        argv = command if program in ("controlplane", "") else command[1:]
        self._state.processes[name] = processes.spawn(
            [*place, *([self._program(program)] if program else []), *argv],
            log=self._log(name),
            environment={**_environment(), **(environment or {})},
        )
        self._state.save()  # at once: after a crash only what is written here is found again

    def _wait(self, name: str, ready: Callable[[Api], bool]) -> None:
        api = Api(
            address=self._state.address,
            port=self._state.port,
            authority=self._authority.certificate,
            user=self._pair("admin"),
        )
        processes.wait_until(
            lambda: ready(api),
            what=name,
            process=self._state.processes[name],
            log=self._log(name),
            seconds=START_SECONDS,
        )

    def _program(self, name: str) -> str:
        path: str = self._state.asked["programs"][name]
        return path

    def _log(self, name: str) -> Path:
        return self._directory / "logs" / f"{name}.log"

    def _pair(self, name: str, *, public: str = ".crt") -> Certificate:
        pki = self._authority.directory
        return Certificate(certificate=pki / f"{name}{public}", key=pki / f"{name}.key")

    def _write_kubeconfig(self, path: Path, user: Certificate) -> Path:
        authority = self._authority.certificate
        return write_kubeconfig(path, server=self.server, authority=authority, user=user)

    def _environment(self) -> dict[str, str]:
        # kubectl remembers what a server can do; at a reused port that would be another server.
        return {**super()._environment(), "KUBECACHEDIR": str(self._directory / "kubectl-cache")}


def destroy(found: State) -> None:
    """Ends the processes, then removes the directory: the reverse would lose the pids."""
    processes.kill(found.guests.values())
    enclosure.end(found)
    processes.kill(found.processes.values())
    enclosure.dismantle(found)
    state.remove(found.name)


def _environment() -> dict[str, str]:
    # etcd takes every ETCD_... variable for a flag, and a KUBECONFIG may name a real cluster.
    return {k: v for k, v in os.environ.items() if not k.startswith(("ETCD_", "KUBE"))}
