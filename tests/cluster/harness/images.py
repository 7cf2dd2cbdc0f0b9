"""Container images as archives, made here without a registry: what a node, kind or Docker can load.

Called by control_plane.py (the sandbox's image), by tests and by image.py. An archive is Docker's
own format: `manifest.json`, a configuration, one layer; the same files give the same bytes. Not
guaranteed: anything that an image would need beyond one layer.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import platform
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from . import packages
from .cluster import Cluster
from .report import HarnessError, say

SANDBOX = "evenkeel.test/pause:local"  # what holds a Pod's network while its containers come and go
BUSYBOX = "busybox:1.35"  # as the registry's: manifests that name it work here and elsewhere

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_APPLETS = ("cat", "date", "echo", "env", "false", "id", "ls", "sh", "sleep", "true", "wget")


def busybox(
    directory: Path,
    *,
    names: Sequence[str] = (BUSYBOX, SANDBOX),
    command: Sequence[str] = ("sleep", "2147483647"),
) -> Path:
    """A shell and its tools. By its usual names, for tests and for the sandboxes of Pods."""
    program = Path(packages.found("busybox") or "")
    if not program.is_file() or b"ld-linux" in program.read_bytes()[:4096]:
        raise HarnessError("a test image needs a static busybox: install busybox-static.")
    root = directory / "busybox"
    (root / "bin").mkdir(parents=True)
    (root / "bin" / "busybox").write_bytes(program.read_bytes())
    (root / "bin" / "busybox").chmod(0o755)
    for applet in _APPLETS:
        (root / "bin" / applet).symlink_to("busybox")
    (root / "etc").mkdir()
    (root / "etc" / "passwd").write_text("root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n")
    (root / "tmp").mkdir()
    (root / "tmp").chmod(0o1777)
    return archive(
        root,
        directory / "busybox.tar",
        names=names,
        config={"Cmd": list(command), "Env": ["PATH=/bin"]},
    )


def give_busybox(cluster: Cluster) -> None:
    """To a node that could also pull the image: a machine without the program is as good."""
    with tempfile.TemporaryDirectory() as scratch:
        try:
            found = busybox(Path(scratch))
        except HarnessError:
            say(f"no static busybox on this machine: the node pulls {BUSYBOX} itself")
            return
        cluster.load_image(found)


def archive(
    root: Path, target: Path, *, names: Sequence[str], config: Mapping[str, Any], created: int = 0
) -> Path:
    """Writes the image of the files below `root`; all of them belong to root and are as old as
    `created`."""
    layer = target.with_suffix(".layer")
    _write_layer(root, layer, created)
    moment = _instant(created)
    with layer.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    described = json.dumps(
        {
            "architecture": architecture(),
            "os": "linux",
            "created": moment,
            "config": dict(config),
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
            "history": [{"created": moment}],
        }
    ).encode()
    name = f"{hashlib.sha256(described).hexdigest()}.json"
    manifest = [{"Config": name, "RepoTags": list(names), "Layers": ["layer.tar"]}]
    draft = target.with_suffix(".draft")
    with tarfile.open(draft, "w", format=tarfile.GNU_FORMAT) as tar:
        for path, text in ((name, described), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            entry.mtime = created
            tar.addfile(entry, io.BytesIO(text))
        entry = tarfile.TarInfo("layer.tar")
        entry.size = layer.stat().st_size
        entry.mtime = created
        with layer.open("rb") as file:
            tar.addfile(entry, file)
    layer.unlink()
    draft.replace(target)
    return target


def architecture() -> str:
    """As images call this machine's."""
    return _ARCHITECTURES.get(platform.machine(), platform.machine())


def load(command: Sequence[str], *, environment: Mapping[str, str], file: Path) -> None:
    """Runs the command that takes an archive in."""
    done = subprocess.run(
        command, env=dict(environment), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise HarnessError(f"cannot load {file.name} into the node: {done.stderr.strip()}")


def _write_layer(root: Path, layer: Path, created: int) -> None:
    with tarfile.open(layer, "w", format=tarfile.GNU_FORMAT) as tar:
        for path in sorted(root.rglob("*")):
            entry = tar.gettarinfo(path, arcname=str(path.relative_to(root)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mtime = created
            if stat.S_ISREG(path.lstat().st_mode):
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)


def _instant(seconds: int) -> str:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
