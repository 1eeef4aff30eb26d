"""What `cluster` prints, and the part of the demo that starts one."""
