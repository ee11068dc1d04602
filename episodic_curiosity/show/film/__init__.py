"""Films of an agent: its view, its path and its bonus."""
