"""The API group, the version and the kinds of our resources. Other modules import these names."""

GROUP = "evenkeel.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ScheduledJob"
PLURAL = "scheduledjobs"

REQUEST_KIND = "RunRequest"
REQUEST_PLURAL = "runrequests"

NOTE_REQUEST = f"{GROUP}/request"
"""On a requested run's Job and Pods: the name of its RunRequest."""
NOTE_REQUESTED_BY = f"{GROUP}/requested-by"
"""On a RunRequest: who says that they asked for it."""
NOTE_TRIGGER = f"{GROUP}/trigger"
"""On a ScheduledJob: another id than the last one asks for one run."""
