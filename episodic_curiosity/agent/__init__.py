"""Reward + bonus -> policy: network, collector, PPO."""
