"""Similarity -> bonus: what curiosity pays, one module per bonus."""
