"""Curiosity in the training loops of other libraries, one module each."""
