"""What the operator cannot do without, checked before anything is started."""

import orjson

from evenkeel.errors import CannotStart
from evenkeel.kube.api import Api, NoAnswer, NotSent, jobs_path, schedules_path
from evenkeel.resource.names import GROUP, PLURAL

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

NEEDED = (
    ("get", GROUP, PLURAL),
    ("watch", GROUP, PLURAL),
    ("patch", GROUP, f"{PLURAL}/status"),
    ("get", "batch", "jobs"),
    ("watch", "batch", "jobs"),
    ("create", "batch", "jobs"),
    ("delete", "batch", "jobs"),
)


async def check_surroundings(api: Api, namespaces: tuple[str, ...]) -> None:
    """Say in one sentence what is missing: an API server, the CRD, a right."""
    for ns in namespaces or ("",):
        await _check(api, schedules_path(ns), f"{PLURAL}.{GROUP}")
        await _check(api, jobs_path(ns), "jobs.batch")
        await _rights(api, ns)


async def _rights(api: Api, ns: str) -> None:
    """What would be missed only at the first due time is better missed now."""
    for verb, group, resource in NEEDED:
        what, _, part = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": what, "subresource": part}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes | ({"namespace": ns} if ns else {})},
        }
        try:
            reply = await api.call("POST", REVIEWS, body=orjson.dumps(review))
        except (NotSent, NoAnswer) as error:
            raise CannotStart(f"the API server does not answer: {error}") from error
        if reply.ok and not (reply.json().get("status") or {}).get("allowed", True):
            where = f" in namespace {ns}" if ns else ""
            raise CannotStart(
                f"not allowed to {verb} {resource}{where}; see Settings in the README"
            )


async def _check(api: Api, path: str, what: str) -> None:
    try:
        reply = await api.call("GET", path, params={"limit": "1"})
    except (NotSent, NoAnswer) as error:
        raise CannotStart(f"the API server does not answer: {error}") from error
    if reply.status == 404:
        raise CannotStart(
            "the ScheduledJob resource is not installed in this cluster: kubectl apply -f crds/"
        )
    if reply.status in (401, 403):
        raise CannotStart(f"not allowed to list {what}: {reply.message}")
    if not reply.ok:
        raise CannotStart(f"the API server cannot list {what}: {reply.message}")
