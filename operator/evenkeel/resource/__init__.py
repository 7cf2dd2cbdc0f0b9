"""The resource: ScheduledJobs as users write them, their CRD, their status, the Jobs of their runs.

Import from the modules. This package imports none of them: every start of the operator needs `read`
and must not wait for `crd`, which loads the whole Kubernetes client.
"""
