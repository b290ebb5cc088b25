"""Tests of the triggers."""
