"""Views: how they are built from the tablets of their base, task by task (design document 000)."""
