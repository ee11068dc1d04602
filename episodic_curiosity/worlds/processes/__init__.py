"""Worlds whose simulators run in worker processes.

worker is run by path, outside the package; workers starts and watches such processes; world is
the World on top of them.
"""
