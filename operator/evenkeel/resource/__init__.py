"""ScheduledJobs as users write them: models, CRD, the guarded read, CronJob and file import; their
status, and the Jobs of their runs.

Nothing is imported here: `read` is on the operator's hot start path and must not pay for `crd`,
which loads the whole Kubernetes client.
"""
