"""The page on requests: its commands on a real API server, its parameters in a real shell, and its
tables beside the CRD.

The times of the page lie in a past that the cluster of a test does not have. The tests put times of
their own in the place of the page's, and nothing else.
"""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
import yaml
from tests.cluster.world import Json, eventually, moment
from tests.docs.blocks import REPOSITORY, block, shell
from tests.docs.reader import Reader
from tests.unit.core.test_requests import REQUESTED_MEETS_SCHEDULED, SCHEDULED_MEETS_REQUESTED
from tests.unit.test_words import table, words_of_table

from evenkeel.model import Concurrency, Meeting, RequestState

CRD = REPOSITORY / "crds" / "runrequests.evenkeel.dev.yaml"
MEETINGS = table("requests.md", "Meeting other runs")
EVERY_TEN_MINUTES = 'schedule: "*/10 * * * *"'


def yearly(text: str) -> str:
    """The schedule of the page with times that do not come between the commands of a test."""
    assert EVERY_TEN_MINUTES in text
    return text.replace(EVERY_TEN_MINUTES, 'schedule: "0 3 1 1 *"')


# --- on a cluster ---------------------------------------------------------------------------------


def test_a_run_on_demand_is_made_and_told_of(reader: Reader) -> None:
    reader.has_file("report.yaml", yearly(block("file report.yaml").text))
    reader.has_file("now.yaml", block("request now.yaml").text)
    reader.types("kubectl apply -f report.yaml")

    reader.follows(block("requests-now"))
    reader.follows(block("requests-refused"))

    (job,) = reader.world.jobs(reader.ns)
    container = job["spec"]["template"]["spec"]["containers"][0]
    assert container["env"][0] == {"name": "REGION", "value": "us"}
    assert re.fullmatch(r"report-q0[a-z2-7]{6}-\d+", job["metadata"]["name"])


