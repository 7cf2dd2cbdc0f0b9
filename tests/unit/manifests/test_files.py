"""Directories, subdirectories, and what lies there beside manifests."""

import os
from pathlib import Path

import pytest
from tests.unit.manifests.test_manifest import manifest, names, never, said

from evenkeel.manifests.manifest import Manifests, load


def loaded(directory: Path, *, recursive: bool = False) -> Manifests:
    return load([str(directory)], recursive=recursive, stdin=never, created=1_767_225_599)


def test_subdirectories_are_read_if_they_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(manifest("b"))
    (tmp_path / "a" / "deeper").mkdir(parents=True)
    (tmp_path / "a" / "deeper" / "c.yml").write_text(manifest("c"))
    assert names(loaded(tmp_path)) == ["default/b"]
    assert names(loaded(tmp_path, recursive=True)) == ["default/c", "default/b"]


def test_a_directory_that_holds_only_directories_says_how_to_read_them(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "c.yaml").write_text(manifest("c"))
    (problem,) = said(loaded(tmp_path))
    assert problem.endswith(
        "holds no file that ends in .yaml, .yml, .json; with -R its subdirectories are read, too"
    )
    assert said(loaded(tmp_path, recursive=True)) == []


def test_a_link_in_a_circle_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifest("a"))
    (tmp_path / "again").symlink_to(tmp_path)
    assert names(loaded(tmp_path, recursive=True)) == ["default/a"]


def test_a_link_to_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_text(manifest("a"))
    (tmp_path / "a.yaml").symlink_to(tmp_path / "elsewhere.txt")
    assert names(loaded(tmp_path)) == ["default/a"]


NO_MANIFESTS = {
    "kustomization.yaml": "resources: [a.yaml]\n",
    "values.yaml": "image: {tag: 1.0}\n",
    "hosts.yaml": "- one\n- two\n",
    "pipeline.yaml": "kind: pipeline\nname: default\n",
    "package.json": '{"name": "x"}',
}


@pytest.mark.parametrize("name", NO_MANIFESTS)
def test_in_a_directory_what_is_no_kubernetes_object_is_skipped(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(NO_MANIFESTS[name])
    (tmp_path / "good.yaml").write_text(manifest("good"))
    found = loaded(tmp_path)
    assert (names(found), said(found)) == (["default/good"], [])
    assert [str(note) for note in found.skipped] == [f"{tmp_path / name}: document 1"]


@pytest.mark.parametrize("name", NO_MANIFESTS)
def test_a_file_that_is_named_must_hold_objects(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(NO_MANIFESTS[name])
    found = loaded(tmp_path / name)
    assert said(found) != []
    assert found.skipped == []


def test_a_file_with_half_of_a_head_is_no_values_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(manifest("a").replace("apiVersion", "apiversion"))
    (problem,) = said(loaded(tmp_path))
    assert problem.endswith("default/a: apiVersion: is required; write evenkeel.dev/v1alpha1")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_directory_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0)
    (problem,) = said(loaded(tmp_path, recursive=True))
    assert "cannot be read: Permission denied" in problem
