"""The program `stagewright`, also as `python -m stagewright`."""

import gc

NEW_OBJECTS = 50_000  # a definition is some 10^5 objects that live as long as the program


def main() -> int:
    """Run the command line and return its exit code."""
    gc.set_threshold(NEW_OBJECTS)  # Python's 700 costs a tenth of a short command
    try:
        from stagewright.commands import run_command_line
    except KeyboardInterrupt:
        return 130  # as everywhere later

    return run_command_line()


if __name__ == "__main__":
    raise SystemExit(main())
