"""Where the ledger is kept: the URL that the settings mean, and how it is shown.

`process` calls it. Not guaranteed: that the store can be opened.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from evenkeel.ledger.opening import NONE
from evenkeel.settings import Settings

FILE = "evenkeel.db"


def url_of(settings: Settings, environment: Mapping[str, str] = os.environ) -> str:
    """`store.url`; without one a file in the data directory, or none where that is not writable."""
    if settings.store_url:
        return settings.store_url
    folder = data_folder(settings, environment)
    if folder is None or not _is_writable(folder):
        return NONE
    return f"sqlite:///{quote(str(folder / FILE).lstrip('/'))}"


def data_folder(settings: Settings, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The data directory. None: there is not even a home."""
    if settings.data:
        return Path(settings.data).absolute()
    state = environment.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):  # a relative one is to be ignored, says its specification
        return Path(state) / "evenkeel"
    home = environment.get("HOME", "")
    return Path(home) / ".local/state/evenkeel" if os.path.isabs(home) else None


def shown(url: str) -> str:
    """The URL as a log line may have it: scheme, host and path, and nothing that may be secret."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", f":{parts.port}" if parts.port else ""
    except ValueError:
        return "a URL that cannot be read"
    if not parts.scheme:
        return url if url == NONE else "a URL that cannot be read"
    return f"{parts.scheme}://{host}{port}{parts.path}"


def _is_writable(folder: Path) -> bool:
    """Whether a file can be made there. A folder that is lacking is made."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)
