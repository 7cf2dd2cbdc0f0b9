"""A kubeconfig is read while somebody writes it: whatever is there then, it is one error."""

import textwrap
from pathlib import Path

import pytest

from evenkeel.errors import CannotStart
from evenkeel.kube import credentials

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters:
- name: a
  cluster:
    server: https://127.0.0.1:1
    insecure-skip-tls-verify: true
contexts:
- name: a
  context:
    cluster: a
    user: u
current-context: a
users:
- name: u
  user:
    token: abc
"""


PLUGIN = """\
    exec:
      apiVersion: client.authentication.k8s.io/v1
      interactiveMode: Never
      command: {command}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kubeconfig"


def test_one_that_is_half_written_is_a_sentence_wherever_it_ends(file: Path) -> None:
    read = 0
    for length in range(len(KUBECONFIG)):
        file.write_text(KUBECONFIG[:length])
        try:
            credentials.load(file)
            read += 1
        except CannotStart:
            continue
    assert read < len(KUBECONFIG) / 2


def test_a_server_that_is_no_address_is_a_sentence(file: Path) -> None:
    file.write_text(KUBECONFIG.replace("https://127.0.0.1:1", "5"))
    with pytest.raises(CannotStart, match="not of the kind"):
        credentials.load(file)


def test_a_certificate_that_is_not_there_is_a_sentence(file: Path) -> None:
    file.write_text(KUBECONFIG.replace("token: abc", "client-certificate: none.crt"))
    with pytest.raises(CannotStart):
        credentials.load(file)


def test_a_token_in_a_file_ends_before_its_newline(file: Path, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("abc\n")
    file.write_text(KUBECONFIG.replace("token: abc", f"tokenFile: {tmp_path}/token"))
    assert credentials.load(file).headers() == {"Authorization": "Bearer abc"}


# --- credentials that a program gives -------------------------------------------------------------


@pytest.fixture
def plugin(tmp_path: Path, file: Path) -> Path:
    """Gives the token that is in the file `token`; where there is none it fails."""
    program = tmp_path / "plugin"
    program.write_text(
        textwrap.dedent(f"""\
            #!/bin/sh
            token=$(cat {tmp_path}/token) || exit 1
            echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",
              "status":{{"token":"'$token'"}}}}'
            """)
    )
    program.chmod(0o755)
    file.write_text(KUBECONFIG.replace("    token: abc\n", PLUGIN.format(command=program)))
    return tmp_path / "token"


def test_a_plugin_gives_the_token(file: Path, plugin: Path) -> None:
    plugin.write_text("abc")
    assert credentials.load(file).headers() == {"Authorization": "Bearer abc"}


def test_a_plugin_that_fails_does_not_make_us_nobody(file: Path, plugin: Path) -> None:
    """An API server lets nobody in without a 401: the credentials would never be read again."""
    with pytest.raises(CannotStart, match="the credential plugin gave nothing"):
        credentials.load(file)


def test_a_user_without_any_credentials_may_be_meant(file: Path) -> None:
    file.write_text(KUBECONFIG.replace("token: abc", "{}"))
    assert credentials.load(file).headers() == {}
