"""What `curiosity` can be told to do: a file each, taking the words that follow its name."""
