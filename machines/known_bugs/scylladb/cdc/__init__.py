"""Known bugs of CDC generations, their streams and log."""
