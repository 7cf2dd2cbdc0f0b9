"""Prometheus' own judge of rules, from Debian's package `prometheus`.

One on the PATH is taken. Otherwise apt-get fetches the package, which needs no root, and it is
unpacked into the user's cache: Debian's release pins its version. Called by the tests of the alerts
and the command line. Not guaranteed: systems without apt-get, or whose lists of packages are empty.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from . import build, locks
from .report import HarnessError, failed, say

PACKAGE = "prometheus"


def program() -> Path:
    """The path of promtool."""
    if found := shutil.which("promtool"):
        return Path(found)
    home = build.cache() / "promtool"
    target = home / "usr" / "bin" / "promtool"
    if target.exists():
        return target
    with locks.held(build.cache() / "promtool.lock", waiting_for="another unpacking of promtool"):
        if not target.exists():  # somebody else may have unpacked it while we waited
            _unpack(home)
    return target


def _unpack(home: Path) -> None:
    if not shutil.which("apt-get") or not shutil.which("dpkg-deb"):
        raise HarnessError(
            f"the tests of the alerts need promtool: install {PACKAGE}, and put it on the PATH."
        )
    say(f"fetching the package {PACKAGE}, for promtool")
    draft = home.with_name(f".{home.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    log = build.cache() / "promtool.log"
    _run(["apt-get", "--quiet", "download", PACKAGE], draft, log)
    (package,) = draft.glob("*.deb")
    _run(["dpkg-deb", "--extract", str(package), "."], draft, log)
    package.unlink()
    (draft / "usr" / "bin" / "prometheus").unlink()  # the server itself: nobody asks for it
    draft.replace(home)


def _run(command: list[str], directory: Path, log: Path) -> None:
    with log.open("wb") as output:
        done = subprocess.run(
            command,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
        )
    if done.returncode:
        raise failed(f"{' '.join(command[:3])} failed.", log)
