"""What the operator shows over HTTP: health and metrics. It asks; it never decides."""
