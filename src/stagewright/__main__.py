"""The program `stagewright`, also as `python -m stagewright`."""


def main() -> int:
    """Run the command line and return its exit code."""
    from stagewright.commands import run_command_line

    return run_command_line()


if __name__ == "__main__":
    raise SystemExit(main())
