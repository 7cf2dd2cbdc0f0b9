"""A real node: the command lines and files of containerd, the kubelet and kube-proxy.

Called by control_plane.py, which runs them in an enclosure (enclosure.py); it runs containers, so
Jobs have real Pods with logs. Images are loaded from archives (images.py): the node reaches no
registry. Not guaranteed: DNS for Pods, more than one node, or anything that production would want.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from . import components, images, packages
from .report import HarnessError
from .state import State

SOCKET = "/run/containerd/containerd.sock"  # in the enclosure, so every node may have this one
CNI_PLUGINS = "/usr/lib/cni"  # where Debian has them
POD_RANGE = "10.244.0.0/16"
PROXY_HEALTH_PORT = 10256
_PROGRAMS = (
    *("busybox", "conntrack", "ip", "iptables", "nft", "runc"),
    f"{CNI_PLUGINS}/bridge",
)


def impossible() -> str:
    """Why this machine cannot have a real node, in one sentence; empty if it can.

    Installs what is missing where that is possible."""
    if sys.platform != "linux":
        return "real Pods need Linux."
    if os.geteuid() != 0:
        return "real Pods need root."
    command = ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "true"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "real Pods need `unshare` (util-linux)."
    if done.returncode != 0:
        return f"real Pods need namespaces, which this machine refuses: {done.stderr.strip()}."
    if not os.access("/dev/kmsg", os.R_OK):
        return "real Pods need /dev/kmsg, which this machine hides."
    try:
        packages.ensure(*_PROGRAMS, why="a real node")
    except HarnessError as error:
        return str(error)
    return ""


def name(found: State) -> str:
    return f"node-{found.name}"


def containerd(found: State) -> list[str]:
    return ["containerd", f"--config={_directory(found)}/containerd.toml", "--log-level=warn"]


def kubelet(found: State) -> list[str]:
    directory = _directory(found)
    return [
        "kubelet",
        f"--config={directory}/kubelet.json",
        f"--kubeconfig={found.directory}/kubelet.kubeconfig",
        f"--hostname-override={name(found)}",
        f"--node-ip={found.address}",
        f"--root-dir={directory}/kubelet",
        f"--cert-dir={directory}/kubelet-pki",
    ]


def kube_proxy(found: State) -> list[str]:
    return [
        "kube-proxy",
        f"--kubeconfig={found.directory}/kube-proxy.kubeconfig",
        f"--hostname-override={name(found)}",
        f"--healthz-bind-address={found.address}:{PROXY_HEALTH_PORT}",
        "--proxy-mode=nftables",
        f"--cluster-cidr={POD_RANGE}",
        "--conntrack-max-per-core=0",  # a limit of the whole machine, which is not ours to set
        "--oom-score-adj=0",  # to lower it takes a capability that virtual machines may lack
    ]


def ctr(found: State, *arguments: str) -> list[str]:
    """containerd's own client; `ctr` must be on the PATH."""
    return ["ctr", f"--address={SOCKET}", "--namespace=k8s.io", *arguments]


def environment(found: State) -> dict[str, str]:
    """containerd looks for its shim, runc and the CNI plugins' tools on the PATH."""
    programs = found.asked["programs"]["containerd"]
    return {"PATH": os.pathsep.join([programs, packages.PATH])}


def proxy_ready(found: State) -> bool:
    """Service addresses work."""
    connection = http.client.HTTPConnection(found.address, PROXY_HEALTH_PORT, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def write_files(found: State, *, authority: Path) -> None:
    directory = _directory(found)
    for below in (directory, directory / "cni", directory / "plugins"):
        below.mkdir()
    (directory / "containerd.toml").write_text(_containerd(directory))
    (directory / "kubelet.json").write_text(json.dumps(_kubelet(found, authority), indent=2))
    (directory / "cni" / "10-evenkeel.conflist").write_text(json.dumps(_network(directory)))


def _directory(found: State) -> Path:
    return found.directory / "node"


def _containerd(directory: Path) -> str:
    runtime = "plugins.'io.containerd.cri.v1.runtime'"
    return f"""\
version = 3
root = "{directory}/containerd"
state = "/run/containerd"

[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = "{images.SANDBOX}"

[{runtime}]
# Without this every sandbox dies ("can't get final child's PID from pipe: EOF") on a machine that
# lacks CAP_SYS_RESOURCE.
restrict_oom_score_adj = true
# Its profile would be loaded into the machine's kernel and stay there.
disable_apparmor = true
# Else network namespaces are mounted below /run/netns.
netns_mounts_under_state_dir = true

[{runtime}.cni]
bin_dirs = ["{CNI_PLUGINS}"]
conf_dir = "{directory}/cni"

[plugins.'io.containerd.internal.v1.opt']
path = "{directory}/opt"

[plugins.'io.containerd.nri.v1.nri']
disable = true

[plugins.'io.containerd.server.v1.grpc']
address = "{SOCKET}"
"""


def _kubelet(found: State, authority: Path) -> dict[str, Any]:
    directory = _directory(found)
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": found.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(authority)},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",  # there need not be a systemd
        "cgroupRoot": f"/evenkeel-{found.token}",
        "failCgroupV1": False,
        "failSwapOn": False,
        "containerRuntimeEndpoint": f"unix://{SOCKET}",
        # Where no server is named, every Pod of the usual dnsPolicy gets a warning. Here nothing
        # answers: a look-up fails.
        "clusterDomain": "cluster.local",
        "clusterDNS": [components.DNS_SERVICE],
        "podLogsDir": str(directory / "logs"),
        "volumePluginDir": str(directory / "plugins"),
        "makeIPTablesUtilChains": False,
        "oomScoreAdj": 0,
        "maxPods": 250,
        # A full disk is the machine's matter; a test's Pods are not evicted for it.
        "evictionHard": {
            "imagefs.available": "0%",
            "memory.available": "0%",
            "nodefs.available": "0%",
            "nodefs.inodesFree": "0%",
        },
        # Our images are nowhere to be pulled from again.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
    }


def _network(directory: Path) -> dict[str, Any]:
    return {
        "cniVersion": "1.0.0",
        "name": "evenkeel",
        "plugins": [
            {
                "type": "bridge",
                "bridge": "cni0",
                "isGateway": True,
                "ipMasq": True,
                "hairpinMode": True,  # a Pod may reach itself through its Service
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": POD_RANGE}]],
                    "routes": [{"dst": "0.0.0.0/0"}],
                    "dataDir": str(directory / "addresses"),
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": True}},
        ],
    }
