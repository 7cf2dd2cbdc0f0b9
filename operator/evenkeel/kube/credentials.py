"""The operator's credentials, as the `kubernetes` package finds them: kubeconfig or in-cluster.

They are read again when the API server says 401, so that rotated tokens and certificates are used.
Where credentials that the kubeconfig names cannot be had, `load` fails. Without them the operator
would be an anonymous user, who gets 403 for ever and never the 401 that has them read again.
"""

import hashlib
import os
import ssl
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from kubernetes import client, config
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

from evenkeel.errors import CannotStart

NO_TOKEN = (OSError, ValueError, config.ConfigException)
"""What `Credentials.headers` may raise."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A server and how to speak to it."""

    server: str
    context: ssl.SSLContext | None
    configuration: client.Configuration
    fingerprint: str = ""
    """A digest of server, certificate, key and CA: while it is the same, connections can be kept.
    The token is no part of it: each request carries it, and it may change at any time."""

    def headers(self) -> dict[str, str]:
        """Authorization, if any. The package's hook reads a projected token again each minute."""
        token = self.configuration.get_api_key_with_prefix("authorization") or (
            self.configuration.get_api_key_with_prefix("BearerToken")
        )
        # A token file mostly ends with a newline, which a header must not contain.
        return {"Authorization": token.strip()} if token else {}

    def context_without_certificate(self) -> ssl.SSLContext | None:
        """For a call in somebody else's name, for whom our certificate must not speak."""
        return _context(self.configuration, certificate=False) if self.context else None


def load(kubeconfig: Path | None) -> Credentials:
    """From that kubeconfig, or from the Pod's service account. CannotStart says what is wrong."""
    configuration = client.Configuration()
    if kubeconfig is not None and not any(
        Path(part).exists() for part in str(kubeconfig).split(os.pathsep)
    ):
        raise CannotStart(f"cannot use kubeconfig {kubeconfig}: there is no such file")
    has_plugin = False
    try:
        if kubeconfig is not None:
            has_plugin = _load_file(kubeconfig, configuration)
        else:
            config.load_incluster_config(  # type: ignore[no-untyped-call]
                client_configuration=configuration
            )
    except (
        config.ConfigException,
        OSError,
        yaml.YAMLError,
        ValueError,
        TypeError,
        AttributeError,
        KeyError,
    ) as error:
        where = f"kubeconfig {kubeconfig}" if kubeconfig else "in-cluster credentials"
        remedy = "" if kubeconfig else " (outside a cluster, name a file: --kubeconfig)"
        raise CannotStart(f"cannot use {where}: {_first_line(error)}{remedy}") from error
    try:
        context = _context(configuration) if configuration.host.startswith("https") else None
        found = Credentials(configuration.host.rstrip("/"), context, configuration)
        fingerprint = _fingerprint(found)
    except (ssl.SSLError, OSError, config.ConfigException) as error:
        raise CannotStart(f"cannot use the certificates of {kubeconfig}: {error}") from error
    if getattr(configuration, "proxy", None) or getattr(configuration, "tls_server_name", None):
        raise CannotStart(
            f"kubeconfig {kubeconfig}: proxy-url and tls-server-name are not supported"
        )
    # The package only logs that the plugin failed, and goes on without credentials.
    if has_plugin and not configuration.cert_file and not found.headers():
        raise CannotStart(
            f"cannot use kubeconfig {kubeconfig}: the credential plugin gave nothing; "
            "run its `exec` command by hand to see why"
        )
    return replace(found, fingerprint=fingerprint)


def _load_file(kubeconfig: Path, configuration: client.Configuration) -> bool:
    """Fill the configuration; True when the user's credentials come from a program."""
    merged = KubeConfigMerger(str(kubeconfig))  # type: ignore[no-untyped-call]
    if merged.config is None:
        raise config.ConfigException("there is nothing in it")
    loader = KubeConfigLoader(  # type: ignore[no-untyped-call]
        merged.config, config_base_path=None, config_persister=merged.save_changes
    )
    loader.load_and_set(configuration)  # type: ignore[no-untyped-call]
    return "exec" in (loader._user or ())  # no public attribute tells


def _fingerprint(credentials: Credentials) -> str:
    configuration = credentials.configuration
    digest = hashlib.sha256(credentials.server.encode())
    for file in (configuration.cert_file, configuration.key_file, configuration.ssl_ca_cert):
        if file:
            digest.update(Path(file).read_bytes())
    return digest.hexdigest()


def _context(configuration: client.Configuration, *, certificate: bool = True) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
    # Python 3.13 refuses CAs without a key-usage extension; many clusters have such, and kubectl
    # takes them.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if configuration.cert_file and certificate:
        context.load_cert_chain(configuration.cert_file, configuration.key_file)
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _first_line(error: BaseException) -> str:
    if isinstance(
        error, AttributeError | KeyError | TypeError
    ):  # their text is Python's, and tells a person nothing
        return "a field is missing, or not of the kind that it should be"
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        # Without the lines that yaml quotes: there are secrets among them.
        return f"line {error.problem_mark.line + 1} is not YAML: {error.problem}"
    return (str(error).splitlines() or [type(error).__name__])[0]
