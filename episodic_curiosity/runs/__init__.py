"""One run: its config, what it is built from, training, evaluation and what is kept of it."""
