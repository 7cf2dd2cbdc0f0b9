"""Generated from `crd`; do not edit. To write it again: make crds"""

SCHEMA_HASHES = {
    "ScheduledJob": "7e61700f7377",
    "RunRequest": "773a274e9eb4",
}
