"""Generated from `crd`; do not edit. To write it again: make crds"""

SCHEMA_HASH = "1eaa4d07d049"
