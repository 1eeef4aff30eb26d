"""What the exit code of a command says."""

from enum import IntEnum


class ExitCode(IntEnum):
    """The answer of a command, as scripts and CI see it."""

    HOLDS = 0
    VIOLATED = 1
    BAD_INPUT = 2
    UNDECIDED = 3
    INTERNAL_ERROR = 70  # EX_SOFTWARE of sysexits.h: a crash must not look like a verdict
    INTERRUPTED = 130  # 128 + SIGINT, as shells report it
    BROKEN_PIPE = 141  # 128 + SIGPIPE: the reader of the output went away
