"""Experiments: the paper's tables and numbers, their cells, results and runners."""
