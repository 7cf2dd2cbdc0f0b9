"""Evenkeel: cron for Kubernetes that keeps an even load. Start reading in `app.py`."""
