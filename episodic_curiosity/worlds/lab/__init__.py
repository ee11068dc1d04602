"""What our mazes and DeepMind Lab itself share: tasks, layouts as text, maps from above."""
