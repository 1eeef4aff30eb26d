"""Known bugs of ScyllaDB, a folder for each subject, and those by which somebody waits who need not."""
