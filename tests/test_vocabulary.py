"""One word for one thing: what the page docs/vocabulary.md promises of every public signature."""

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import kernelbayes as kb

CALLABLES = {}
for _name in kb.__all__:
    _value = getattr(kb, _name)
    if not (inspect.isclass(_value) and issubclass(_value, BaseException)):
        CALLABLES[_name] = _value
    if inspect.isclass(_value):
        CALLABLES |= {
            f"{_name}.{method}": member
            for method, member in vars(_value).items()
            if not method.startswith("_") and inspect.isfunction(member)
        }

#: Other words for what has a name here.
SYNONYMS = {
    "verbose": "progress",
    "seed": "random_state",
    "rng": "random_state",
    "samples": "n",
    "n_samples": "n",
    "maxiter": "max_iter",
    "alpha_level": "level",
    "credibility": "level",
    "selection": "learn",
    "regulariser": "reg",
    "lamda": "reg",
    "sd": "std",
    "return_sd": "return_std",
}
INTERNAL = {"ParameterPosterior": "made by kb.infer", "Prior.coordinates": "takes the generator of a method"}


def parameters(name):
    return inspect.signature(CALLABLES[name]).parameters


@pytest.mark.parametrize("name", CALLABLES)
def test_words(name):
    found = {word: SYNONYMS[word] for word in parameters(name) if word in SYNONYMS}
    assert not found or name in INTERNAL


@pytest.mark.parametrize("name", [n for n in CALLABLES if {"progress", "random_state"} & set(parameters(n))])
def test_progress_and_random_state_end_the_signature(name):
    given = [p.name for p in parameters(name).values() if p.kind is not p.VAR_KEYWORD]
    last = [word for word in ("progress", "random_state") if word in given]
    assert given[-len(last) :] == last
    assert parameters(name).get("progress", inspect.Parameter("p", 3, default=None)).default is None


@pytest.mark.parametrize("name", [n for n in CALLABLES if "level" in parameters(n) and n != "ParameterPosterior"])
def test_level_is_that_of_every_interval(name):
    assert parameters(name)["level"].default == 0.9


@pytest.mark.parametrize(
    "name", [n for n in CALLABLES if "." in n and n.split(".")[1] in ("mean", "std", "mode", "cov")]
)
def test_numbers_of_a_distribution_need_no_argument(name):
    first, *others = parameters(name).values()
    assert first.name == "self"
    assert all(p.default is not p.empty for p in others)


@pytest.mark.parametrize("name", [n for n in kb.__all__ if inspect.isclass(getattr(kb, n))])
def test_settings_of_estimators_come_in_one_order(name):
    cls = getattr(kb, name)
    if not issubclass(cls, BaseEstimator):
        return
    usual = ["kernel", "target_kernel", "latent_kernel", "mediator_kernel", "control_kernel"]
    usual += ["features", "latent_features", "mediator_features", "reg", "prior_reg", "transition_reg", "task_reg"]
    usual += ["noise", "mediator_noise", "learn", "progress", "random_state"]
    found = [word for word in parameters(name) if word in usual]
    assert found == sorted(found, key=usual.index)


def test_summaries_say_what_to_beware_of():
    summary = kb.Summary({"growth": {"mean": 1.0, "std": 0.5}}, "two runs", ["few runs", "a <wide> prior"])
    assert str(summary).splitlines()[0] == "two runs"
    assert str(summary).splitlines()[-2:] == ["beware: few runs", "beware: a <wide> prior"]
    assert "<p>beware: a &lt;wide&gt; prior</p>" in summary._repr_html_()
    assert str(kb.Summary({}, "nothing")) == "nothing"
    assert kb.Summary({}).columns == ()


def test_runs_are_summed_up(tmp_path):
    with pytest.warns(kb.SimulationWarning):
        runs = kb.simulate(lambda x: 1.0 / x[0] if x[0] < 5 else np.nan, np.arange(1.0, 7.0))
    summary = runs.summary()
    assert summary["output"]["largest"] == 1.0
    assert summary["parameter_0"]["mean"] == 2.5
    assert "33% of the runs failed" in runs.problems[0]
    assert "beware: 33% of the runs failed" in str(summary)
    kb.save(runs, tmp_path / "runs.npz")
    again = kb.load(tmp_path / "runs.npz")
    np.testing.assert_array_equal(again.outputs, runs.outputs)
    assert again.failures[0].reason == runs.failures[0].reason
