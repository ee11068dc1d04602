"""What a level is: layouts and puzzles draw levels, pool collects, stored says in what form."""
