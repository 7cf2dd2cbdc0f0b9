"""Builds the programs a cluster needs from Go modules, once a version, into the user's cache.

`built("kwok")` is the directory that holds the programs of a part; the first call builds it, which
takes minutes, and every later one only looks. Called by control_plane.py, kwok.py, helm.py,
tests/conftest.py and the command line. A key over all inputs is part of the path, so an edit here
never runs an old program.
Not guaranteed: that the Go modules are reachable, or that old keys are ever removed from the cache.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import locks, toolchain
from .report import failed, say

KUBERNETES = "v1.36.3"
HELM = "v4.3.1"
SAY_SECONDS = 12
_VERSION = "k8s.io/component-base/version"
_KUBERNETES_LINK = (
    *("-s", "-w"),
    # Without these the API server calls itself v0.0.0, and clients choose by its version.
    *("-X", f"{_VERSION}.gitVersion={KUBERNETES}"),
    *("-X", f"{_VERSION}.gitMajor={KUBERNETES[1:].split('.')[0]}"),
    *("-X", f"{_VERSION}.gitMinor={KUBERNETES[1:].split('.')[1]}"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """Programs that are built together: packages to install, or a module of this repository."""

    version: str
    about: str  # how long the first build takes, for whoever waits
    packages: tuple[str, ...] = ()
    module: Path | None = None
    link: tuple[str, ...] = ("-s", "-w")
    names: tuple[str, ...] = ()  # other names by which a module's program is called
    usual: bool = True  # `build` without names builds it too


PARTS = {
    "controlplane": Part(
        version=KUBERNETES,
        about="6 to 9 minutes on two cores",
        module=Path(__file__).parent / "controlplane",
        names=("kubectl",),
        link=_KUBERNETES_LINK,
    ),
    "kwok": Part(
        version="v0.8.0", about="a minute or two", packages=("sigs.k8s.io/kwok/cmd/kwok",)
    ),
    # The oldest Kubernetes that Evenkeel claims: what it says to the CRD, without an API server.
    "crdvalidator": Part(
        version="v0.30.14",
        about="a minute and a half",
        module=Path(__file__).parent / "crdvalidator",
    ),
    "containerd": Part(
        version="v2.4.2",
        about="a minute or two",
        packages=(
            "github.com/containerd/containerd/v2/cmd/containerd",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
            "github.com/containerd/containerd/v2/cmd/ctr",
        ),
    ),
    "helm": Part(
        version=HELM,
        about="3 to 5 minutes",
        packages=("helm.sh/helm/v4/cmd/helm",),
        # Without this helm calls itself v4.3, whatever it was built from.
        link=("-s", "-w", "-X", f"helm.sh/helm/v4/internal/version.version={HELM}"),
    ),
    "registry": Part(  # of images and charts, for pushing the chart to
        version="v3.0.0",
        about="a minute",
        packages=("github.com/distribution/distribution/v3/cmd/registry",),
    ),
    "helm-docs": Part(
        version="v1.14.2",
        about="half a minute",
        packages=("github.com/norwoodj/helm-docs/cmd/helm-docs",),
    ),
    # For whoever has Docker and no kind; the harness itself takes the one on the PATH.
    "kind": Part(version="v0.33.0", about="a minute", packages=("sigs.k8s.io/kind",), usual=False),
    # In kind's node image, where that cannot be pulled.
    "kubeadm": Part(
        version=KUBERNETES,
        about="2 minutes",
        module=Path(__file__).parent / "kubeadm",
        link=_KUBERNETES_LINK,
        usual=False,
    ),
    # Kubernetes' own specs of CronJob (tests/e2e/cronjob_specs.py).
    "cronjob-specs": Part(
        version=KUBERNETES,
        about="4 to 6 minutes",
        module=Path(__file__).parent / "cronjob_specs",
        link=_KUBERNETES_LINK,
        usual=False,
    ),
    "actionlint": Part(
        version="v1.7.12",
        about="half a minute",
        packages=("github.com/rhysd/actionlint/cmd/actionlint",),
    ),
}


def built(part: str) -> Path:
    """The directory with the programs of `part`, built if they are not there yet."""
    recipe, target = PARTS[part], place(part)
    if target.is_dir():
        return target
    with locks.held(cache() / f"{part}.lock", waiting_for=f"another build of {part}"):
        if not target.is_dir():  # somebody else may have built it while we waited
            _build(part, recipe, target)
    return target


def place(part: str) -> Path:
    """That directory, whether it is there or not."""
    recipe = PARTS[part]
    return cache() / f"{part}-{recipe.version}" / _key(recipe)


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "evenkeel"


def _key(recipe: Part) -> str:
    inputs = [recipe.version, platform.system(), platform.machine(), *recipe.packages, *recipe.link]
    inputs += recipe.names
    if recipe.module:
        for name in ("go.mod", "go.sum", "main.go"):
            inputs.append((recipe.module / name).read_text())
    return hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:12]


def _build(part: str, recipe: Part, target: Path) -> None:
    go = toolchain.go(cache())
    draft = target.with_name(f".{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    compiled = cache() / f"compiling-{part}"
    environment = {
        **os.environ,
        "CGO_ENABLED": "0",  # static: runs on every libc, and needs no C compiler
        "GOBIN": str(draft),
        "GOCACHE": str(compiled),  # 5 GB that nobody needs afterwards; kept after a failure
        "GOTOOLCHAIN": "local",  # else Go fetches another Go by itself
        "GOWORK": "off",  # a go.work somewhere above would replace our module list
    }
    link = ["-trimpath", "-ldflags", " ".join(recipe.link)]
    if recipe.module:
        command = [go, "build", "-v", "-mod=readonly", *link, "-o", str(draft / part), "."]
    else:
        command = [go, "install", "-v", *link, *(f"{p}@{recipe.version}" for p in recipe.packages)]
    log = cache() / f"{part}.log"
    say(f"building {part} {recipe.version}, once: {recipe.about}. Log: {log}")
    started = time.monotonic()
    _run(command, part=part, log=log, directory=recipe.module, environment=environment)
    for name in recipe.names:
        (draft / name).symlink_to(part)
    draft.replace(target)
    shutil.rmtree(compiled, ignore_errors=True)
    say(f"built {part} {recipe.version} in {_elapsed(started)}: {target}")


def _run(
    command: Sequence[str],
    *,
    part: str,
    log: Path,
    directory: Path | None,
    environment: Mapping[str, str],
) -> None:
    """Runs a build to its end and says every few seconds how far it is."""
    started = time.monotonic()
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command,
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # a group of its own, so that its compilers end with it
        ) as process,
    ):
        try:
            while True:
                try:
                    code = process.wait(timeout=SAY_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    say(f"building {part}: {_elapsed(started)}, {_progress(log)}")
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            raise
    if code != 0:
        raise failed(f"building {part} failed after {_elapsed(started)}.", log)


def _progress(log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()
    fetched = sum(line.startswith("go: downloading") for line in lines)
    return f"{fetched} modules fetched, {len(lines) - fetched} packages compiled"


def _elapsed(started: float) -> str:
    minutes, seconds = divmod(round(time.monotonic() - started), 60)
    return f"{minutes} min {seconds:02} s" if minutes else f"{seconds} s"
