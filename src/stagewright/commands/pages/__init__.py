"""The generated pages: machines, documents, known bugs, and the diagrams in them."""
