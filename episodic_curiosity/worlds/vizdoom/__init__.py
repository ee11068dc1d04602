"""ViZDoom: MyWayHome as the paper plays it, and any scenario of one's own.

scenarios says what is played, engine plays one game inside a worker process, world puts the
workers' games together.
"""
