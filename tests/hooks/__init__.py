"""Tests of the hook."""
