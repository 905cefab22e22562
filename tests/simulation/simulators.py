"""Simulators that behave in many ways. Worker processes import this file, so it needs NumPy only."""

import ctypes
import os
import random
import signal
import time

import numpy as np


def note(path, text):
    """Append a line in one write, so that processes do not mix theirs."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(handle, f"{text}\n".encode())
    os.close(handle)


class Noted:
    """Writes down each run that is executed, before it does anything, and again at its end."""

    def __init__(self, path, seconds=0.0):
        self.path, self.seconds = str(path), seconds

    def __call__(self, row, rng):
        with open(f"{self.path}.pid", "w") as file:
            file.write(str(os.getpid()))
        note(self.path, f"begin {row[0]:.0f}")
        time.sleep(self.seconds)
        note(self.path, f"end {row[0]:.0f}")
        return [row[0] ** 2, rng.normal()]


def read_notes(path):
    lines = path.read_text().split("\n") if path.exists() else []
    return [int(line.split()[1]) for line in lines if line.startswith("begin")]


def noisy(row, rng):
    """Random numbers of all kinds: its own, NumPy's global ones and Python's."""
    return [row[0] + rng.normal(), np.random.rand(), random.random()]  # noqa: NPY002


def drawn(row, seed, random_state):
    return [seed, random_state]


def grow(growth, noise=0.0, steps=3):
    return {"end": growth * steps, "noise": noise}


def faulty(row):
    """Every way to fail, by its number."""
    kind = int(row[0]) % 16
    if kind == 1:
        raise ValueError(f"no solution at {row[0]:.1f}")
    if kind == 2:
        return [np.nan, 1.0]
    if kind == 3:
        return [1.0, 2.0, 3.0]
    if kind == 4:
        return None
    return [row[0], 1.0]


def sleeper(row):
    """Number 3 sleeps."""
    if row[0] == 3:
        time.sleep(60)
    return row[0]


def deaf(row):
    """Number 3 blocks the alarm and stays in C: it can only be killed."""
    if row[0] == 3:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        ctypes.PyDLL(None).sleep(60)  # PyDLL keeps the interpreter's lock: no thread of this process runs either
    return row[0]


def deadly(row):
    """Number 3 ends its process, number 5 crashes it."""
    if row[0] == 3:
        os._exit(7)
    if row[0] == 5:
        os.kill(os.getpid(), signal.SIGSEGV)
    return row[0]


def squares(rows):
    return rows**2


def leaves_a_child(row, own_group=False):
    """Number 3 ends, and leaves a process behind that keeps all that was open."""
    if row[0] == 3:
        if os.fork() == 0:
            if own_group:
                os.setsid()
            time.sleep(20)
            os._exit(0)
        os._exit(7)
    return row[0]


def leaves_a_daemon(row):
    return leaves_a_child(row, own_group=True)


class DiesAtFirst:
    """Kills its process when it is loaded, or when it does run 3, the first times."""

    def __init__(self, path, times, where):
        self.path, self.times, self.where = str(path), times, where

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.die("loaded")

    def die(self, where):
        if where == self.where:
            note(self.path, where)
            with open(self.path) as file:
                if len(file.readlines()) <= self.times:
                    os.kill(os.getpid(), signal.SIGKILL)

    def __call__(self, row):
        if row[0] == 3:
            self.die("called")
        return row[0]
