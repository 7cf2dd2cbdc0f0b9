"""The image of which kind makes its nodes: its own, or one that is built here where no registry is.

Called by kind.py. A first pull takes minutes: it happens before the first test, whose time limit is
not meant for it. Where it fails, an image is made of Debian's packages, of the programs that the
harness builds (all of Kubernetes in one), and of the files in kind_node/, as they lie in the node.
Not guaranteed: that the name of kind's image is found in every build of kind (then kind pulls it);
DNS for Pods, or more than one node, in what is built here.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import build, image_root, images, locks, packages
from .report import HarnessError, say

FILES = Path(__file__).with_name("kind_node")
# What kind, kubeadm, the kubelet, containerd and the network's plugins call.
NODE_PACKAGES = (
    *("bash", "conntrack", "containernetworking-plugins", "coreutils", "dash", "grep", "iptables"),
    *("mount", "nftables", "procps", "runc", "sed", "util-linux"),
)
KUBE_PACKAGES = ("nftables",)  # for kube-proxy
PARTS = ("controlplane", "containerd", "kubeadm")
PATH = "PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# kind has no command that tells it; the program holds it as a constant.
_OWN = re.compile(rb"kindest/node:v[0-9.]+@sha256:[0-9a-f]{64}")


def chosen() -> str:
    """The image, pulled or built if need be; empty: what kind takes by itself."""
    own = kinds_own()
    if not own or _here(own):
        return ""
    with locks.held(build.cache() / "kind-pull.lock", waiting_for="another pull of a node image"):
        if _here(name()):
            return name()
        if _here(own) or _pulled(own):
            return ""
    say("kind's node image cannot be pulled: one is built here")
    return built()


def built() -> str:
    """The image of Debian's packages and our programs, in the engine."""
    made = name()
    with locks.held(build.cache() / "kind-node.lock", waiting_for="another node image for kind"):
        if not _here(made):
            say(f"building the image {made}, once")
            with tempfile.TemporaryDirectory(dir=build.cache()) as scratch:
                found = archive(Path(scratch) / "node.tar")
                command = ["docker", "load", "--quiet", "--input", str(found)]
                done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise HarnessError(f"`docker load` refuses the node image: {done.stderr.strip()}")
    return made


def kinds_own() -> str:
    """The image that kind takes by itself; empty, if its program does not hold the name."""
    program = Path(shutil.which("kind") or "")
    found = _OWN.search(program.read_bytes()) if program.is_file() else None
    return found[0].decode() if found else ""


def name() -> str:
    """Of the image that is built here, from all that comes into it."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    for part in PARTS:
        digest.update(str(build.place(part).relative_to(build.cache())).encode())
    for path in sorted(path for path in FILES.rglob("*") if path.is_file()):
        digest.update(f"\0{path.relative_to(FILES)}\0".encode() + path.read_bytes())
    return f"evenkeel.test/kind-node:{build.KUBERNETES}-{digest.hexdigest()[:12]}"


def archive(target: Path) -> Path:
    """Writes the image, for `docker load`."""
    packages.ensure("mmdebstrap", "busybox", why="a node image for kind")
    programs = {part: build.built(part) for part in PARTS}
    root = target.with_suffix(".root")
    _debian(root, NODE_PACKAGES)
    shutil.copytree(FILES, root, dirs_exist_ok=True)
    (root / "kind" / "version").write_text(build.KUBERNETES)
    local = root / "usr" / "local"
    for program in programs["containerd"].iterdir():
        shutil.copy2(program, local / "bin")
    shutil.copy2(programs["kubeadm"] / "kubeadm", local / "lib")
    shutil.copy2(programs["controlplane"] / "controlplane", local / "bin")
    for command in ("kubectl", "kubelet"):
        (local / "bin" / command).symlink_to("controlplane")
    # Debian's own links to it are made when the package is configured, which nothing here is.
    for command in ("iptables", "ip6tables"):
        (root / "usr" / "sbin" / command).symlink_to("xtables-nft-multi")
    inside = root / "kind" / "images"
    inside.mkdir()
    images.busybox(inside)
    shutil.rmtree(inside / "busybox")
    _kubernetes(inside / "kubernetes.tar", programs)
    command = {"Entrypoint": ["/usr/local/bin/entrypoint"], "Env": [PATH]}
    images.archive(root, target, names=[name()], config=command)
    shutil.rmtree(root)
    return target


def _kubernetes(target: Path, programs: dict[str, Path]) -> None:
    """The image of which all Pods of a control plane are made, by the names that kubeadm uses."""
    ask = ["config", "images", "list", "--kubernetes-version", build.KUBERNETES]
    listed = subprocess.run(
        [programs["kubeadm"] / "kubeadm", *ask], capture_output=True, text=True, check=True
    ).stdout.split()
    components = {text: re.split(r"[/:]", text)[-2] for text in listed}
    known = {text: one for text, one in components.items() if one not in ("coredns", "pause")}
    root = target.with_suffix(".root")
    _debian(root, KUBE_PACKAGES)
    local = root / "usr" / "local" / "bin"
    shutil.copy2(programs["controlplane"] / "controlplane", local)
    for component in known.values():
        (local / component).symlink_to("controlplane")
    images.archive(root, target, names=list(known), config={"Env": [PATH]})
    shutil.rmtree(root)


def _debian(root: Path, wanted: Sequence[str]) -> None:
    root.mkdir()
    tar = root.with_suffix(".system.tar")
    command = ["mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(wanted)}"]
    command += [image_root.RELEASE, str(tar)]
    if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
        raise HarnessError("mmdebstrap makes no root of Debian's packages: see its words above.")
    image_root.unpack(tar, root)
    tar.unlink()
    for directory in ("usr/local/bin", "usr/local/lib", "tmp", "var/tmp"):
        (root / directory).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    (root / "etc" / "group").write_text("root:x:0:\nnogroup:x:65534:\n")
    shutil.rmtree(root / "var" / "lib" / "apt", ignore_errors=True)
    for unused in ("doc", "man", "locale", "info"):
        shutil.rmtree(root / "usr" / "share" / unused, ignore_errors=True)


def _here(image: str) -> bool:
    command = ["docker", "image", "inspect", image]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _pulled(image: str) -> bool:
    say(f"pulling kind's node image, once: {image.partition('@')[0]}")
    command = ["docker", "pull", image]
    return subprocess.run(command, stdout=sys.stderr, check=False).returncode == 0
