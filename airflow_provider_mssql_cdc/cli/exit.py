"""How a command ends that could not do its work."""

from __future__ import annotations

EXIT_OK = 0
EXIT_DIFFERENT = 1
EXIT_USAGE = 2


class CommandError(Exception):
    """What hinders a command, in one line for the person at the terminal."""
