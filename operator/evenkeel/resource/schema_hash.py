"""Generated from `crd`; do not edit. To write it again: make crds"""

SCHEMA_HASH = "059b6775ec6e"
