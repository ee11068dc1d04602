"""Reward + bonus -> policy: the agent."""

from episodic_curiosity.agent.network import Agent, load

__all__ = ["Agent", "load"]
