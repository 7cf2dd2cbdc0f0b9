"""The part of the operator that talks to Kubernetes: it watches, creates, deletes, writes status.

Everything but the watch of our resources calls the API server through the `Api` protocol of
`api.py`. `client.py` is the real one; the simulator has another. Kopf, which watches our
resources, has connections of its own: see `watch.py` and `kopf_session.py`.
"""
