"""MuJoCo's ant on a floor of random tiles, N of them stepped and drawn as one batch.

body steps, textures paints the tiles, view draws what the head camera sees, world puts them
together; opengl draws the same with MuJoCo's own renderer, for people and as a check.
"""