def test_a_run_for_a_time_that_has_passed_sees_that_time(reader: Reader) -> None:
    again = block("request again.yaml").text
    reader.has_file("report.yaml", yearly(block("file report.yaml").text))
    reader.has_file("again.yaml", again)
    reader.types("kubectl apply -f report.yaml -f again.yaml")

    jobs = eventually(lambda: reader.world.jobs(reader.ns), "its Job")
    due = yaml.safe_load(again)["spec"]["at"]
    (found,) = [job["metadata"]["annotations"]["evenkeel.dev/due"] for job in jobs]
    assert found == due.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_an_outage_is_filled_in_by_the_words_of_the_page(reader: Reader) -> None:
    """The page's half hour of three due times is half a minute here. The schedule is suspended for
    that time, so that none of them runs."""
    report = block("file report.yaml").text
    quick = "interval: {every: 10s, offset: 0s}\n  suspend: true"
    reader.has_file("report.yaml", report.replace(EVERY_TEN_MINUTES, quick))
    reader.types("kubectl apply -f report.yaml")
    eventually(lambda: reader.world.status(reader.ns, "report").get("state"), "it is seen")
    first = (int(time.time()) // 10 + 1) * 10

    outage = block("request outage.yaml").text
    given = yaml.safe_load(outage)["spec"]["range"]
    for name, instant in (("from", first), ("to", first + 30)):
        outage = outage.replace(given[name].strftime("%Y-%m-%dT%H:%M:%SZ"), moment(instant))
    reader.has_file("outage.yaml", outage)
    time.sleep(max(0.0, first + 31 - time.time()))  # the range must be over
    reader.types('kubectl patch sj report --type=merge -p \'{"spec":{"suspend":false}}\'')

    reader.follows(block("requests-outage"))
    reader.follows(block("requests-describe"))
    reader.follows(block("requests-fixed"))

    dues = sorted(
        job["metadata"]["annotations"]["evenkeel.dev/due"]
        for job in reader.world.jobs(reader.ns)
        if "evenkeel.dev/request" in job["metadata"]["annotations"]
    )
    assert dues == [moment(first + ahead) for ahead in (0, 10, 20)]


def test_an_annotation_on_all_schedules_makes_one_request_each(reader: Reader) -> None:
    reader.has_file("report.yaml", yearly(block("file report.yaml").text))
    reader.has_file("sweep.yaml", block("file sweep.yaml").text)
    reader.types("kubectl apply -f report.yaml -f sweep.yaml")
    for name in ("report", "sweep"):
        reader.world.condition(reader.ns, name, "Ready")

    annotate, look = block("requests-trigger").commands
    said = reader.types(annotate.line)
    assert said == annotate.output
    reader.types_until_it_says(look.line, look.output, within_s=90)


AS_SUPPORT = "--as=somebody --as-group=support --as-group=system:authenticated"


def test_the_role_lets_somebody_request_runs_and_the_policy_says_which(reader: Reader) -> None:
    """The policy is one of the whole cluster, so it is taken away again."""
    reader.has_file("report.yaml", yearly(block("file report.yaml").text))
    reader.has_file("role.yaml", block("requests-role").text)
    reader.has_file("policy.yaml", block("requests-policy").text)
    reader.has_file("now.yaml", block("request now.yaml").text)
    reader.types("kubectl apply -f report.yaml -f role.yaml")
    reader.types("kubectl create rolebinding requester --role=requester --group=support")

    for verb, what, answer in (
        ("create", "runrequests.evenkeel.dev", "yes"),
        ("patch", "scheduledjobs.evenkeel.dev", "no"),
        ("create", "jobs", "no"),
    ):
        said = reader.types(f"kubectl auth can-i {verb} {what} {AS_SUPPORT}")
        assert said.strip() == answer, (verb, what)

    assert "created" in reader.types("kubectl apply -f policy.yaml")
    try:

        def refuses(change: str, sentence: str) -> bool:
            line = f"sed '{change}' now.yaml | kubectl create --dry-run=server {AS_SUPPORT} -f -"
            said = reader.types(line)
            assert sentence in said, said
            return True

        other = "s/schedule: report/schedule: sweep/"
        eventually(lambda: refuses(other, "support may run the schedule report only"), "refused")
        eventually(lambda: refuses("$a\\  force: true", "force is not allowed here"), "refused")
        assert "created" in reader.types(f"kubectl create {AS_SUPPORT} -f now.yaml")
    finally:
        reader.types("kubectl delete -f policy.yaml")


# --- parameters -----------------------------------------------------------------------------------

INJECTED = "eu; echo stolen"


def said_with(command: list[str], region: str) -> list[str]:
    """As a kubelet starts it: $(NAME) is replaced before the command begins."""
    done = subprocess.run(
        [word.replace("$(REGION)", region) for word in command],
        env={"PATH": "/usr/bin:/bin", "REGION": region},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.splitlines()


def test_the_safe_command_says_a_value_and_the_other_one_runs_it() -> None:
    safe = yaml.safe_load(block("parameter-safe").text)["command"]
    danger = yaml.safe_load(block("parameter-danger").text)["command"]
    assert said_with(safe, INJECTED) == [f"report of {INJECTED}"]
    assert said_with(danger, INJECTED) == ["report of eu", "stolen"]


def test_the_template_of_the_page_reads_its_parameter_safely() -> None:
    spec = yaml.safe_load(block("file report.yaml").text)["spec"]
    (container,) = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert said_with(container["command"], INJECTED) == [f"report of {INJECTED} for "]


# --- due times ------------------------------------------------------------------------------------


def test_the_range_of_a_local_day_has_the_hours_of_that_day(tmp_path: Path) -> None:
    (fields,) = yaml.safe_load_all(block("request-dst").text)
    report = block("file report.yaml").text.replace(
        EVERY_TEN_MINUTES, 'schedule: "0 * * * *"\n  timeZone: Europe/Berlin'
    )
    (tmp_path / "report.yaml").write_text(report)
    first, end = fields["range"]["from"], fields["range"]["to"]
    line = f"evenkeel plan -f report.yaml --from {first} --to {end} -o json"
    assert shell(line, directory=tmp_path).stdout.count("due") == 23


# --- tables ---------------------------------------------------------------------------------------


def properties(part: str) -> Json:
    crd = yaml.safe_load(CRD.read_text(encoding="utf-8"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    found: Json = schema["properties"][part]["properties"]
    return found


@pytest.mark.parametrize(("heading", "part"), [("The spec", "spec"), ("The status", "status")])
def test_the_page_explains_every_field_once(heading: str, part: str) -> None:
    page = (REPOSITORY / "docs" / "requests.md").read_text(encoding="utf-8")
    (found,) = re.findall(rf"^#+ {heading}\n(.*?)^#", page, re.MULTILINE | re.DOTALL)
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", found, re.MULTILINE)
    told = [name for row in rows for name in re.findall(r"\w+", row)]
    assert sorted(told) == sorted(properties(part))


ANSWERS = {
    "it begins at once": "runs",
    "it waits": "waits",
    "it is skipped": "is skipped",
    "it cancels": "replaces",
    "the scheduled run begins at once": "runs",
    "the schedule does not notice it": "runs",
    "the scheduled run waits": "waits",
    "the scheduled run is skipped": "is skipped",
    "the scheduled run cancels it": "replaces",
}
"""How a cell of the page's table begins, in the words of the tests of the core."""


def test_the_table_of_meetings_says_what_the_tests_of_the_core_see() -> None:
    told: tuple[dict[object, str], dict[object, str]] = {}, {}
    _, _, *rows = re.findall(r"^\|.*\|$", MEETINGS, re.MULTILINE)
    for row in rows:
        meeting, named, *cells = (cell.strip(" `") for cell in row.strip("|").split("|"))
        policies = list(Concurrency) if named == "any" else [Concurrency(named)]
        for found, cell in zip(told, cells, strict=True):
            (answer,) = (word for begin, word in ANSWERS.items() if cell.startswith(begin))
            found.update({(Meeting(meeting), policy): answer for policy in policies})
    assert told == (REQUESTED_MEETS_SCHEDULED, SCHEDULED_MEETS_REQUESTED)


def test_the_page_explains_every_state() -> None:
    assert words_of_table("requests.md", "States") == [state.value for state in RequestState]
