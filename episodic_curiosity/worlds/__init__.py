"""Worlds: one folder per family, with the shared interface and registry at this level."""
