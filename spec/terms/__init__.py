"""What bodies are written with: variables, parameters, conditions, numbers and how they are traced."""
