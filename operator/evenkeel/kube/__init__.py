"""The shell towards Kubernetes: watching, creating, following, writing status.

Every call goes through the `Api` port of `client.py`, so that the simulator can put a server of its
own behind the same code.
"""
