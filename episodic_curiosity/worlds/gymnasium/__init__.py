"""Gymnasium environments: spaces converts observations and actions, world steps N copies."""
