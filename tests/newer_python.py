"""A Python newer than the one that runs here, with our packages.

`python -m tests.newer_python ARGUMENTS` runs pytest by it.

Called by `make test-newer-python` and by test_newer_python.py. The interpreter is one that uv finds
on this machine; or Debian's, from a root that mmdebstrap makes once into the user's cache, without
a container: its own loader runs it with its own libraries; or one that uv fetches. Not guaranteed:
that there is any of them; then a sentence says why. Nothing that needs a cluster runs by it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.cluster.harness import HarnessError, build, locks, packages
from tests.cluster.harness.report import say

REPOSITORY = Path(__file__).parents[1]
ENVIRONMENT = REPOSITORY / "build" / "newer-python"
WANTED = "3.13"
RELEASE = "trixie"  # Debian's with that Python
PACKAGES = (f"python{WANTED}", "libstdc++6", "base-files")
FETCH_S = 120


class NoneHereError(Exception):
    """Why this machine has no newer Python, in one sentence."""


def main(arguments: list[str]) -> int:
    try:
        python = prepared()
    except NoneHereError as error:
        say(str(error))
        return 0
    command = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=REPOSITORY, env=environment(), check=False).returncode


def environment() -> dict[str, str]:
    """Ours without what a pytest around it has set for its own workers."""
    return {key: text for key, text in os.environ.items() if not key.startswith("PYTEST_")}


def prepared() -> Path:
    """The interpreter, with every package of requirements.txt; seconds, once all is downloaded."""
    if sys.version_info >= tuple(map(int, WANTED.split("."))):
        raise NoneHereError(f"no other Python is needed: this one is {platform.python_version()}.")
    with locks.held(ENVIRONMENT.with_suffix(".lock"), waiting_for="another test of a newer Python"):
        python = ENVIRONMENT / "bin" / "python"
        if not _runs(python):
            shutil.rmtree(ENVIRONMENT, ignore_errors=True)
            _lay_out(python)
        requirements = ["--require-hashes", str(REPOSITORY / "requirements.txt")]
        _uv("pip", "sync", "--quiet", "--python", str(python), *requirements)
        ours = ["--no-deps", "--no-build-isolation", "--editable", str(REPOSITORY)]
        _uv("pip", "install", "--quiet", "--python", str(python), *ours)
    return python


def _lay_out(python: Path) -> None:
    if found := _found():
        _uv("venv", "--quiet", "--python", found, str(ENVIRONMENT))
        return
    try:
        root = _debian()
    except HarnessError as error:
        if fetched := _fetched():
            _uv("venv", "--quiet", "--python", fetched, str(ENVIRONMENT))
            return
        raise NoneHereError(
            f"no Python {WANTED} on this machine, uv fetches none, and {error}"
        ) from error
    python.parent.mkdir(parents=True)
    libraries = sorted({str(path.parent) for path in root.glob("usr/lib/*-linux-gnu/libc.so.6")})
    loader = next(root.glob("usr/lib*/ld-linux-*.so*"))
    python.write_text(
        f'#!/bin/sh\nexec "{loader}" --library-path "{":".join(libraries)}" --argv0 "$0"'
        f' "{root}/usr/bin/python{WANTED}" "$@"\n',
        encoding="utf-8",
    )
    python.chmod(0o755)
    settings = f"home = {root}/usr/bin\ninclude-system-site-packages = false\n"
    (ENVIRONMENT / "pyvenv.cfg").write_text(settings, encoding="utf-8")
    if not _runs(python):
        raise NoneHereError(f"Debian's Python {WANTED} does not run on this machine.")


def _found() -> str:
    """One that is installed; a version manager's script that only says so does not run."""
    for command in (f"python{WANTED}", f"/usr/bin/python{WANTED}"):
        path = shutil.which(command)
        if path and _runs(Path(path)):
            return path
    return ""


def _fetched() -> str:
    """One that uv downloads, where its server can be reached."""
    uv = str(Path(sys.executable).with_name("uv"))
    try:
        done = subprocess.run(
            [uv, "python", "install", "--quiet", WANTED],
            capture_output=True,
            timeout=FETCH_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ""
    return WANTED if done.returncode == 0 else ""


def _debian() -> Path:
    """Debian's root, unpacked; made once."""
    words = "\0".join([RELEASE, *PACKAGES, platform.machine()])
    digest = hashlib.sha256(words.encode()).hexdigest()[:12]
    root = build.cache() / f"python{WANTED}-{digest}"
    if root.is_dir():
        return root
    packages.ensure("mmdebstrap", why=f"Python {WANTED}")
    with locks.held(build.cache() / "python.lock", waiting_for=f"another root of Python {WANTED}"):
        if not root.is_dir():
            _make(root)
    return root


def _make(root: Path) -> None:
    say(f"making a root with Debian's Python {WANTED}, once: half a minute")
    tar, draft = root.with_suffix(".draft.tar"), root.with_suffix(".draft")
    shutil.rmtree(draft, ignore_errors=True)
    wish = ["--quiet", "--variant=extract", f"--include={','.join(PACKAGES)}", RELEASE, str(tar)]
    done = subprocess.run(["mmdebstrap", *wish], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no word of it"])[-1]
        raise HarnessError(f"mmdebstrap makes no root of Debian's {RELEASE}: {last}")
    with tarfile.open(tar) as archive:
        # As it is: Debian has absolute links, which newer Pythons refuse.
        archive.extraction_filter = lambda member, _: member
        for entry in archive:
            if not entry.name.startswith("./dev/"):
                archive.extract(entry, draft)
    tar.unlink()
    draft.replace(root)


def _runs(python: Path) -> bool:
    says = "import sys, ssl, sqlite3, ctypes, venv; print(*sys.version_info[:2], sep='.')"
    try:
        done = subprocess.run(
            [str(python), "-c", says], capture_output=True, text=True, timeout=60, check=False
        )
    except OSError:
        return False
    return done.stdout.strip() == WANTED


def _uv(*arguments: str) -> None:
    uv = str(Path(sys.executable).with_name("uv"))
    done = subprocess.run([uv, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise HarnessError(f"`uv {' '.join(arguments[:2])}` failed: {done.stderr.strip()}")


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except HarnessError as error:
        say(str(error))
        sys.exit(1)
