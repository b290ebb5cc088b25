"""What tests need that run a command in their own process."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture
def own_handlers():
    """Put this process's handlers of signals back, which the demo replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)
