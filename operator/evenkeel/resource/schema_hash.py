"""Generated from `crd`; do not edit. To write it again: make crds"""

SCHEMA_HASH = "7f4aaa3a4f6a"
