"""How a command ends that could not do its work."""

from __future__ import annotations

EXIT_OK = 0
EXIT_DIFFERENT = 1
EXIT_USAGE = 2
EXIT_NOT_ALL = 1
"""Some of what was asked for was done, and the answer says what was not."""


class CommandError(Exception):
    """What hinders a command, in one line for the person at the terminal."""
