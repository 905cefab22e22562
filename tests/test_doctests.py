"""The examples in the docstrings of the installed package, one test per module."""

import doctest
import importlib
import pkgutil

import pytest

import kernelbayes

MODULES = ["kernelbayes", *(m.name for m in pkgutil.walk_packages(kernelbayes.__path__, "kernelbayes."))]


@pytest.mark.one_seed
@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testmod(importlib.import_module(name), optionflags=flags)
    assert not failed


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [test for name in MODULES for test in finder.find(importlib.import_module(name)) if test.examples]
    assert len(found) > 40


@pytest.mark.parametrize("name", kernelbayes.__all__)
def test_public_names_are_documented(name):
    assert getattr(kernelbayes, name).__doc__
