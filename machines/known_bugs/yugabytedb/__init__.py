"""Known bugs of the machines of YugabyteDB."""
