"""Observations in: one folder for each family of worlds, what they share beside them."""
