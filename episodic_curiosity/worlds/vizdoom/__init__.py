"""ViZDoom: MyWayHome as in the paper, and custom scenarios.

scenarios defines what is played, engine runs one game in a worker process, world combines the
workers' games.
"""
