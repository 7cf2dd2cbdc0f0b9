"""Settings from file, variables and options: the later overrides; a mistake is one sentence."""

import pytest

from evenkeel.errors import BadSetting
from evenkeel.settings import Settings, load


@pytest.fixture
def file(tmp_path):
    def write(text, name="evenkeel.yaml"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_without_anything_the_defaults_stand():
    settings = load(file=None, environment={})
    assert settings == Settings()
    assert (settings.pre_schedule_s, settings.grace_s, settings.lookahead_s) == (10, 30, 600)
    assert settings.warnings() == []


def test_the_environment_beats_the_file_and_flags_beat_both(file):
    path = file("grace: 40\nindexRebuild: 50\nhealthListen: 127.0.0.1:1\n")
    environment = {"EVENKEEL_GRACE": "41", "EVENKEEL_HEALTH_LISTEN": "127.0.0.1:2"}
    settings = load(file=path, environment=environment, health_listen="127.0.0.1:3")
    assert settings.index_rebuild_s == 50
    assert settings.grace_s == 41
    assert settings.health_listen == "127.0.0.1:3"


def test_flags_that_were_not_given_beat_nothing(file):
    path = file("namespaces: [shop]\nhealthListen: 127.0.0.1:1\n")
    settings = load(file=path, environment={}, health_listen=None, namespaces=())
    assert (settings.health_listen, settings.namespaces) == ("127.0.0.1:1", ("shop",))


NAMESPACES = {
    "one": ("shop", ("shop",)),
    "two": ("shop,bank", ("shop", "bank")),
    "with blanks": (" shop , bank ", ("shop", "bank")),
    "set and empty is the whole cluster": ("", ()),
}


@pytest.mark.parametrize(("text", "names"), NAMESPACES.values(), ids=NAMESPACES)
def test_namespaces_in_the_environment(text, names):
    assert load(file=None, environment={"EVENKEEL_NAMESPACES": text}).namespaces == names


IN_A_MAPPING = {
    "placement_mode": ("mode", "Observe"),
    "placement_weigh": ("weigh", "Requests"),
    "placement_duration": ("duration", "Ignore"),
    "placement_keep_on_resume_s": ("keepOnResume", 60),
    "metrics_schedules": ("schedules", "Off"),
    "store_url": ("url", "none"),
    "store_retention_days": ("retentionDays", 7),
    "store_retention_runs": ("retentionRuns", 50),
    "store_max_size": ("maxSize", "512Mi"),
    "store_buffer": ("buffer", 2000),
}


@pytest.mark.parametrize(("field", "written"), IN_A_MAPPING.items(), ids=IN_A_MAPPING)
def test_a_setting_in_a_mapping_is_read_from_file_and_environment(file, field, written):
    name, value = written
    path = file(f"grace: 40\n{field.partition('_')[0]}:\n  {name}: {value}\n")
    variable = f"EVENKEEL_{field.removesuffix('_s').upper()}"
    assert load(file=path, environment={}) == Settings(grace_s=40, **{field: value})
    assert load(file=None, environment={variable: str(value)}) == Settings(**{field: value})
    default = str(Settings.model_fields[field].default)
    assert load(file=path, environment={variable: default}) == Settings(grace_s=40)


def test_a_mapping_whose_lines_are_all_commented_out_is_as_if_it_were_not_there(file):
    path = file("grace: 40\nplacement:\n  # mode: Observe\n")
    assert load(file=path, environment={}) == Settings(grace_s=40)


SIZES = {"1Gi": 2**30, "5Mi": 5 * 2**20, "2097152": 2**21, " 2048Ki ": 2**21, "1Ti": 2**40}


@pytest.mark.parametrize(("text", "number"), SIZES.items())
def test_a_size_is_written_as_kubernetes_does_or_in_bytes(text, number):
    assert Settings(store_max_size=text).store_max_size == number


BAD = {
    "a size with another unit": ("store: {maxSize: 1GB}", ["store.maxSize: write a size, such as"]),
    "a size below any use": ("store: {maxSize: 5Ki}", ["store.maxSize: ", "1048576"]),
    "a URL with a slip": ("store: {uri: none}", ["store.uri: there", "did you mean store.url?"]),
    "no buffer at all": ("store: {buffer: 0}", ["store.buffer: ", "1000"]),
    "a time for a number of days": (
        "store: {retentionDays: 30d}",
        ["store.retentionDays: write a plain number, such as 30"],
    ),
    "a name that is none": ("speed: 3", ["speed: there is no such setting"]),
    "a name with a slip": ("preShedule: 3", ["preShedule: there", "did you mean preSchedule?"]),
    "the name of the variable": ("pre_schedule: 3", ["pre_schedule: there", "mean preSchedule?"]),
    "a part of a name with a slip": (
        "placement: {mod: Observe}",
        ["placement.mod: there", "mean placement.mode?"],
    ),
    "a word that a setting does not know": (
        "placement: {mode: Even}",
        ["placement.mode: write Balance or Observe"],
    ),
    "a weight of another kind": (
        "placement: {weigh: CPU}",
        ["placement.weigh: write Runs or Requests"],
    ),
    "a duration in seconds": (
        "placement: {duration: 90}",
        ["placement.duration: write Learned or Ignore"],
    ),
    "a switch for a word": ("metrics: {schedules: 5000}", ["metrics.schedules: write Auto, On or"]),
    "days for seconds": (
        "placement: {keepOnResume: 7d}",
        ["placement.keepOnResume: write a plain number of seconds"],
    ),
    "less than no time": ("placement: {keepOnResume: -1}", ["placement.keepOnResume: ", "0"]),
    "a word for a mapping": ("placement: Observe", ["placement: there", "mean placement.mode?"]),
    "a number for an address": ("healthListen: 8081", ["healthListen: write a text"]),
    "a word for a number": ("grace: soon", ["grace", "number"]),
    "a duration for a number": ("grace: 30s", ["grace: write a plain number of seconds"]),
    "a word for a count": ("inboxSize: many", ["inboxSize: write a plain number, such"]),
    "a path for a namespace": ("namespaces: [a/b]", ["namespaces: 'a/b' is not a name"]),
    "no namespace at all": ("namespaces: ['']", ["namespaces: '' is not a name"]),
    "one namespace without brackets": ("namespaces: shop", ["namespaces: write a list"]),
    "too long a lookahead": ("lookahead: 90000", ["lookahead", "64800"]),
    "a rebuild after the index has run dry": (
        "indexRebuild: 700",
        ["indexRebuild (700)", "lookahead (600)"],
    ),
    "a span that does not fit the index": (
        "lookahead: 64800\ngrace: 3600",
        ["65000"],
    ),
    "no number of seconds at all": ("grace: .nan", ["grace"]),
    "not a mapping": ("- grace", ["a mapping of settings"]),
    "not YAML": ("grace: [", ["not YAML"]),
    "not text": (b"\xff\xfe\x00g", ["not UTF-8"]),
}


@pytest.mark.parametrize(("text", "words"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_one_sentence(file, text, words):
    with pytest.raises(BadSetting) as refusal:
        load(file=file(text), environment={})
    sentence = str(refusal.value)
    assert "\n" not in sentence
    assert all(word in sentence for word in words), sentence


def test_a_file_that_is_not_there_is_one_sentence(tmp_path):
    with pytest.raises(BadSetting, match="No such file"):
        load(file=tmp_path / "none.yaml", environment={})


def test_an_empty_file_changes_nothing(file):
    assert load(file=file(""), environment={}) == Settings()


def test_settings_that_defeat_their_purpose_are_warned_about():
    hasty = Settings(grace_s=1, loop_interval_s=2, pre_schedule_s=1)
    assert ["grace" in hasty.warnings()[0], "preSchedule" in hasty.warnings()[1]] == [True, True]


def test_a_namespace_named_twice_is_one():
    assert load(file=None, environment={}, namespaces=("a", "b", "a")).namespaces == ("a", "b")
