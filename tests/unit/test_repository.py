"""What no file of the repository may hold: a registry's host, or a path of somebody's machine."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

# Taken apart here, or this file would be the first to hold them.
HOSTS = [
    ("pypi", "org"),
    ("files", "pythonhosted", "org"),
    ("registry", "npmjs", "org"),
    ("registry", "yarnpkg", "com"),
    ("proxy", "golang", "org"),
    ("sum", "golang", "org"),
    ("goproxy", "io"),
    ("index", "crates", "io"),
    ("static", "crates", "io"),
    ("repo", "maven", "apache", "org"),
    ("rubygems", "org"),
    ("registry", "docker", "io"),
    ("index", "docker", "io"),
    ("ghcr", "io"),
    ("quay", "io"),
    ("registry", "k8s", "io"),
    ("gcr", "io"),
    ("deb", "debian", "org"),
    ("archive", "ubuntu", "com"),
]
REGISTRY = re.compile(
    "|".join(r"(?<![\w-])" + r"\.".join(host) + r"(?![\w.-]*\w)" for host in HOSTS)
)
# Homes, scratch and work folders. /tmp itself, /usr and /etc are everybody's.
MACHINE = re.compile(
    r"(?<![\w./$})-])/(?:"
    + "|".join(["root", r"home/\w+", r"Users/\w+", "work", "mnt", "workspace"])
    + r")/\w"
)


def files() -> list[Path]:
    """What is committed or would be."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    paths = [REPOSITORY / name for name in listed.stdout.split("\0") if name]
    return [path for path in paths if path.is_file()]


def found(pattern: re.Pattern[str]) -> list[str]:
    hits = []
    for path in files():
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:  # a picture or a font
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if hit := pattern.search(line):
                hits.append(f"{path.relative_to(REPOSITORY)}:{number}: {hit[0]}")
    return hits


def test_there_is_something_to_look_at() -> None:
    names = {path.name for path in files()}

    assert {"pyproject.toml", "requirements.txt", "Makefile", "app.py"} <= names


def test_no_file_names_a_package_registry() -> None:
    assert found(REGISTRY) == []


def test_no_file_holds_a_path_of_one_machine() -> None:
    assert found(MACHINE) == []


@pytest.mark.parametrize("host", HOSTS, ids=["-".join(host) for host in HOSTS])
def test_a_registry_would_be_found_wherever_it_stands(host: tuple[str, ...]) -> None:
    name = ".".join(host)

    for line in (name, f"https://{name}/simple", f"image: {name}/library/busybox", f'"{name}"'):
        assert REGISTRY.search(line)
    assert not REGISTRY.search(f"my{name}")


def test_a_path_of_a_machine_would_be_found() -> None:
    for start in ("root", "home/ann", "Users/ann", "work"):
        assert MACHINE.search(f"see /{start}/notes.txt")
    for harmless in ("/usr/bin/env", "a/work/b", "https://example.org/home/ann/x", "$(HOME)/x"):
        assert not MACHINE.search(harmless)
