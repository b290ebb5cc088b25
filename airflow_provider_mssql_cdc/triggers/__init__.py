"""Triggers that wait for changes without a worker."""
