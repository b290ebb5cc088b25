"""Sensors that wait for changes."""
