"""Level generation: layouts and puzzles draw levels, pool batches them, stored holds them."""
