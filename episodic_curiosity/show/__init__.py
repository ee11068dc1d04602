"""Reports and films."""
