"""What knows nothing of learning: checks, randomness, files, the machine, pixels."""
