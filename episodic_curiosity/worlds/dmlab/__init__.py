"""DeepMind Lab, where it is installed: the paper's levels and any other.

levels defines the levels and world steps N of them. engine runs one inside a worker process,
with the help of level_cache and far_starts. build examines the installed build by
running probe in a worker process.
"""
