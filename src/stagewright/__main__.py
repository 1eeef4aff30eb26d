"""The program `stagewright`, also as `python -m stagewright`."""


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from stagewright.commands import run_command_line
    except KeyboardInterrupt:
        return 130  # as everywhere later

    return run_command_line()


if __name__ == "__main__":
    raise SystemExit(main())
