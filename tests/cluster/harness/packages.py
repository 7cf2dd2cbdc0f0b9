"""Programs that the system's package manager brings: finds them, or installs them with apt-get.

Called by node.py and image.py before anything is started. Not guaranteed: systems without
apt-get, or users that may not install; there the error names all that is missing in one sentence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from . import build, locks
from .report import HarnessError, say

# What is looked for (a path, or a name on the PATH), and the Debian package that has it.
PACKAGES = {
    "busybox": "busybox-static",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "iptables": "iptables",
    "mmdebstrap": "mmdebstrap",
    "nft": "nftables",
    "openssl": "openssl",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
}
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
    """The path of a program."""
    if "/" in program:
        return program if Path(program).exists() else None
    return shutil.which(program, path=PATH)


def _install(packages: list[str], log: Path) -> bool:
    return _apt(["install", "--yes", "--no-install-recommends", *packages], log)


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
