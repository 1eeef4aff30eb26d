"""The executable system: coordinators and nodes that act as the definitions say."""
