"""Worlds whose simulators run in worker processes.

worker runs by path, outside the package; workers starts and monitors the processes; world is
the World on top of them.
"""
