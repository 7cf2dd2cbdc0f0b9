"""Generated from `crd`; do not edit. To write it again: make crds"""

SCHEMA_HASH = "04e315f35513"
