"""Which release this is, and from which commit."""

import subprocess
from importlib.metadata import version
from pathlib import Path

VERSION = version("evenkeel-operator")

_PACKAGE = Path(__file__).parent
_STAMP = _PACKAGE / "commit"
"""Written where the image is built; a checkout has none and asks git."""


def commit() -> str:
    """The commit it was built from, with `-dirty` where files had been changed; empty: unknown."""
    try:
        return _STAMP.read_text(encoding="utf-8").strip()
    except OSError:
        return _of_checkout()


def _of_checkout() -> str:
    described = ("git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*")
    try:
        # Ours is the commit of this package's repository, not of one that it is installed in.
        listed = _git("git", "ls-files", "--error-unmatch", Path(__file__).name)
        return _git(*described) if listed else ""
    except (OSError, subprocess.SubprocessError):
        return ""


def _git(*command: str) -> str:
    done = subprocess.run(  # noqa: S603 - no word of it comes from outside
        command, cwd=_PACKAGE, capture_output=True, text=True, timeout=10, check=True
    )
    return done.stdout.strip()
