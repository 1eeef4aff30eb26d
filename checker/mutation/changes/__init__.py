"""What is changed in a definition, one place after the other."""
