"""Known bugs of tablets: migration, replicas, requests, resize and balance."""
