"""`evenkeel run` where something is missing: one sentence, the right exit code, no traceback.

Most rows call the console script's own function in this process: importing all of kopf and the
Kubernetes client again costs two seconds of a core a row. One row of each kind is a real process.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cluster.harness import Cluster
from tests.cluster.operator_process import environment, evenkeel, operator

from evenkeel.cli import main

REFUSED, USAGE = 1, 2

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Done]]:
    """`evenkeel ...` in this process."""
    for name in [name for name in os.environ if name not in environment({})]:
        monkeypatch.delenv(name)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level

    def call(*arguments: str, settings: dict[str, str] | None = None) -> Done:
        monkeypatch.setattr(sys, "argv", ["evenkeel", *arguments])
        for name, text in (settings or {}).items():
            monkeypatch.setenv(f"EVENKEEL_{name}", text)
        said, complained = io.StringIO(), io.StringIO()
        with (
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(complained),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        code = ended.value.code
        assert isinstance(code, int)
        return Done(arguments, code, said.getvalue(), complained.getvalue())

    yield call
    root.handlers[:], root.level = handlers, level


def sentence_of(done: Done) -> str:
    """The one thing that was said, with nothing around it that only a programmer could read."""
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]  # the log
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("evenkeel: ")
    return lines[0]


# --- without any cluster ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nonsense",), "No such option"),
        (("--log-format", "xml"), "'xml' is not one of"),
        (("--config",), "requires an argument"),
        (("left", "over"), "unexpected extra arguments"),
    ],
    ids=["an unknown flag", "an unknown choice", "a flag without its value", "too many words"],
)
def test_a_wrong_command_line_is_a_usage_error(
    here: Callable[..., Done], arguments: tuple[str, ...], words: str
) -> None:
    done = here("run", *arguments)

    assert done.returncode == USAGE
    assert words in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


SETTINGS_FILES: dict[str, tuple[str | None, str]] = {
    "a file that is not there": (None, "No such file or directory"),
    "a file that is no YAML": ("a: [", "not YAML"),
    "a file that is a list": ("[a]", "expected a mapping"),
    "a setting that does not exist": ("preShedule: 5", "preShedule: "),
    "a number that is none": ("grace: soon", "grace: "),
    "a rebuild after the index has ended": (
        "indexRebuild: 600",
        "indexRebuild (600) must be below lookahead (600)",
    ),
}


@pytest.mark.parametrize(
    ("content", "words"),
    SETTINGS_FILES.values(),
    ids=[key.replace(" ", "_") for key in SETTINGS_FILES],
)
def test_a_bad_settings_file_is_named_with_its_field(
    here: Callable[..., Done], tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "settings.yaml"
    if content is not None:
        file.write_text(content)

    done = here("run", "--config", str(file))

    assert done.returncode == USAGE
    assert words in sentence_of(done)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"GRACE": "soon"}, "grace: "),
        ({"CREATES_IN_FLIGHT": "0"}, "createsInFlight: "),
        ({"LOOKAHEAD": "50"}, "indexRebuild (60) must be below lookahead (50)"),
        ({"HEALTH_LISTEN": "here"}, "healthListen: 'here' is not an address"),
    ],
    ids=["no number", "out of bounds", "two that do not fit", "no address"],
)
def test_a_bad_variable_is_named(
    here: Callable[..., Done], kwok_cluster: Cluster, settings: dict[str, str], words: str
) -> None:
    kwok_cluster.install_crd()  # an address is looked at last of all

    done = here("run", "--kubeconfig", str(kwok_cluster.kubeconfig), settings=settings)

    assert done.returncode == USAGE
    assert words in sentence_of(done)


def test_outside_a_cluster_a_kubeconfig_is_asked_for(here: Callable[..., Done]) -> None:
    done = here("run")

    assert done.returncode == REFUSED
    assert "name a file: --kubeconfig" in sentence_of(done)


def test_the_kubeconfig_of_other_tools_is_not_taken(
    here: Callable[..., Done], monkeypatch: pytest.MonkeyPatch, kwok_cluster: Cluster
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kwok_cluster.kubeconfig))

    done = here("run")

    assert done.returncode == REFUSED
    assert "in-cluster credentials" in sentence_of(done)


# --- kubeconfigs that lead nowhere --------------------------------------------------------------

Change = Callable[[dict[str, Any]], object]


def cluster_of(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["clusters"][0]["cluster"]
    return found


def user_of(config: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = config["users"][0]["user"]
    return found


def without_data(part: dict[str, Any], **fields: str) -> None:
    for field, text in fields.items():
        part.pop(f"{field}-data".replace("_", "-"), None)
        part[field.replace("_", "-")] = text


CHANGES: dict[str, tuple[Change, str]] = {
    "a server that nobody is": (
        lambda config: cluster_of(config).update(server="https://127.0.0.1:1"),
        "the API server does not answer",
    ),
    "a name that nobody has": (
        lambda config: cluster_of(config).update(server="https://nowhere.invalid"),
        "the API server does not answer",
    ),
    "a certificate authority that is not there": (
        lambda config: without_data(cluster_of(config), certificate_authority="/nowhere/ca.crt"),
        "/nowhere/ca.crt",
    ),
    "a client certificate that is not there": (
        lambda config: without_data(user_of(config), client_certificate="/nowhere/client.crt"),
        "/nowhere/client.crt",
    ),
    "a certificate authority that is none": (
        lambda config: cluster_of(config).update({"certificate-authority-data": "bm9uZQ=="}),
        "certificates",
    ),
    "data that is no base64": (
        lambda config: cluster_of(config).update({"certificate-authority-data": "?"}),
        "kubeconfig",
    ),
    "a context that is not there": (
        lambda config: config.update({"current-context": "other"}),
        "other",
    ),
    "no current context": (lambda config: config.pop("current-context"), "current-context"),
    "no users": (lambda config: config.pop("users"), "system:anonymous"),
    "a program for credentials that is not there": (
        lambda config: config["users"][0].update(
            user={
                "exec": {
                    "apiVersion": "client.authentication.k8s.io/v1",
                    "command": "/nowhere/login",
                    "interactiveMode": "Never",
                }
            }
        ),
        "the credential plugin gave nothing",
    ),
}


@pytest.mark.parametrize(
    ("change", "words"), CHANGES.values(), ids=[key.replace(" ", "_") for key in CHANGES]
)
def test_a_kubeconfig_that_leads_nowhere(
    here: Callable[..., Done],
    kwok_cluster: Cluster,
    tmp_path: Path,
    change: Change,
    words: str,
) -> None:
    config = yaml.safe_load(kwok_cluster.kubeconfig.read_text())
    change(config)
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.safe_dump(config))

    done = here("run", "--kubeconfig", str(file))

    assert done.returncode == REFUSED
    assert words in sentence_of(done)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no such file"),
        ("", ""),
        ("a: 1\ntoken: [secret", "line 2 is not YAML"),
        ("- a", ""),
        ("text", ""),
        ("\x00\x01", ""),
    ],
    ids=["not there", "empty", "no YAML", "a list", "a word", "binary"],
)
def test_a_kubeconfig_that_is_none(
    here: Callable[..., Done], tmp_path: Path, content: str | None, words: str
) -> None:
    file = tmp_path / "kubeconfig"
    if content is not None:
        file.write_text(content)

    done = here("run", "--kubeconfig", str(file))

    assert done.returncode == REFUSED
    sentence = sentence_of(done)
    assert f"kubeconfig {file}" in sentence
    assert words in sentence
    assert "secret" not in sentence


def test_a_kubeconfig_that_cannot_be_read(here: Callable[..., Done], tmp_path: Path) -> None:
    done = here("run", "--kubeconfig", str(tmp_path))  # a directory: root may read any file

    assert done.returncode == REFUSED
    assert f"kubeconfig {tmp_path}" in sentence_of(done)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("run", "--nonsense"), USAGE), (("run", "--config", "/nowhere"), USAGE), (("run",), REFUSED)],
    ids=["a wrong flag", "a bad setting", "no cluster"],
)
def test_a_real_process_ends_by_the_same_codes(arguments: tuple[str, ...], code: int) -> None:
    done = evenkeel(*arguments)

    assert done.returncode == code
    assert "Traceback" not in done.stderr


# --- clusters that are not ready for it ---------------------------------------------------------


def test_without_the_right_to_list_it_says_which(
    here: Callable[..., Done], kwok_cluster: Cluster
) -> None:
    kwok_cluster.install_crd()
    theirs = kwok_cluster.user_kubeconfig("without-rights")

    done = here("run", "--kubeconfig", str(theirs))

    assert done.returncode == REFUSED
    said = sentence_of(done)
    assert "not allowed to list scheduledjobs.evenkeel.dev" in said
    assert '"without-rights"' in said


def test_an_address_that_is_taken_is_named(
    here: Callable[..., Done], kwok_cluster: Cluster
) -> None:
    kwok_cluster.install_crd()
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        done = here("run", "--kubeconfig", str(kwok_cluster.kubeconfig), "--health-listen", taken)

    assert done.returncode == REFUSED
    said = sentence_of(done)
    assert f"cannot listen on {taken}" in said
    assert "--health-listen" in said


# --- ending on request --------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_it_ends_well(
    kwok_cluster: Cluster, tmp_path: Path, number: signal.Signals
) -> None:
    kwok_cluster.install_crd()
    with operator(kwok_cluster.kubeconfig, directory=tmp_path) as running:
        running.send(number)

        assert running.wait(within_s=90) == 0
        said = [json.loads(line) for line in running.text().splitlines()]
        assert said[-1]["event"] == "stopped"
        assert not [line for line in said if line["level"] == "error"]


def test_asked_to_end_twice_it_still_ends_well(kwok_cluster: Cluster, tmp_path: Path) -> None:
    kwok_cluster.install_crd()
    with operator(kwok_cluster.kubeconfig, directory=tmp_path) as running:
        running.send(signal.SIGTERM)
        time.sleep(0.01)
        running.send(signal.SIGTERM)

        assert running.wait(within_s=90) == 0
