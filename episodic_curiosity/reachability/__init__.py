"""Observation -> embedding -> similarity: the R-network, its data and its training."""
