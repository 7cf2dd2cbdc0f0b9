"""The API group, version and kind of the ScheduledJob. Other modules import these names."""

GROUP = "evenkeel.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ScheduledJob"
PLURAL = "scheduledjobs"
