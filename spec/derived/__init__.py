"""What follows from a definition as data: what it mentions, assumes and accepts, and what its history may not do."""
