"""Faults on purpose: kills, signals, full disks, damaged files, odd input, dead engines.

One module per kind of fault; each returns rows of a table and the list of what went wrong.
"""
