"""Instants in resources are written as everywhere else: see `evenkeel.rfc3339`."""

from evenkeel.rfc3339 import LAST, read, show, show_ahead

__all__ = ["LAST", "read", "show", "show_ahead"]
