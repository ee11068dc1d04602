"""DeepMind Lab itself, for those who have built it: the paper's levels and any other.

levels says what is played and world puts the games together. engine plays one inside a worker
process, with loading, level_cache and far_starts beside it; build looks at the installed build
with the probe that runs in such a process.
"""
