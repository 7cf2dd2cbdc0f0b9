"""Lines and columns of mistakes, as an editor counts them."""

import json

import pytest
from tests.unit.manifests.test_manifest import load_text

GOOD_POD = "{restartPolicy: Never, containers: [{name: a, image: b}]}"
HEAD = "apiVersion: evenkeel.dev/v1alpha1\nkind: ScheduledJob\nmetadata: {name: a}\n"
TEMPLATE = f"  jobTemplate: {{spec: {{template: {{spec: {GOOD_POD}}}}}}}\n"

TEXTS = {
    "a field": (
        f"{HEAD}spec:\n  schedule: 60 * * * *\n{TEMPLATE}",
        "60 * * * *",
        (5, 3),
    ),
    "behind a comment and two documents": (
        f"# head\n---\nkind: A\napiVersion: b\n---\n{HEAD}spec:\n  schedule: nonsense\n{TEMPLATE}",
        "nonsense",
        (10, 3),
    ),
    "in flow style": (f"{HEAD}spec: {{hourly: {{minute: 60}}}}\n", "minute", (4, 17)),
    "in a list": (
        f"{HEAD}spec:\n  schedule: '@daily'\n  jobTemplate:\n    spec:\n      template:\n"
        "        spec:\n          restartPolicy: Never\n          containers:\n"
        "            - name: a\n              image: b\n            - name: c\n"
        "              image: b\n              comand: []\n",
        "comand",
        (16, 15),
    ),
    "of what is missing, the object around it": (
        f"{HEAD}spec:\n  schedule: '@daily'\n",
        "jobTemplate",
        (4, 1),
    ),
    "from an anchor, where it stands": (
        f"{HEAD}spec:\n  <<: &it\n    priority: 5000\n  schedule: '@daily'\n{TEMPLATE}",
        "priority",
        (6, 5),
    ),
    "in a List": (
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: batch/v1\n  kind: CronJob\n"
        "  metadata: {name: b}\n  spec:\n    schedule: 61 * * * *\n  " + TEMPLATE,
        "61 * * * *",
        (8, 5),
    ),
    "in JSON": (
        json.dumps(
            {
                "apiVersion": "evenkeel.dev/v1alpha1",
                "kind": "ScheduledJob",
                "metadata": {"name": 5},
            },
            indent=2,
        ),
        "name",
        (5, 5),
    ),
}


@pytest.mark.parametrize(("text", "part", "where"), TEXTS.values(), ids=TEXTS)
def test_a_mistake_has_the_line_and_column_of_its_field(
    text: str, part: str, where: tuple[int, int]
) -> None:
    found = load_text(text).problems
    places = [(each.line, each.column) for each in found if each.field.endswith((part, "schedule"))]
    assert places[:1] == [where], found
    if (where[0], part) != (4, "jobTemplate"):
        assert part in text.split("\n")[where[0] - 1]


def test_json_values_one_after_another_have_at_least_the_line_of_their_text() -> None:
    one = json.dumps({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": 5}})
    assert {(each.line, each.column) for each in load_text(one + one).problems} == {(1, 1)}
