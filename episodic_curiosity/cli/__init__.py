"""The command `curiosity`: a file for each of its commands, taking the words after its name."""
