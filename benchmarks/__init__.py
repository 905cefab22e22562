"""Speed and memory beside peers, as one command: `python -m benchmarks` from the root of the repository.

A file is one job: functions that do it with this library and with a peer, each of which runs in a process of its own, and at
the end the rows of the table. Files that begin with an underscore hold what all jobs share.
"""
