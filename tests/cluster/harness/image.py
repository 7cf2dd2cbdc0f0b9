"""Builds the operator's image: `python -m tests.cluster.harness.image` prints the archive's path.

With Docker or buildah where one answers, from the Dockerfile; otherwise by the script that the
Dockerfile runs (image_root.py), with the Dockerfile's own words about user and entry point. Called
by `make image`, run.py and tests. An image of the same sources is not built again. Not guaranteed:
an image for another kind of processor than this machine's.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from . import build, image_root, images, locks, packages
from .report import HarnessError, say

REPOSITORY = Path(__file__).parents[3]
DOCKERFILE = REPOSITORY / "Dockerfile"
SYSTEM_HOURS = 20  # Debian's part is fetched again once a day: it brings security fixes


def name() -> str:
    return f"evenkeel/operator:{_version()}"


def built() -> Path:
    """The archive, as Docker saves it: for `docker load`, `kind load image-archive`, `ctr`."""
    target = REPOSITORY / "build" / f"evenkeel-operator-{_version()}.tar"
    target.parent.mkdir(exist_ok=True)
    with locks.held(target.with_suffix(".lock"), waiting_for="another build of the image"):
        key, note = _key(), target.with_suffix(".key")
        if target.exists() and note.exists() and note.read_text() == key:
            return target
        note.unlink(missing_ok=True)
        started = time.monotonic()
        maker = _maker(base())
        say(f"building the image {name()} {maker or 'from a Debian root file system'}")
        if maker:
            _with_engine(maker, target)
        else:
            _by_hand(target)
        note.write_text(key)
    size = target.stat().st_size / 1e6
    say(f"built {name()} in {time.monotonic() - started:.0f} s: {size:.0f} MB")
    return target


def described() -> dict[str, Any]:
    """The last stage of the Dockerfile as an image's configuration."""
    text = re.sub(r"\\\n", " ", DOCKERFILE.read_text()).rpartition("\nFROM ")[2]
    text = text.replace("$COMMIT", _commit())
    found: dict[str, Any] = {"Env": [], "Labels": {}}
    for line in text.splitlines()[1:]:
        word, _, rest = line.partition(" ")
        match word:
            case "USER":
                found["User"] = rest
            case "ENTRYPOINT" | "CMD":
                found[word.capitalize()] = json.loads(rest)
            case "ENV":
                found["Env"] += shlex.split(rest)
            case "LABEL":
                found["Labels"] |= dict(label.split("=", 1) for label in shlex.split(rest))
            case "COPY" | "ARG" | "":
                pass
            case _:
                raise HarnessError(f"image.py does not know the Dockerfile's word {word}.")
    return found


def base() -> str:
    """The image that the Dockerfile begins with."""
    found = re.search(r"^FROM (\S+)", DOCKERFILE.read_text(), re.MULTILINE)
    assert found
    return found[1]


def _maker(base: str) -> str:
    """The engine that answers and has, or gets, the base; a command alone proves nothing."""
    for engine in ("docker", "buildah"):
        if not shutil.which(engine) or not _succeeds(engine, "info"):
            continue
        if _succeeds(engine, "inspect", "--type", "image", base) or _succeeds(engine, "pull", base):
            return engine
        say(f"{engine} is here, but cannot get the base image {base}")
    return ""


def _succeeds(*command: str) -> bool:
    try:
        done = subprocess.run(command, capture_output=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _with_engine(engine: str, target: Path) -> None:
    save = {
        "docker": ["docker", "save", "--output", str(target), name()],
        "buildah": ["buildah", "push", name(), f"docker-archive:{target}:{name()}"],
    }
    target.unlink(missing_ok=True)  # buildah adds to an archive that is there
    argument = f"{image_root.COMMIT}={_commit()}"
    build_it = [engine, "build", "--build-arg", argument, "--tag", name(), str(REPOSITORY)]
    for command in (build_it, save[engine]):
        if subprocess.run(command, stdout=sys.stderr, check=False).returncode != 0:
            raise HarnessError(f"`{' '.join(command[:2])}` failed: see its words above.")


def _by_hand(target: Path) -> None:
    if sys.platform != "linux":
        raise HarnessError("the image needs Docker, buildah or Linux to be built.")
    packages.ensure("mmdebstrap", why="the operator's image")
    root = target.with_suffix(".root")
    shutil.rmtree(root, ignore_errors=True)
    command = [sys.executable, image_root.__file__, str(root), str(_system())]
    variables = {**os.environ, image_root.COMMIT: _commit()}
    done = subprocess.run(command, stdout=sys.stderr, cwd=REPOSITORY, env=variables, check=False)
    if done.returncode != 0:
        raise HarnessError("the root file system could not be made: see above.")
    images.archive(root, target, names=[name()], config=described())
    shutil.rmtree(root)


def _system() -> Path:
    words = "\0".join([image_root.RELEASE, *image_root.PACKAGES, images.architecture()])
    digest = hashlib.sha256(words.encode()).hexdigest()[:12]
    kept = build.cache() / f"image-system-{digest}.tar"
    if not kept.exists() or time.time() - kept.stat().st_mtime > SYSTEM_HOURS * 3600:
        draft = kept.with_name(f"draft-{os.getpid()}-{kept.name}")  # mmdebstrap goes by `.tar`
        image_root.download(draft)
        draft.replace(kept)
    return kept


def _key() -> str:
    """Of everything that comes into the image."""
    here = Path(__file__).parent
    files = [DOCKERFILE, here / "image_root.py", here / "images.py"]
    files += [REPOSITORY / text for text in ("pyproject.toml", "requirements.txt")]
    files += [
        path
        for path in sorted((REPOSITORY / "operator").rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    ]
    digest = hashlib.sha256(_commit().encode())
    for path in files:
        digest.update(f"{path.relative_to(REPOSITORY)}\0".encode())
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _commit() -> str:
    """As `evenkeel version` tells it in a checkout; empty outside of one."""
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _version() -> str:
    document = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    version: str = document["project"]["version"]
    return version


if __name__ == "__main__":
    try:
        print(built())
    except HarnessError as error:
        say(str(error))
        sys.exit(1)
