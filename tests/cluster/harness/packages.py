"""Programs that the system's package manager brings: finds them, or installs them with apt-get.

Called by node.py and image.py before anything is started, and for the tests of the ledger. Not
guaranteed: systems without apt-get, or users that may not install; there the error names all that
is missing in one sentence.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
from pathlib import Path

from . import build, locks
from .report import HarnessError, say

POSTGRESQL = "/usr/lib/postgresql/*/bin/initdb"
LEDGER = (POSTGRESQL, "pgbouncer", "bindfs")
"""What the tests of the ledger need."""

# What is looked for (a path or its pattern, or a name on the PATH), and the Debian package that has
# it.
PACKAGES = {
    "bindfs": "bindfs",
    "busybox": "busybox-static",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "openssl": "openssl",
    "pgbouncer": "pgbouncer",
    POSTGRESQL: "postgresql",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}
CREATECLUSTER = Path("/etc/postgresql-common/createcluster.conf")
# An ordinary user's PATH often lacks the last two.
PATH = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])


def ensure(*programs: str, why: str) -> None:
    """All of `programs` are there, or a HarnessError says what is missing and for what."""
    missing = [program for program in programs if not found(program)]
    if not missing:
        return
    names = ", ".join(missing)
    if not shutil.which("apt-get") or os.geteuid() != 0:
        raise HarnessError(f"{why} needs {names}, and only root with apt-get can install them.")
    packages = [PACKAGES[program] for program in missing]
    with locks.held(build.cache() / "apt.lock", waiting_for="another installation by apt-get"):
        say(f"installing {' '.join(packages)}, for {why}")
        log = build.cache() / "apt.log"
        log.write_bytes(b"")
        if not (_install(packages, log) or (_apt(["update"], log) and _install(packages, log))):
            wanted = " ".join(packages)
            raise HarnessError(f"{why} needs `apt-get install {wanted}`, which fails: see {log}.")


def found(program: str) -> str | None:
    """The path of a program; of several the newest."""
    if "/" in program:
        return max(glob.glob(program), key=_numbers, default=None)
    return shutil.which(program, path=PATH)


def _numbers(path: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path)]


def _install(packages: list[str], log: Path) -> bool:
    install = ["install", "--yes", "--no-install-recommends"]
    if PACKAGES[POSTGRESQL] in packages:
        if not _apt([*install, "postgresql-common"], log):
            return False
        _keep_the_system_without_a_server()
    return _apt([*install, *packages], log)


def _keep_the_system_without_a_server() -> None:
    """Else the server's package starts one on port 5432."""
    settings = CREATECLUSTER.read_text()
    mended = re.sub(r"(?m)^#? *create_main_cluster *=.*$", "create_main_cluster = false", settings)
    if "create_main_cluster = false" not in mended:
        mended += "create_main_cluster = false\n"
    CREATECLUSTER.write_text(mended)


def _apt(arguments: list[str], log: Path) -> bool:
    with log.open("ab") as output:
        done = subprocess.run(
            # Another apt-get (a machine that updates itself at boot) is waited for.
            ["apt-get", "--quiet", "-o", "DPkg::Lock::Timeout=300", *arguments],
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        )
    return done.returncode == 0
