"""Writes the operator's root file system: Debian's Python, the pinned packages, the operator.

Run by the Dockerfile's first stage, and by image.py where no Docker is: so both ways give the same
files. The standard library only; `python image_root.py TARGET` in the repository, on Debian or its
kin, with mmdebstrap and uv there. Not guaranteed: the same bytes after Debian has published a
security fix, which is taken in.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
RELEASE = "bookworm"
PYTHON = "python3.11"
# What the wheels expect of the system, and what tells a scanner which system it is.
PACKAGES = (PYTHON, "libstdc++6", "base-files")
USER = 65532  # as other images without a shell call their ordinary user
# Debian's Python looks here for what Debian has not packaged.
SITE = f"usr/local/lib/{PYTHON}/dist-packages"
COMMIT = "COMMIT"  # the variable, and the Dockerfile's argument, that names the commit

# Of each directory, the names that stay; so what a later Debian adds does not creep in.
KEPT = {
    "": "dev|etc|lib|lib64|proc|sys|tmp|usr",
    "etc": "debian_version|ld.so.conf.d|mime.types|os-release",
    "lib": "[a-z0-9_]+-linux-gnu",
    "usr": "bin|lib|local",
    "usr/bin": re.escape(PYTHON),
    "usr/lib": f"{re.escape(PYTHON)}|os-release|[a-z0-9_]+-linux-gnu",
}
# Tools and texts for people, codecs of old systems, and a second, asynchronous client of 40 MB that
# kopf would use if it were there.
UNUSED = (
    *(f"usr/lib/{PYTHON}/{name}" for name in ("idlelib", "lib2to3", "pydoc_data", "test")),
    "usr/lib/*-linux-gnu/gconv",
    f"{SITE}/bin",
    f"{SITE}/kubernetes/aio",
)
UNUSED_KINDS = ("*.pyi", "*.pyx", "*.pxd", "*.c", "*.h", "*.a", "*.exe")


def main(target: Path, system: Path | None = None) -> None:
    """`system`: the archive of an earlier call of `download`."""
    target.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        unpack(system or download(Path(scratch) / "system.tar"), target)
        packages(target / SITE, Path(scratch) / "requirements.txt")
    prune(target)
    finish(target)
    (target / SITE / "evenkeel" / "commit").write_text(os.environ.get(COMMIT, ""), encoding="utf-8")
    compile_all(target)


def download(tar: Path) -> Path:
    """Debian's part. No package manager, no shell, nothing that runs at installation."""
    run(
        *("mmdebstrap", "--quiet", "--variant=extract", f"--include={','.join(PACKAGES)}"),
        *(RELEASE, str(tar)),
    )
    return tar


def unpack(tar: Path, target: Path) -> None:
    with tarfile.open(tar) as archive:
        # As it is: Debian has absolute links, which newer Pythons refuse. (An argument `filter` is
        # unknown to Debian's own Python 3.11.2.)
        archive.extraction_filter = lambda member, _: member
        for entry in archive:
            if not entry.name.startswith("./dev/"):  # the container gets its own
                archive.extract(entry, target)


def packages(site: Path, requirements: Path) -> None:
    """What pyproject.toml asks for at run time, at the versions and hashes of requirements.txt."""
    uv = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
    version = PYTHON.removeprefix("python")
    kind = f"{platform.machine().replace('arm64', 'aarch64')}-manylinux_2_36"
    there = ("--python-version", version, "--python-platform", kind)
    run(
        *(uv, "pip", "compile", "pyproject.toml", "--extra", "postgres", *there),
        *("--constraints", "requirements.txt", "--generate-hashes", "--no-header", "--quiet"),
        *("--output-file", str(requirements)),
    )
    pinned = set(re.findall(r"sha256:[0-9a-f]{64}", Path("requirements.txt").read_text()))
    chosen = set(re.findall(r"sha256:[0-9a-f]{64}", requirements.read_text()))
    if not chosen <= pinned:
        sys.exit("image: requirements.txt lacks a hash of what pyproject.toml needs: make it anew")
    install = (uv, "pip", "install", "--quiet", "--no-deps", "--target", str(site))
    run(*install, *there, "--only-binary", ":all:", "--require-hashes", "-r", str(requirements))
    # Without --no-cache uv takes the wheel it made before the last edit.
    run(*install, "--no-cache", "--no-build-isolation", "--python", sys.executable, ".")


def prune(target: Path) -> None:
    for directory, names in KEPT.items():
        for path in (target / directory).iterdir():
            if not re.fullmatch(names, path.name):
                remove(path)
    for pattern in UNUSED:
        for path in target.glob(pattern):
            remove(path)
    for kind in UNUSED_KINDS:
        for path in (target / SITE).rglob(kind):
            path.unlink()
    for path in [p for p in (target / SITE).rglob("tests") if p.is_dir()]:
        remove(path)


def finish(target: Path) -> None:
    """The command, its user, and a place for temporary files."""
    (target / "usr/local/bin").mkdir()
    command = target / "usr/local/bin/evenkeel"
    command.write_text(
        f"#!/usr/bin/{PYTHON}\nfrom evenkeel.cli import main\n\nmain()\n", encoding="utf-8"
    )
    command.chmod(0o755)
    (target / "usr/bin/python3").symlink_to(PYTHON)
    accounts = f"root:x:0:0::/:/none\nevenkeel:x:{USER}:{USER}::/:/none\n"
    (target / "etc/passwd").write_text(accounts, encoding="utf-8")
    (target / "etc/group").write_text(f"root:x:0:\nevenkeel:x:{USER}:\n", encoding="utf-8")
    (target / "tmp").mkdir(exist_ok=True)
    (target / "tmp").chmod(0o1777)
    # uv writes when and from where; nobody reads it, and no two builds would be equal.
    for name in ("direct_url.json", "INSTALLER", "REQUESTED", "RECORD", "uv_cache.json"):
        for path in (target / SITE).glob(f"*.dist-info/{name}"):
            path.unlink()


def compile_all(target: Path) -> None:
    """The root is read-only where this runs: what is not compiled now is compiled at every start.

    By the Python in there, since a compiled file is for one version only."""
    loader = next(target.glob("lib*/ld-linux-*.so*"))
    libraries = ":".join(
        str(path) for base in ("lib", "usr/lib") for path in (target / base).glob("*-linux-gnu")
    )
    run(
        *(str(loader), "--library-path", libraries, str(target / "usr/bin" / PYTHON)),
        # -B: what compileall itself imports would be written with the paths of this machine.
        *("-I", "-B", "-m", "compileall", "-q", "-j", "0", "-s", str(target), "-p", "/"),
        *("--invalidation-mode", "unchecked-hash"),
        *(str(target / "usr/lib" / PYTHON), str(target / SITE)),
    )


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def run(*command: str) -> None:
    done = subprocess.run(command, cwd=REPOSITORY, check=False)
    if done.returncode != 0:
        sys.exit(f"image: `{command[0]}` failed with {done.returncode}")


if __name__ == "__main__":
    os.chdir(REPOSITORY)
    main(Path(sys.argv[1]).resolve(), *map(Path, sys.argv[2:]))
