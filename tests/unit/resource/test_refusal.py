"""What the API server says of a Job, as the author of the ScheduledJob is to read it.

The sentences on the left are those of Kubernetes 1.36.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenkeel.resource.refusal import SENTENCE_LIMIT, refusal, warnings

STRICT = 'Job in version "v1" cannot be handled as a Job: strict decoding error: '

SENTENCES = {
    "an unknown field": (
        STRICT + 'unknown field "spec.template.spec.containers[0].comand"',
        'unknown field "spec.jobTemplate.spec.template.spec.containers[0].comand"',
    ),
    "two unknown fields": (
        STRICT + 'unknown field "spec.template.spec.foo", unknown field "spec.backofLimit"',
        'unknown field "spec.jobTemplate.spec.template.spec.foo", unknown field '
        '"spec.jobTemplate.spec.backofLimit"',
    ),
    "a number for a text": (
        'Job in version "v1" cannot be handled as a Job: json: cannot unmarshal number into Go '
        "struct field EnvVar.spec.template.spec.containers.env.value of type string",
        "json: cannot unmarshal number into "
        "spec.jobTemplate.spec.template.spec.containers.env.value of type string",
    ),
    "a quantity, which is not named": (
        'Job in version "v1" cannot be handled as a Job: quantities must match the regular '
        "expression '^x$'",
        "quantities must match the regular expression '^x$'",
    ),
    "one mistake, without a list of causes": (
        'Job.batch "report-68374080" is invalid: spec.template.spec.restartPolicy: Required value',
        "spec.jobTemplate.spec.template.spec.restartPolicy: Required value",
    ),
    "somebody else's sentence": (
        'admission webhook "x" denied the request: spec.template is not ours',
        'admission webhook "x" denied the request: spec.template is not ours',
    ),
}


@pytest.mark.parametrize(("said", "shown"), SENTENCES.values(), ids=SENTENCES)
def test_a_sentence_names_the_fields_of_the_schedule(said, shown):
    assert refusal({}, said) == shown


def test_each_mistake_is_told_with_its_field():
    causes = [
        {"field": "metadata.labels", "message": 'Invalid value: "a b": no'},
        {"field": "spec.template.spec.containers[0].image", "message": "Required value"},
    ]
    said = 'Job.batch "report-68374080" is invalid: [metadata.labels: ..., spec.template: ...]'
    assert refusal({"details": {"causes": causes}}, said) == (
        'spec.jobTemplate.metadata.labels: Invalid value: "a b": no; '
        "spec.jobTemplate.spec.template.spec.containers[0].image: Required value"
    )


def test_warnings_are_told_without_their_code():
    header = '299 - "unknown field \\"spec.template.spec.foo\\""; 299 - "would violate PodSecurity"'
    assert warnings(header) == (
        'unknown field "spec.jobTemplate.spec.template.spec.foo"; would violate PodSecurity'
    )
    assert warnings("what a proxy wrote") == "what a proxy wrote"
    assert warnings("") == ""


JUNK = st.recursive(
    st.none() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)


@given(JUNK, st.text(max_size=200) | st.just('Job.batch "x" is invalid: '))
def test_whatever_a_server_sends_is_a_short_sentence(causes, said):
    assert len(refusal({"details": {"causes": causes}}, said * 20)) <= SENTENCE_LIMIT
    assert len(warnings(said * 20)) <= SENTENCE_LIMIT
