"""What a ScheduledJob is called in a cluster; every other module takes it from here."""

GROUP = "evenkeel.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "ScheduledJob"
PLURAL = "scheduledjobs"
