"""The scheduler: state and `step(now)`, pure. Start reading in `scheduler.py`."""
