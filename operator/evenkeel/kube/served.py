"""Whether the cluster serves one of our resources: its CRD may be missing, and it may go and come.

The watch and the pruner ask. Two things must agree, because each may be wrong alone: a list of the
resource, whose 404 may come from a proxy, and the API server's discovery, which lags behind.
"""

from evenkeel import clock
from evenkeel.kube.api import OURS, Api, NoAnswer, NotSent, Reply
from evenkeel.kube.resources import Resource
from evenkeel.resource.names import GROUP

LOOK_S = 1.0
"""Between two looks whether a resource is served. Kubelet would start a process that has ended
again after up to five minutes."""

REMOVED_LOOKS = 3
"""So many looks in a row must find that a resource is not served before its objects are forgotten:
an API server that has just started may not know all CRDs."""

NOT_FOUND = 404


async def list_status(api: Api, resource: Resource, namespaces: tuple[str, ...]) -> int | None:
    """The HTTP status of a list; None: no answer."""
    path = resource.path(namespaces[0] if namespaces else "", "")
    try:
        reply = await api.call("GET", path, params={"limit": "1"})
    except (NotSent, NoAnswer):
        return None
    return reply.status


async def is_named(api: Api, plural: str) -> bool | None:
    """Whether the API server's discovery names the resource; None: it does not say."""
    try:
        groups = await api.call("GET", "/apis")
        if not groups.ok or groups.json().get("kind") != "APIGroupList":
            return None
        if not names(groups, "groups", GROUP):
            return False
        resources = await api.call("GET", OURS)
    except (NotSent, NoAnswer):
        return None
    return names(resources, "resources", plural) if resources.ok else None


def names(reply: Reply, field: str, name: str) -> bool:
    """Whether a list of discovery has this name in it."""
    return any(each.get("name") == name for each in reply.json().get(field) or ())


async def is_served(api: Api, resource: Resource, namespaces: tuple[str, ...]) -> bool:
    """Whether it can be listed and watched. An API server that does not say is asked again."""
    while True:
        status = await list_status(api, resource, namespaces)
        named = await is_named(api, resource.plural)
        if status is not None and named is not None:
            return named and status != NOT_FOUND
        await clock.sleep(clock.jitter(LOOK_S))


async def is_removed(api: Api, resource: Resource, namespaces: tuple[str, ...]) -> bool:
    """Whether there is no such resource, and so no object of it."""
    for look in range(REMOVED_LOOKS):
        if look:
            await clock.sleep(clock.jitter(LOOK_S))
        if await list_status(api, resource, namespaces) != NOT_FOUND:
            return False
        if await is_named(api, resource.plural) is not False:
            return False
    return True
