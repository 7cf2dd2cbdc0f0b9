"""Checks before the start what the operator cannot work without: an API server, the CRD, rights."""

from typing import Any

import orjson

from evenkeel import clock
from evenkeel.errors import CannotStart
from evenkeel.kube.api import OURS, Api, NoAnswer, NotSent, Reply, jobs_path, schedules_path
from evenkeel.kube.served import names
from evenkeel.log import log
from evenkeel.resource.names import GROUP, PLURAL, REQUEST_PLURAL

REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

NEEDED = (
    ("get", GROUP, PLURAL),
    ("watch", GROUP, PLURAL),
    ("patch", GROUP, f"{PLURAL}/status"),
    ("get", GROUP, REQUEST_PLURAL),
    ("watch", GROUP, REQUEST_PLURAL),
    ("create", GROUP, REQUEST_PLURAL),
    ("delete", GROUP, REQUEST_PLURAL),
    ("patch", GROUP, f"{REQUEST_PLURAL}/status"),
    ("get", "batch", "jobs"),
    ("watch", "batch", "jobs"),
    ("create", "batch", "jobs"),
    ("delete", "batch", "jobs"),
)

DISCOVERY_TRIES = 8
"""Tries for some ten seconds: a resource is served a moment before discovery names it."""


NOT_INSTALLED = "the ScheduledJob resource is not installed in this cluster: kubectl apply -f crds/"


class _Forbidden(CannotStart):
    """A right is missing in one namespace; others may have it."""


async def check_surroundings(api: Api, namespaces: tuple[str, ...]) -> tuple[str, ...]:
    """The namespaces that can be served; CannotStart says in one sentence what is missing. A team
    that takes its Role away must not keep the operator from serving all other namespaces."""
    served: list[str] = []
    refused: dict[str, _Forbidden] = {}
    for ns in namespaces or ("",):
        try:
            await _check(api, schedules_path(ns), f"{PLURAL}.{GROUP}")
            await _check(api, jobs_path(ns), "jobs.batch")
            await _rights(api, ns)
            served.append(ns)
        except _Forbidden as error:
            refused[ns] = error
    if not served:
        raise next(iter(refused.values()))
    await _discovery(api)
    for ns, refusal in refused.items():
        log("namespace not served until restart", level="error", ns=ns, sentence=str(refusal))
    return tuple(served) if namespaces else ()


async def _discovery(api: Api) -> None:
    """Kopf reads discovery once, and never watches a resource that is not named then."""
    async for _ in clock.tries(0.2, 2.0, count=DISCOVERY_TRIES):
        groups = await _call(api, "GET", "/apis")
        resources = await _call(api, "GET", OURS)
        if names(groups, "groups", GROUP) and names(resources, "resources", PLURAL):
            return
    refused = next((reply for reply in (groups, resources) if not reply.ok), None)
    raise CannotStart(
        f"the API server does not name {PLURAL}.{GROUP} in its discovery yet"
        + (f": {refused.message}" if refused else "; start again in a moment")
    )


async def _rights(api: Api, ns: str) -> None:
    """A missing right is better found now than at the first due time."""
    for verb, group, resource in NEEDED:
        what, _, part = resource.partition("/")
        attributes = {"verb": verb, "group": group, "resource": what, "subresource": part}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": attributes | ({"namespace": ns} if ns else {})},
        }
        reply = await _call(api, "POST", REVIEWS, body=orjson.dumps(review))
        if reply.ok and not (reply.json().get("status") or {}).get("allowed", True):
            where = f" in namespace {ns}" if ns else ""
            raise _Forbidden(
                f"not allowed to {verb} {resource}{where}; see Rights in docs/install.md"
            )


async def _check(api: Api, path: str, what: str) -> None:
    reply = await _call(api, "GET", path, params={"limit": "1"})
    if reply.status == 404:
        raise CannotStart(NOT_INSTALLED)
    if reply.status in (401, 403):
        refusal = CannotStart if reply.status == 401 else _Forbidden
        raise refusal(f"not allowed to list {what}: {reply.message}")
    if not reply.ok:
        raise CannotStart(f"the API server cannot list {what}: {reply.message}")


async def _call(api: Api, verb: str, path: str, **more: Any) -> Reply:
    try:
        return await api.call(verb, path, **more)
    except (NotSent, NoAnswer) as error:
        raise CannotStart(f"the API server does not answer: {error}") from error
