"""Known bugs of YugabyteDB, one file for each machine."""
