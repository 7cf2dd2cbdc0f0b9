"""Where the ledger is kept: by the settings, in the data directory, or nowhere."""

import os

import pytest

from evenkeel.ledger.where import data_folder, shown, url_of
from evenkeel.settings import Settings


def test_the_url_of_the_settings_goes_before_the_data_directory(tmp_path):
    settings = Settings(store_url="none", data=str(tmp_path))
    assert url_of(settings, {}) == "none"


def test_the_data_directory_is_made_with_all_above_it_and_for_its_owner_alone(tmp_path):
    folder = tmp_path / "a b" / "data"
    assert url_of(Settings(data=str(folder)), {}) == f"sqlite://{tmp_path}/a%20b/data/evenkeel.db"
    assert folder.stat().st_mode & 0o777 == 0o700


FOLDERS = {
    "as it is set": ("/srv/data", {"XDG_STATE_HOME": "/state", "HOME": "/houses/me"}, "/srv/data"),
    "below the state": ("", {"XDG_STATE_HOME": "/state", "HOME": "/houses/me"}, "/state/evenkeel"),
    "below the home": ("", {"HOME": "/houses/me"}, "/houses/me/.local/state/evenkeel"),
    "a relative state is none": (
        "",
        {"XDG_STATE_HOME": "state", "HOME": "/houses/me"},
        "/houses/me/.local/state/evenkeel",
    ),
    "without a home": ("", {}, None),
}


@pytest.mark.parametrize(("data", "environment", "folder"), FOLDERS.values(), ids=FOLDERS)
def test_the_data_directory(data, environment, folder):
    found = data_folder(Settings(data=data), environment)
    assert found == folder if folder is None else str(found) == folder


def test_where_the_data_directory_cannot_be_there_nothing_is_kept(tmp_path):
    (tmp_path / "file").touch()
    assert url_of(Settings(data=str(tmp_path / "file" / "data")), {}) == "none"
    assert url_of(Settings(), {}) == "none"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_where_the_data_directory_cannot_be_written_nothing_is_kept(tmp_path):
    tmp_path.chmod(0o500)
    assert url_of(Settings(data=str(tmp_path)), {}) == "none"


SHOWN = {
    "postgresql://me:secret@db:5432/runs?sslpassword=secret": "postgresql://db:5432/runs",
    "postgresql://me:sec/ret@db/runs": "a URL that cannot be read",
    "postgresql:///runs?password=secret": "postgresql:///runs",
    "sqlite:///srv/evenkeel.db": "sqlite:///srv/evenkeel.db",
    "host=db password=secret": "a URL that cannot be read",
    "none": "none",
}


@pytest.mark.parametrize(("url", "text"), SHOWN.items(), ids=range(len(SHOWN)))
def test_no_password_of_a_url_is_shown(url, text):
    assert shown(url) == text
    assert "secret" not in shown(url)
    assert "sec/ret" not in shown(url)
