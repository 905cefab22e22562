"""A few kills; `kills.py` does as many as one likes."""

import os

import pytest
from kills import try_kills


@pytest.mark.skipif(os.name != "posix", reason="signals as tests use them")
def test_nothing_recorded_is_lost_or_repeated(tmp_path):
    came = try_kills(tmp_path, 3, seed=4, runs=60, pause=0.1, life=0.5)
    assert came["kills of a process"] + came["kills of a worker"] == 3
