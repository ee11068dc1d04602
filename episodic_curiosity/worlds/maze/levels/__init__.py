"""What a level is: layouts and puzzles draw levels, pool keeps them."""
