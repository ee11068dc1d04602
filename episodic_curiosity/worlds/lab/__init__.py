"""Code shared by our mazes and DeepMind Lab: tasks, text layouts and overhead maps."""
