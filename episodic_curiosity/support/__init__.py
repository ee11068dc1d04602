"""Code independent of learning: checks, randomness, files, the machine, pixels."""
