"""MuJoCo's ant on a floor of random tiles: N ants stepped and rendered as one batch.

body simulates the ants, textures paints the tiles, view renders the head camera, world combines
them. opengl renders the same scene with MuJoCo's renderer, for display and as a check.
"""
