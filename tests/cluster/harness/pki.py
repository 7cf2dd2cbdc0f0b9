"""A certificate authority for one cluster, and kubeconfig files with certificates embedded.

Called by control_plane.py, through the `openssl` command line (OpenSSL or LibreSSL). Keys lie in
the cluster's private directory and are valid for a year. Not guaranteed: any protection beyond
that directory's mode; never use these certificates for anything but a test cluster.
"""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from .report import HarnessError

DAYS = "365"

# Python 3.13 verifies strictly: an authority without keyUsage, or a leaf without
# authorityKeyIdentifier, is refused.
AUTHORITY = """\
[req]
distinguished_name = dn
prompt = no
[dn]
CN = evenkeel test cluster
[ca]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
"""
LEAF = """\
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid, issuer
"""


@dataclass(frozen=True, slots=True)
class Certificate:
    certificate: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    directory: Path

    @property
    def certificate(self) -> Path:
        return self.directory / "ca.crt"

    @property
    def key(self) -> Path:
        return self.directory / "ca.key"

    def create(self) -> None:
        self.directory.mkdir(mode=0o700)
        config = self.directory / "openssl.cnf"  # the machine's own might be missing, or strange
        config.write_text(AUTHORITY)
        _openssl(
            *("req", "-x509", "-config", config, "-extensions", "ca", "-days", DAYS, *_NEW_KEY),
            *("-keyout", self.key, "-out", self.certificate),
        )

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> Certificate:
        return self._issue(name, user, groups, "extendedKeyUsage = clientAuth\n")

    def server(self, name: str, addresses: Sequence[str]) -> Certificate:
        names = ", ".join(addresses)
        extensions = f"extendedKeyUsage = serverAuth\nsubjectAltName = {names}\n"
        return self._issue(name, name, (), extensions)

    def signing_key(self, name: str) -> Certificate:
        """A bare key pair: what service account tokens are signed with."""
        key, public = self.directory / f"{name}.key", self.directory / f"{name}.pub"
        _openssl("genpkey", "-algorithm", "EC", *_CURVE, "-out", key)
        _openssl("pkey", "-in", key, "-pubout", "-out", public)
        return Certificate(certificate=public, key=key)

    def _issue(self, name: str, user: str, groups: Sequence[str], extensions: str) -> Certificate:
        made = Certificate(self.directory / f"{name}.crt", self.directory / f"{name}.key")
        request, config = self.directory / f"{name}.csr", self.directory / f"{name}.cnf"
        subject = "".join(f"/O={_escaped(group)}" for group in groups) + f"/CN={_escaped(user)}"
        config.write_text(LEAF + extensions)
        _openssl(
            *("req", "-config", self.directory / "openssl.cnf", "-utf8", "-subj", subject),
            *(*_NEW_KEY, "-keyout", made.key, "-out", request),
        )
        _openssl(
            *("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key),
            # No serial file: two processes would write it at once.
            *("-set_serial", f"0x{secrets.token_hex(8)}", "-days", DAYS),
            *("-extfile", config, "-out", made.certificate),
        )
        request.unlink()
        config.unlink()
        return made


def write_kubeconfig(path: Path, *, server: str, authority: Path, user: Certificate) -> Path:
    """Certificates are embedded, so the file works from every directory and can be copied."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "evenkeel",
        "clusters": [
            {
                "name": "evenkeel",
                "cluster": {"server": server, "certificate-authority-data": _embedded(authority)},
            }
        ],
        "users": [
            {
                "name": "evenkeel",
                "user": {
                    "client-certificate-data": _embedded(user.certificate),
                    "client-key-data": _embedded(user.key),
                },
            }
        ],
        "contexts": [
            {"name": "evenkeel", "context": {"cluster": "evenkeel", "user": "evenkeel"}},
        ],
    }
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(document, indent=2) + "\n")  # every JSON file is YAML too
    draft.replace(path)
    return path


# Elliptic curves: a key in a millisecond, where RSA takes a second on a busy machine.
_CURVE = ("-pkeyopt", "ec_paramgen_curve:prime256v1")
_NEW_KEY = ("-newkey", "ec", *_CURVE, "-nodes")


def _embedded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _escaped(text: str) -> str:
    """`/` would begin the next part of a subject, and `+` another value of this one."""
    return "".join(f"\\{letter}" if letter in "\\/+" else letter for letter in text)


def _openssl(*arguments: str | Path) -> None:
    command = ["openssl", *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise HarnessError("no `openssl` command here: install OpenSSL.") from error
    if done.returncode != 0:
        raise HarnessError(f"`openssl {arguments[0]}` failed: {done.stderr.strip()}")
