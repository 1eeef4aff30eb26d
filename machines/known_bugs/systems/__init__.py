"""Known bugs of the systems, a file each."""
