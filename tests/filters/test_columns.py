"""Data frames whose columns come in another order than they were learned in."""

import numpy as np
import pytest

import kernelbayes as kb


class Frame:
    """As much of a data frame as is needed."""

    def __init__(self, columns):
        self._columns, self.columns = columns, list(columns)

    def __getitem__(self, names):
        return Frame({name: self._columns[name] for name in names})

    def __array__(self, dtype=None, copy=None):
        return np.column_stack(list(self._columns.values()))

    def __len__(self):
        return len(self._columns[self.columns[0]])

    @property
    def shape(self):
        return len(self), len(self.columns)


def test_columns_are_put_in_order_or_missed():
    rng = np.random.default_rng(0)
    angle = np.cumsum(rng.normal(0, 0.3, 120))
    readings = Frame({"near": np.cos(angle) + 0.1 * rng.normal(size=120), "far": 3 * np.sin(angle)})
    states = np.column_stack([np.cos(angle), np.sin(angle)])
    fitted = kb.KernelBayesFilter(tune=0, random_state=0).fit(readings, states)
    np.testing.assert_array_equal(fitted.filter(readings).mean(), fitted.filter(readings[["far", "near"]]).mean())
    with pytest.raises(ValueError, match="observations lacks the columns far"):
        fitted.filter(Frame({"near": angle, "other": angle}))
