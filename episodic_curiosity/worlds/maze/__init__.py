"""N first-person mazes stepped and drawn as one batch: DeepMind Lab's tasks, rebuilt.

layouts and puzzles draw levels, pool keeps them, body moves, shots hit, rules pay and end,
render draws; world puts them together.
"""
