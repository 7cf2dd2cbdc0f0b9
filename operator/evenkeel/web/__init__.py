"""What the operator shows over HTTP: probes and metrics. Nothing here changes what it does."""
