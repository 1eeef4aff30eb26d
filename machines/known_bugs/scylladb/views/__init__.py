"""Known bugs of view building."""
