"""What properties over several entities see while events are replayed."""
