"""Regression adjustment against the paper's formula, exact posteriors, and refitting."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

import kernelbayes as kb
from kernelbayes._linalg import FactorisationError, transport
from kernelbayes.kernels._distributions import Normal
from kernelbayes.learning import _likelihood_free as learning
from kernelbayes.learning._adjustment import gain, resemblance
from kernelbayes.lfi._law import KernelMeansPosterior, Moved
from kernelbayes.rules.regression_adjustment import Moments, Way, adjusted, moments
from oracles import even_draws
from oracles import regression_adjustment as oracle

LARGE = 1e6


def linear(m, d=3, q=5, seed=0, noise=0.5):
    """Statistics that are linear in the parameters, an observation, and the exact posterior."""
    rng = np.random.default_rng(seed)
    A = 1.2 * np.cos(np.outer(np.arange(1, q + 1), np.arange(1, d + 1)))  # whose columns are nearly orthogonal
    theta = rng.normal(size=(m, d))
    x = theta @ A.T + noise * rng.normal(size=(m, q))
    y = A @ np.resize([0.7, -0.7], d) + noise * rng.normal(size=q)
    covariance = np.linalg.inv(np.eye(d) + A.T @ A / noise**2)
    return theta, x, y, Moments(covariance @ A.T @ y / noise**2, covariance)


def near(x, y, width):
    w = np.exp(-0.5 * ((x - y) ** 2).sum(1) / width**2)
    return w / w.sum()


def covariance(d, seed):
    root = np.random.default_rng(seed).normal(size=(d, d + 2))
    return root @ root.T


def test_moments_are_those_of_the_paper():
    theta, x, y, _ = linear(80)
    w = near(x, y, 3.0)
    found = adjusted(w, x - y, theta, LARGE * np.eye(3))
    mean, spread = oracle.adjusted(w, x - y, theta)
    np.testing.assert_allclose(found.mean, mean, rtol=1e-9)
    np.testing.assert_allclose(found.covariance, spread, rtol=1e-9)
    # units of the statistics do not matter
    scaled = adjusted(w, (x - y) * np.array([1e6, 1.0, 1e-6, 3.0, 1.0]), theta, LARGE * np.eye(3))
    np.testing.assert_allclose(scaled.covariance, spread, rtol=1e-6)


def test_a_wide_neighbourhood_is_corrected_to_the_exact_posterior():
    theta, x, y, exact = linear(20_000)
    w = near(x, y, 2.0)
    plain, found = moments(theta, w), adjusted(w, x - y, theta, np.eye(3))
    sd = np.sqrt(np.diag(exact.covariance))
    assert np.abs((plain.mean - exact.mean) / sd).max() > 0.5
    assert (np.sqrt(np.diag(plain.covariance)) / sd).min() > 1.25
    np.testing.assert_allclose(found.mean, exact.mean, atol=0.1 * sd.min())
    np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), sd, rtol=0.05)


def test_it_is_left_alone_where_few_resemble_the_observation():
    theta, x, y, _ = linear(200)
    w = np.zeros(200)
    w[:6] = 1 / 6  # as many as statistics and an intercept
    assert adjusted(w, x - y, theta, np.eye(3)) is None
    # statistics that do not vary say nothing, and take nothing away
    wide = near(x, y, 3.0)
    same = adjusted(wide, np.column_stack([x - y, np.full(200, 3.0)]), theta, np.eye(3))
    np.testing.assert_allclose(same.mean, adjusted(wide, x - y, theta, np.eye(3)).mean, rtol=1e-12)
    # nor can parameters be told apart that do not vary, or that are one
    assert adjusted(wide, x - y, np.column_stack([theta, theta[:, 0]]), np.eye(4)) is None


def test_no_wider_than_beforehand():
    """A parameter that the statistics say nothing about: the corrections alone would make it wider than the prior."""
    theta, x, y, _ = linear(200)
    theta = np.column_stack([theta, np.random.default_rng(5).normal(size=200)])
    w, most = near(x, y, 2.0), np.diag([1.0, 1.0, 1.0, 0.9])
    free, found = (adjusted(w, x - y, theta, m).covariance for m in (LARGE * np.eye(4), most))
    assert np.linalg.eigvalsh(most - found).min() > -1e-9
    assert np.linalg.eigvalsh(free - found).min() > -1e-9
    np.testing.assert_allclose(adjusted(w, x - y, theta, 0.5 * free).covariance, 0.5 * free, rtol=1e-8)


@pytest.mark.parametrize("d", [1, 4])
def test_the_way_between_covariances(d):
    start, end = covariance(d, 0), covariance(d, 1)
    T = transport(start, end)
    np.testing.assert_allclose(T, T.T, atol=1e-12)
    np.testing.assert_allclose(T @ start @ T, end, rtol=1e-9)
    assert np.linalg.eigvalsh(T).min() > 0
    np.testing.assert_allclose(transport(start, start), np.eye(d), atol=1e-9)
    # of all maps that do it, the one along which points move least; the Cholesky factors give another
    other = np.linalg.cholesky(end) @ np.linalg.inv(np.linalg.cholesky(start))
    assert np.trace(start @ T) >= np.trace(start @ other) - 1e-9
    with pytest.raises(FactorisationError, match="singular"):
        transport(np.zeros((d, d)), end)
    way = Way.between(Moments(np.ones(d), start), Moments(np.zeros(d), end))
    z = np.random.default_rng(2).normal(size=(5, d))
    np.testing.assert_allclose(way.back(way.there(z)), z, atol=1e-9)
    assert way.volume == pytest.approx(np.linalg.det(T))


def test_a_law_that_is_moved():
    """Its density is that of its draws, and its moments are those asked for; the shape is kept."""
    Z = np.random.default_rng(0).normal(size=(150, 1))
    prior = Normal(np.zeros(1), np.eye(1))
    kappa = np.exp(-0.5 * (Z[:, 0] - 0.4) ** 2 / 0.3**2)
    v = np.linalg.solve(np.exp(-0.5 * (Z - Z.T) ** 2) + 0.1 * np.eye(150), kappa)
    inner = KernelMeansPosterior(v, Z, 1.0, prior, kappa)
    law = Moved(inner, Moments(np.array([-0.5]), np.array([[0.09]])))
    draws = law.sample(5000, np.random.default_rng(1))
    assert draws.mean() == pytest.approx(-0.5, abs=0.03)
    assert draws.std() == pytest.approx(0.3, rel=0.06)
    grid = np.linspace(-4, 4, 4001)[:, None]
    density = law.density(grid)
    assert np.trapezoid(density, grid[:, 0]) == pytest.approx(1.0, abs=0.02)
    assert np.trapezoid(density * grid[:, 0], grid[:, 0]) == pytest.approx(-0.5, abs=0.03)
    before = inner.sample(5000, np.random.default_rng(1))
    assert stats.skew(draws[:, 0]) == pytest.approx(stats.skew(before[:, 0]), abs=1e-6)
    assert law.herd(20, np.random.default_rng(0)).mean() == pytest.approx(-0.5, abs=0.1)
    assert law.closed is inner.closed


def replicates(theta, x, rows, weights):
    points = even_draws.normals(400, theta.shape[1], np.random.default_rng(3))
    squares = (x[:, None] - x[rows][None]) ** 2
    return learning.Replicates(theta, rows, squares, points, np.full(400, 1 / 400), weights)


def test_gain_by_refitting():
    """Each replicate adjusted by the paper's formula on the other simulations, against the kernel means posterior of those,
    integrated over a grid."""
    theta, x, _, _ = linear(120, d=1, q=2)
    rows = np.arange(0, 120, 12)
    shares = np.random.default_rng(0).dirichlet(np.ones(10))
    sample = replicates(theta, x, rows, shares)
    scales = learning.Scales(np.full(2, 1.0), 0.8, 1e-3)
    floors = learning.noise_floor(learning.left_out(scales, sample).elsewhere)
    grid, rise = np.linspace(-6, 6, 4001), []
    for row, floor in zip(rows, floors, strict=True):
        rest = np.arange(120) != row
        Z, prior = theta[rest], stats.norm.pdf(theta[row, 0])
        kappa = np.exp(-0.5 * ((x[rest] - x[row]) ** 2).sum(1))
        v = np.linalg.solve(np.exp(-0.5 * (Z - Z.T) ** 2 / 0.8**2) + 120e-3 * np.eye(119), kappa)
        values = np.maximum(np.exp(-0.5 * (np.append(grid, theta[row]) - Z) ** 2 / 0.8**2).T @ v - floor, 0.0)
        before = values[-1] / np.trapezoid(values[:-1] * stats.norm.pdf(grid), grid)
        mean, spread = oracle.adjusted(kappa / kappa.sum(), x[rest] - x[row], Z)
        after = stats.norm(mean[0], np.sqrt(min(spread[0, 0], theta.var()))).pdf(theta[row, 0]) / prior
        rise.append(np.log(0.95 * after + 0.05) - np.log(0.95 * before + 0.05))
    latent = Normal(np.zeros(1), np.eye(1))
    found = gain(scales, sample, lambda i: x - x[rows[i]], latent)
    rise = np.array(rise)
    assert found.mean == pytest.approx(shares @ rise, abs=0.1)
    assert found.error == pytest.approx(np.sqrt(np.sum(shares**2 * (rise - shares @ rise) ** 2)), rel=0.4)
    assert found.clear == (found.mean > found.error)
    # simulations from elsewhere count as draws of the prior would
    ratio = np.where(theta[:, 0] > 0, 2.0, 0.5)
    other = gain(scales, dataclasses.replace(sample, ratio=ratio), lambda i: x - x[rows[i]], latent)
    assert other.mean != pytest.approx(found.mean, rel=1e-3)
    assert resemblance(np.zeros(4), None) is None
    np.testing.assert_allclose(resemblance(np.array([1.0, 2.0, 3.0]), np.array([3.0, 1.0, 1.0]), 1), [0.5, 0.0, 0.5])


def infer(theta, x, y, **settings):
    prior = kb.Prior({f"a{j}": stats.norm() for j in range(theta.shape[1])})
    return kb.infer(
        parameters=theta, outputs=x, prior=prior, observed=y, method=kb.lfi.KELFI(**settings), random_state=0
    )


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_inference_is_nearer_to_the_exact_posterior():
    ratios, offs, chosen = {True: [], False: []}, {True: [], False: []}, []
    for seed in range(6):
        theta, x, y, exact = linear(400, d=4, q=6, seed=seed, noise=0.5)
        sd = np.sqrt(np.diag(exact.covariance))
        found = infer(theta, x, y)
        chosen.append(found.settings["adjust"])
        for posterior in (found, infer(theta, x, y, adjust=not chosen[-1])):
            adjust, draws = posterior.settings["adjust"], posterior.sample(1000, random_state=0)
            ratios[adjust].append((draws.std(0) / sd).mean())
            offs[adjust].append(np.sqrt((((draws.mean(0) - exact.mean) / sd) ** 2).mean()))
    assert sum(chosen) >= 2
    assert np.mean(ratios[False]) > 1.25
    assert np.mean(ratios[True]) < np.mean(ratios[False])
    wrong = {adjust: np.mean(offs[adjust]) + np.mean(ratios[adjust]) - 1.0 for adjust in (True, False)}
    assert wrong[True] < wrong[False]


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_two_modes_are_left_alone():
    """The square of a parameter: at either root, so that no line through the statistics helps."""
    prior = kb.Prior(mu=(-3, 3))
    theta = prior.design(300, random_state=0)
    x = theta**2 + 0.1 * np.random.default_rng(0).normal(size=theta.shape)
    found = kb.infer(parameters=theta, outputs=x, prior=prior, observed=[2.0], method="kelfi", random_state=0)
    assert not found.settings["adjust"]
    assert (np.abs(np.abs(found.sample(500, random_state=0)) - np.sqrt(2)) < 0.3).mean() > 0.9


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_settings_saving_and_calibration(tmp_path):
    theta, x, y, _ = linear(300, d=2, q=4, noise=1.0)
    found = infer(theta, x, y, adjust=True)
    again = infer(theta, x, y, **{k: v for k, v in found.settings.items() if k not in ("learn", "ard")}, learn=None)
    np.testing.assert_allclose(again.mean(), found.mean(), atol=0.1 * found.std().min())
    kb.save(found, tmp_path / "posterior.npz")
    loaded = kb.load(tmp_path / "posterior.npz")
    np.testing.assert_array_equal(loaded.sample(50, random_state=1), found.sample(50, random_state=1))
    np.testing.assert_allclose(loaded.density(theta[:5]), found.density(theta[:5]))
    plain = infer(theta, x, y, adjust=False)
    np.testing.assert_allclose(loaded.density(theta[:5], raw=True), plain.density(theta[:5], raw=True))
    checked = kb.calibrate(found, 300)
    low, high = checked.coverage_band(0.9, 0.9999)
    assert ((checked.coverage(0.9) >= low) & (checked.coverage(0.9) <= high)).all()
    np.testing.assert_allclose(kb.calibrate(loaded, 20).ranks, kb.calibrate(found, 20).ranks)
    # each replicate is adjusted as an observation would be: by inference from the others, with the same settings
    settled = {k: v for k, v in found.settings.items() if k in ("epsilon", "lengthscale", "reg", "adjust")}
    for i in (3, 150, 290):
        rest = np.arange(300) != checked.rows[i]
        one = infer(theta[rest], x[rest], x[checked.rows[i]], learn=None, **settled).sample(4000, random_state=0)
        np.testing.assert_allclose((one < theta[checked.rows[i]]).mean(0), checked.ranks[i], atol=0.05)


def test_what_cannot_be_adjusted_is_refused():
    theta = np.random.default_rng(0).integers(0, 10, (60, 1)).astype(float)
    whole = {"parameters": theta, "outputs": theta + 0.1, "prior": kb.Prior(k=stats.randint(0, 10)), "observed": [3.1]}
    with pytest.raises(ValueError, match="adjust=True is not possible: a parameter is a whole number"):
        kb.infer(**whole, method=kb.lfi.KELFI(adjust=True))
    raw = np.random.default_rng(0).normal(size=(60, 40))
    with pytest.raises(ValueError, match="adjust=True is not possible: all outputs are compared on one scale"):
        kb.infer(
            parameters=raw[:, :1],
            outputs=raw,
            prior=kb.Prior(a=stats.norm()),
            observed=raw[0],
            method=kb.lfi.KELFI(adjust=True),
        )
    sampled = kb.Prior(sampler=lambda n, rng: rng.normal(size=(n, 1)), names=["a"])
    with pytest.raises(ValueError, match="adjust=True is not possible: the prior can only be sampled"):
        kb.infer(
            parameters=raw[:, :1],
            outputs=raw[:, :2],
            prior=sampled,
            observed=[0.0, 0.0],
            method=kb.lfi.KELFI(adjust=True),
        )


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
@pytest.mark.parametrize("width", [0.3, 0.003])
def test_humps_are_left_alone_however_narrow(width):
    """Two roots in each of two parameters, all of it in a small part of the prior."""
    prior = kb.Prior(a=(0, 1), b=(0, 1))
    proposal = dict.fromkeys("ab", (0.5 - 1.6 * width, 0.5 + 1.6 * width))

    def simulator(row, rng):
        return ((row - 0.5) / width) ** 2 + 0.05 * rng.normal(size=2)

    found = kb.infer(
        simulator,
        prior,
        [1.0, 1.0],
        simulations=500,
        proposal=kb.Prior(proposal),
        random_state=0,
        progress=False,
        method="kelfi",
        run=kb.Run(pass_dict=False),
    )
    assert not found.details["adjusted"]


@pytest.mark.filterwarnings("ignore::kernelbayes.PosteriorWarning")
def test_parameters_that_do_not_vary_are_no_trouble():
    rng = np.random.default_rng(1)
    for second in (lambda a: np.full(len(a), 0.3), lambda a: a):
        a = rng.normal(size=200)
        theta = np.column_stack([a, second(a)])
        for adjust in (None, True):
            found = infer(theta, theta + 0.3 * rng.normal(size=theta.shape), [0.3, 0.2], adjust=adjust)
            assert not found.details["adjusted"]
            assert np.isfinite(found.density(found.sample(20, random_state=0))).all()
    assert any("adjust=True has changed nothing" in said for said in found.problems)
    with pytest.raises(ValueError, match="adjust must be one of None, True, False"):
        infer(theta, theta, [0.3, 0.2], adjust="yes")
