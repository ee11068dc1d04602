"""N first-person mazes stepped and rendered as one batch: DeepMind Lab's tasks, rebuilt.

levels generates levels, render draws frames, rules advances the state; world combines them.
"""
