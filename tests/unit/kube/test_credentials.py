"""A kubeconfig is read while somebody writes it: whatever is there then, it is one error."""

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
