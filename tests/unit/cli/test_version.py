"""`evenkeel version`: which release, and from which commit."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from evenkeel import release
from evenkeel.cli.version import version

REPOSITORY = Path(__file__).parents[3]


def said(*arguments: str) -> str:
    done = CliRunner().invoke(version, arguments)
    assert done.exit_code == 0
    return done.output


def test_it_is_the_version_of_pyproject() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert project["version"] == release.VERSION


def test_an_image_tells_the_commit_it_was_built_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stamp = tmp_path / "commit"
    stamp.write_text("0123abcd")
    monkeypatch.setattr(release, "_STAMP", stamp)
    assert said() == f"evenkeel {release.VERSION}, commit 0123abcd\n"
    assert json.loads(said("-o", "json")) == {"version": release.VERSION, "commit": "0123abcd"}


def test_a_checkout_tells_its_own_commit() -> None:
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert release.commit().removesuffix("-dirty") == head.stdout.strip()


def test_what_is_installed_without_git_or_stamp_says_that_it_does_not_know(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "_PACKAGE", tmp_path)
    monkeypatch.setattr(release, "_STAMP", tmp_path / "commit")
    assert said() == f"evenkeel {release.VERSION}, commit unknown\n"


def test_a_checkout_of_something_else_that_it_lies_in_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(release, "_PACKAGE", tmp_path)
    monkeypatch.setattr(release, "_STAMP", tmp_path / "commit")
    assert release.commit() == ""
