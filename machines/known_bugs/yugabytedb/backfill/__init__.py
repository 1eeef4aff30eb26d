"""Known bugs of index backfill: its jobs, what they record, their steps and the scans of tablets."""
