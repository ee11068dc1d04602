"""Films of an agent at play: what it sees, where it goes and what its curiosity pays."""
