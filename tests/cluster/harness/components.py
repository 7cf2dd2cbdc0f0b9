"""The command line of every component of a control plane of our own, and its audit policy.

Called by control_plane.py; pure but for the audit policy's file. Every path and port is given by
the caller, so control planes run side by side. Not guaranteed: anything that production would
want; data is not even flushed to disk.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .cluster import Options, Profile
from .pki import Authority, Certificate

SERVICE_RANGE = "10.96.0.0/16"
FIRST_SERVICE = "10.96.0.1"  # the address that Pods know as kubernetes.default
DNS_SERVICE = "10.96.0.10"  # where nothing answers

# "tuned" is bounded by the machine instead of by the client's own rate limit.
CONTROLLER_MANAGER: dict[Profile, tuple[str, ...]] = {
    "default": (),
    "tuned": (
        "--kube-api-qps=5000",
        "--kube-api-burst=5000",
        "--concurrent-cron-job-syncs=50",
        "--concurrent-job-syncs=50",
    ),
}
SCHEDULER: dict[Profile, tuple[str, ...]] = {
    "default": (),
    "tuned": ("--kube-api-qps=1000", "--kube-api-burst=2000"),
}


def etcd(directory: Path) -> list[str]:
    socket = f"unix://{directory}/etcd.sock"  # in a private directory, and no port to collide
    unused = "http://localhost:2380"  # never dialled by a single member, but it must look like one
    return [
        "etcd",
        f"--name={directory.name}",
        f"--data-dir={directory}/etcd",
        f"--listen-client-urls={socket}",
        f"--advertise-client-urls={unused}",
        f"--listen-peer-urls=unix://{directory}/peer.sock",
        f"--initial-advertise-peer-urls={unused}",
        f"--initial-cluster={directory.name}={unused}",
        "--unsafe-no-fsync",  # a machine's disk must not decide whether a test is in time
        "--quota-backend-bytes=8589934592",  # the default, 2 GB, ends a load test with "no space"
        "--log-level=warn",
    ]


def api_server(
    directory: Path,
    *,
    port: int,
    options: Options,
    authority: Authority,
    serving: Certificate,
    tokens: Certificate,
    kubelet_client: Certificate | None = None,
) -> list[str]:
    command = [
        "kube-apiserver",
        f"--etcd-servers=unix://{directory}/etcd.sock",
        f"--bind-address={options.bind_address}",
        f"--advertise-address={options.host_address}",
        f"--secure-port={port}",
        f"--client-ca-file={authority.certificate}",
        f"--tls-cert-file={serving.certificate}",
        f"--tls-private-key-file={serving.key}",
        "--authorization-mode=Node,RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={tokens.certificate}",
        f"--service-account-signing-key-file={tokens.key}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--allow-privileged=true",
        f"--audit-policy-file={directory}/audit-policy.json",
        f"--audit-log-path={directory}/audit.log",
        "--audit-log-maxsize=2000",  # MB: by default its readers lose it after 100
    ]
    if options.bind_address.startswith("127."):
        # The `kubernetes` service refuses a loopback endpoint, and the server would stop over it.
        command.append("--endpoint-reconciler-type=none")
    if kubelet_client:  # a real node: logs, exec and port-forward go through its kubelet
        command += [
            f"--kubelet-client-certificate={kubelet_client.certificate}",
            f"--kubelet-client-key={kubelet_client.key}",
            "--kubelet-preferred-address-types=InternalIP",  # its name is known to no DNS
        ]
    if options.owner_references_permission_enforcement:
        command.append("--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
    return [*command, *options.api_server_flags]


def controller_manager(
    directory: Path, *, profile: Profile, authority: Authority, tokens: Certificate
) -> list[str]:
    return [
        "kube-controller-manager",
        f"--kubeconfig={directory}/kube-controller-manager.kubeconfig",
        "--use-service-account-credentials=true",  # each controller by its own name in the audit
        f"--service-account-private-key-file={tokens.key}",
        f"--root-ca-file={authority.certificate}",
        "--leader-elect=false",  # there is one; waiting for a lease costs 15 s after a crash
        "--secure-port=0",
        f"--flex-volume-plugin-dir={directory}/flexvolume",  # else it makes one below /usr/libexec
        *CONTROLLER_MANAGER[profile],
    ]


def scheduler(directory: Path, *, profile: Profile) -> list[str]:
    return [
        "kube-scheduler",
        f"--kubeconfig={directory}/kube-scheduler.kubeconfig",
        "--leader-elect=false",
        "--secure-port=0",
        *SCHEDULER[profile],
    ]


INSTALLED_IN = "evenkeel"
"""The namespace that the documentation installs the chart into."""


def write_audit_policy(directory: Path) -> None:
    """Who asked for what of our objects and of Jobs, and all that an operator in a Pod asks for;
    bodies and all else would be gigabytes."""
    policy: dict[str, Any] = {
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],  # else every request is there twice
        "rules": [
            {"level": "Metadata", "resources": [{"group": "evenkeel.dev"}, {"group": "batch"}]},
            {"level": "Metadata", "userGroups": [f"system:serviceaccounts:{INSTALLED_IN}"]},
            {"level": "None"},
        ],
    }
    (directory / "audit-policy.json").write_text(json.dumps(policy))
