"""Exploration bonuses, one module each."""
