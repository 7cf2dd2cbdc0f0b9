"""Manifests as people keep them in files: read, checked, turned from CronJobs, changed.

    files -> documents -> manifest --kinds--> mistakes, cronjob_mistakes -> findings

The commands that need no cluster use it; the operator does not. Import from the modules: some of
them load the Kubernetes client, which takes a while.
"""
