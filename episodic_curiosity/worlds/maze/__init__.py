"""N first-person mazes stepped and drawn as one batch: DeepMind Lab's tasks, rebuilt.

levels says what a level is, render draws what is seen, rules say what happens in a step; world
puts them together.
"""
