"""The image of which kind makes its nodes: pulled here and with progress, not inside of kind.

Called by kind.py. A first pull takes minutes: it happens before the first test, whose time limit is
not meant for it. Not guaranteed: that the name is found in every build of kind; then kind pulls its
image itself.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from . import build, locks
from .report import HarnessError, say

# kind has no command that tells it; the program holds it as a constant.
_OWN = re.compile(rb"kindest/node:v[0-9.]+@sha256:[0-9a-f]{64}")


def pull() -> None:
    """Unless the engine has it."""
    own = kinds_own()
    if not own or _here(own):
        return
    with locks.held(build.cache() / "kind-node.lock", waiting_for="another pull of a node image"):
        if not _here(own):
            _pull(own)


def kinds_own() -> str:
    """The image that kind takes by itself; empty, if its program does not hold the name."""
    program = Path(shutil.which("kind") or "")
    found = _OWN.search(program.read_bytes()) if program.is_file() else None
    return found[0].decode() if found else ""


def _here(image: str) -> bool:
    command = ["docker", "image", "inspect", image]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _pull(image: str) -> None:
    say(f"pulling kind's node image, once: {image.partition('@')[0]}")
    if subprocess.run(["docker", "pull", image], stdout=sys.stderr, check=False).returncode != 0:
        raise HarnessError(f"`docker pull {image}` failed: see its words above.")
