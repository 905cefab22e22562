"""The optimiser on objectives whose optimum is known."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import kernelbayes as kb
from kernelbayes.kernels._parameters import positive, unbounded, unit_interval
from kernelbayes.learning import _optimise, last_of_the_best
from oracles.closed_forms import gaussian_gram

RNG = np.random.default_rng(0)
X = RNG.uniform(-2, 2, size=(12, 1))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=12)


class Model(eqx.Module):
    """A kernel among other things, as an application holds it."""

    kernel: kb.Kernel
    noise: Any = positive(0.1)
    share: Any = unit_interval(0.5)
    table: Any = None


def log_distance(kernel, target):
    """A quadratic in the logarithm of the lengthscale."""
    return 1.0 + jnp.sum((jnp.log(kernel.lengthscale) - jnp.log(target)) ** 2)


def of_model(model, lengthscale, noise):
    return (jnp.log(model.kernel.lengthscale / lengthscale) ** 2).sum() + jnp.log(model.noise / noise) ** 2


def negative_evidence(kernel, X, y):
    """Minus the log marginal likelihood of a Gaussian process with noise 0.1, up to a constant."""
    L = jnp.linalg.cholesky(kernel.gram(X) + 0.01 * jnp.eye(X.shape[0]))
    z = jax.scipy.linalg.solve_triangular(L, y, lower=True)
    return 0.5 * z @ z + jnp.log(jnp.diagonal(L)).sum()


def two_wells(kernel):
    """In u = log lengthscale, minima near -1 and 1, the first the deeper one."""
    u = jnp.log(kernel.lengthscale)
    return (u**2 - 1.0) ** 2 + 0.3 * u


def far_and_flat(kernel, wall):
    """A minimum at u = 1 that a quasi-Newton step from far away overshoots, and no values beyond a wall."""
    u = jnp.log(kernel.lengthscale)
    return jnp.where(u > wall, jnp.nan, jnp.sqrt(1.0 + (u - 1.0) ** 2))


def falls_for_ever(kernel):
    return -jnp.log(kernel.lengthscale).sum()


def always_nan(kernel):
    return kernel.lengthscale * jnp.nan


# ------------------------------------------------------------------------------------------------ finding optima


def test_a_quadratic():
    found = kb.minimise(log_distance, kb.Gaussian(1.0), (3.0,))
    assert found.params.lengthscale == pytest.approx(3.0, rel=1e-6)
    assert found.value == pytest.approx(1.0)
    assert found.success
    assert found.on_bound == ()
    assert isinstance(found.params, kb.Gaussian)
    assert isinstance(found.params.lengthscale, np.ndarray)
    assert found.params.lengthscale.dtype == np.float64
    assert isinstance(found.value, float)
    assert isinstance(found.message, str)


def flat_from_three(kernel, wiggle):
    x = jnp.log(kernel.lengthscale / 3.0)
    return (1.0 + jnp.minimum(x, 0.0) ** 2 + 1e-9 * jnp.sin(wiggle * x)).sum()


@pytest.mark.parametrize("wiggle", [0.0, 30.0, 31.0])
def test_where_the_objective_does_not_care_the_preferred_value_is_taken(wiggle):
    """Rounding, which differs between processors, stands as a ripple."""
    found = kb.minimise(flat_from_three, kb.Gaussian(1.0), (wiggle,), prefer={"lengthscale": 20.0})
    assert found.params.lengthscale == pytest.approx(20.0, rel=0.02)
    assert found.value == pytest.approx(1.0, abs=1e-6)  # without what a preference costs
    assert found.path[0]["value"] == pytest.approx(1.0 + np.log(3.0) ** 2, rel=1e-8)
    lower = kb.minimise(flat_from_three, kb.Gaussian(1.0), (wiggle,), prefer={"lengthscale": 0.1})
    assert lower.params.lengthscale == pytest.approx(3.0, rel=1e-3)  # the data has its way


def test_preferences_of_many_columns_and_negative_values():
    def objective(kernel):
        return -2.0 - jnp.exp(-(jnp.log(kernel.lengthscale[0]) ** 2))  # does not see the second column

    found = kb.minimise(objective, kb.Gaussian(np.array([2.0, 9.0])), prefer={"lengthscale": 0.5})
    assert found.params.lengthscale == pytest.approx([1.0, 0.5], rel=1e-3)
    assert found.value == pytest.approx(-3.0)
    with pytest.raises(ValueError, match="prefer names 'wide'"):
        kb.minimise(objective, kb.Gaussian(np.ones(2)), prefer={"wide": 1.0})


def test_the_last_of_equals():
    losses = np.array([2.0, 1.0, 1.00005, 1.2, 1.00001, 3.0])
    assert last_of_the_best(losses) == 4
    assert last_of_the_best(-losses) == 5
    assert last_of_the_best(1e-20 * losses, rounding=1e-12) == 5
    assert last_of_the_best([np.inf, np.inf]) == 0


def test_a_marginal_likelihood():
    """Against SciPy on the same likelihood written in NumPy."""

    def negative_log_density(u):
        K = gaussian_gram(X, X, np.exp(u)) + 0.01 * np.eye(12)
        return 0.5 * Y @ np.linalg.solve(K, Y) + 0.5 * np.linalg.slogdet(K)[1]

    expected = minimize_scalar(negative_log_density, bounds=(-3, 2), method="bounded", options={"xatol": 1e-9})
    found = kb.minimise(negative_evidence, kb.Gaussian(1.0), (X, Y))
    assert np.log(found.params.lengthscale) == pytest.approx(expected.x, abs=1e-4)
    assert found.value == pytest.approx(expected.fun, rel=1e-9)


def test_one_lengthscale_per_column():
    target = np.array([0.2, 1.0, 30.0])
    found = kb.minimise(log_distance, kb.Gaussian(np.ones(3)), (target,))
    assert found.params.lengthscale == pytest.approx(target, rel=1e-5)
    assert found.path[-1]["lengthscale"] == pytest.approx(target, rel=1e-5)


def test_parameters_inside_a_module_and_a_composite_kernel():
    def objective(kernel):
        return jnp.log(kernel.left.scale / 2) ** 2 + jnp.log(kernel.left.kernel.lengthscale / 5) ** 2

    found = kb.minimise(objective, 1.0 * kb.Gaussian(1.0) + kb.Linear(), fixed=())
    assert found.params.left.scale == pytest.approx(2.0, rel=1e-5)
    assert found.params.left.kernel.lengthscale == pytest.approx(5.0, rel=1e-5)
    assert found.params.right.offset == 0.0  # a nonnegative parameter at zero stays there


def test_the_path_is_recorded_and_falls():
    found = kb.minimise(negative_evidence, kb.Gaussian(1.0), (X, Y))
    values = [step["value"] for step in found.path]
    assert len(values) >= 2
    assert (np.diff(values) <= 1e-12).all()
    assert values[-1] == pytest.approx(found.value)
    assert found.path[-1]["lengthscale"] == pytest.approx(found.params.lengthscale)
    assert set(found.path[0]) == {"value", "lengthscale"}
    assert found.evaluations >= len(values)


def test_the_slope_is_that_of_the_logarithms():
    """By finite differences, at parameters far from one, with a fixed parameter between the free ones."""
    model = Model(kb.Gaussian([0.3, 20.0]), noise=0.05, share=0.2)
    problem = _optimise._Problem(
        of_model, model, (np.array([3.0, 0.1]), 0.7), _optimise.free_leaves(model, {}, ("share",))
    )
    with jax.enable_x64(True):
        value, slope = problem(problem.start)
        rises = [problem(problem.start + h)[0] - problem(problem.start - h)[0] for h in 1e-5 * np.eye(3)]
    assert slope == pytest.approx(np.array(rises) / 2e-5, rel=1e-6)
    assert slope == pytest.approx(2 * np.log([0.3 / 3.0, 20.0 / 0.1, 0.05 / 0.7]))
    assert value == pytest.approx((slope**2).sum() / 4)


class Place(eqx.Module):
    """Numbers of either sign beside one above zero."""

    where: Any = unbounded()
    width: Any = positive()


def of_place(place, where, width):
    return ((place.where - where) ** 2).sum() + jnp.log(place.width / width) ** 2


def test_unbounded_parameters_move_as_they_are():
    where = np.array([[-3.0, 0.0], [250.0, 1e-3]])
    found = kb.minimise(of_place, Place(np.ones((2, 2))), (where, 2.0), tol=1e-14)
    assert found.params.where == pytest.approx(where, abs=1e-5)
    assert found.params.width == pytest.approx(2.0, rel=1e-5)
    assert found.path[0]["where"] == pytest.approx(np.ones((2, 2)))  # no view of what the optimiser writes to
    assert found.path[-1]["where"] == pytest.approx(where, abs=1e-5)


def test_the_slope_of_unbounded_parameters():
    place = Place(np.array([-1.0, 0.0, 4.0]), 0.3)
    data = (np.array([2.0, -1.0, 1.0]), 1.0)
    problem = _optimise._Problem(of_place, place, data, _optimise.free_leaves(place, {}, ()))
    with jax.enable_x64(True):
        _, slope = problem(problem.start)
    assert slope == pytest.approx([*(2 * (place.where - data[0])), 2 * np.log(0.3)])


def test_unbounded_parameters_take_bounds_of_either_sign():
    bounds = {"where": (-1.0, 2.0)}
    with pytest.warns(kb.BoundWarning, match=r"where at its lower bound -1; where at its upper bound 2$"):
        found = kb.minimise(of_place, Place(np.zeros(3)), (np.array([-5.0, 0.5, 5.0]), 1.0), bounds=bounds)
    assert found.params.where == pytest.approx([-1.0, 0.5, 2.0])
    with pytest.raises(ValueError, match="bounds of where must be rising"):
        kb.minimise(of_place, Place(np.zeros(3)), (np.zeros(3), 1.0), bounds={"where": (1.0, -1.0)})


def test_restarts_of_unbounded_parameters():
    def two_places(place):
        return (place.where**2 - 1.0) ** 2 + 0.3 * place.where + jnp.log(place.width) ** 2

    poor = kb.minimise(two_places, Place(0.3))  # not far from the ridge between the two
    good = kb.minimise(two_places, Place(0.3), restarts=20, random_state=0)
    assert poor.params.where > 0.5
    assert good.params.where < -0.5


def test_a_bar_can_be_shown(capsys):
    kb.minimise(of_place, Place(np.zeros(2)), (np.ones(2), 2.0), progress=True)
    assert "learning" in capsys.readouterr().err


# ----------------------------------------------------------------------------------------- bounds and fixed names


def test_fixed_parameters_do_not_move():
    model = Model(kb.Gaussian(1.0), noise=0.1)
    found = kb.minimise(of_model, model, (3.0, 0.7), fixed=["noise", "share"])
    assert found.params.noise == 0.1
    assert found.params.share == 0.5
    assert found.params.kernel.lengthscale == pytest.approx(3.0, rel=1e-5)
    other = kb.minimise(of_model, model, (3.0, 0.7), fixed=(name for name in ("kernel.lengthscale", "share")))
    assert other.params.kernel.lengthscale == 1.0
    assert other.params.noise == pytest.approx(0.7, rel=1e-5)
    assert set(other.path[-1]) == {"value", "noise"}


def test_bounds_hold_and_an_optimum_on_one_is_announced():
    with pytest.warns(kb.BoundWarning, match=r"lengthscale at its upper bound 2$"):
        found = kb.minimise(log_distance, kb.Gaussian(1.0), (3.0,), bounds={"lengthscale": (0.5, 2.0)})
    assert found.params.lengthscale == pytest.approx(2.0)
    assert found.on_bound == ("lengthscale at its upper bound 2",)
    with pytest.warns(kb.BoundWarning, match="lower bound 4"):
        found = kb.minimise(log_distance, kb.Gaussian(5.0), (3.0,), bounds={"lengthscale": (4.0, 9.0)})
    assert found.params.lengthscale == pytest.approx(4.0)
    inside = kb.minimise(log_distance, kb.Gaussian(1.0), (3.0,), bounds={"lengthscale": (0.5, 4.0)})
    assert inside.params.lengthscale == pytest.approx(3.0, rel=1e-5)


def test_the_warning_can_be_left_to_the_caller():
    found = kb.minimise(log_distance, kb.Gaussian(1.0), (3.0,), bounds={"lengthscale": (0.5, 2.0)}, warn=False)
    assert found.on_bound == ("lengthscale at its upper bound 2",)


def test_a_start_outside_the_bounds_is_moved_inside():
    found = kb.minimise(log_distance, kb.Gaussian(100.0), (3.0,), bounds={"lengthscale": (0.5, 4.0)})
    assert found.params.lengthscale == pytest.approx(3.0, rel=1e-5)
    assert all(0.5 <= step["lengthscale"] <= 4.0 for step in found.path)


def test_by_default_a_parameter_moves_a_thousandfold():
    with pytest.warns(kb.BoundWarning, match="upper bound 2e\\+03"):
        found = kb.minimise(falls_for_ever, kb.Gaussian(2.0))
    assert found.params.lengthscale == pytest.approx(2000.0)


def test_one_column_of_several_on_a_bound_is_announced():
    with pytest.warns(kb.BoundWarning, match="lengthscale at its lower"):
        found = kb.minimise(
            log_distance, kb.Gaussian(np.ones(2)), (np.array([0.01, 2.0]),), bounds={"lengthscale": (0.1, 10.0)}
        )
    assert found.params.lengthscale == pytest.approx([0.1, 2.0], rel=1e-4)


def test_a_parameter_in_the_unit_interval_stays_there():
    def objective(kernel):
        return (kernel.hurst - 3.0) ** 2

    with pytest.warns(kb.BoundWarning, match="hurst at its upper bound 1"):
        found = kb.minimise(objective, kb.Brownian(0.5))
    assert found.params.hurst == pytest.approx(1.0)
    assert found.params.hurst <= 1.0


@pytest.mark.parametrize("settings", [dict(bounds={"lengthscales": (1.0, 2.0)}), dict(fixed=["kernel.lengthscale"])])
def test_unknown_names_are_refused_and_the_known_ones_named(settings):
    with pytest.raises(ValueError, match="there are lengthscale"):
        kb.minimise(log_distance, kb.Gaussian(1.0), (3.0,), **settings)


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 1.0), (2.0, 1.0), (np.nan, 1.0)])
def test_bad_bounds_are_refused(bounds):
    with pytest.raises(ValueError, match="bounds of lengthscale"):
        kb.minimise(log_distance, kb.Gaussian(1.0), (3.0,), bounds={"lengthscale": bounds})


def test_nothing_to_learn():
    for kernel, fixed in ((kb.Gaussian(1.0), ["lengthscale"]), (kb.Linear(), []), (kb.PeriodicSobolev(), [])):
        with pytest.raises(ValueError, match="nothing to learn"):
            kb.minimise(log_distance, kernel, (3.0,), fixed=fixed)


def test_weights_of_a_network_are_data():
    network = eqx.nn.MLP(1, 2, 3, 1, key=jax.random.key(0))
    model = Model(kb.MappedKernel(network, kb.Gaussian(1.0)), table=np.ones(3))

    def objective(model):
        return jnp.log(model.kernel.kernel.lengthscale / 2) ** 2 + (model.table**2).sum()

    found = kb.minimise(objective, model, fixed=["noise", "share"])
    assert found.params.kernel.kernel.lengthscale == pytest.approx(2.0, rel=1e-5)
    assert (found.params.table == 1.0).all()
    assert eqx.tree_equal(found.params.kernel.map, network)


def test_kernels_in_tuples_and_dicts_are_learned():
    def objective(params):
        first, second = params["kernels"]
        return jnp.log(first.lengthscale / 2) ** 2 + jnp.log(second.lengthscale / 3) ** 2 + params["data"] ** 2

    params = {"kernels": (kb.Gaussian(1.0), kb.Laplace(1.0)), "data": np.array(4.0)}
    found = kb.minimise(objective, params)
    assert [float(k.lengthscale) for k in found.params["kernels"]] == pytest.approx([2.0, 3.0], rel=1e-5)
    assert found.params["data"] == 4.0
    one = kb.minimise(objective, params, fixed=["kernels.0.lengthscale"])
    assert [float(k.lengthscale) for k in one.params["kernels"]] == pytest.approx([1.0, 3.0], rel=1e-5)


# -------------------------------------------------------------------------------------- restarts and rough ground


def test_restarts_leave_a_poor_well():
    poor = kb.minimise(two_wells, kb.Gaussian(np.e))
    good = kb.minimise(two_wells, kb.Gaussian(np.e), restarts=10, random_state=0)
    assert np.log(poor.params.lengthscale) > 0.5
    assert np.log(good.params.lengthscale) < -0.5
    assert good.value < poor.value
    deepest = min(np.roots([4, 0, -4, 0.3]).real)
    assert np.log(good.params.lengthscale) == pytest.approx(deepest, abs=1e-4)
    again = kb.minimise(two_wells, kb.Gaussian(np.e), restarts=10, random_state=0)
    assert again.params.lengthscale == good.params.lengthscale
    assert again.evaluations == good.evaluations > poor.evaluations


def test_restarts_stay_within_the_bounds():
    settings = dict(bounds={"lengthscale": (np.exp(0.5), np.exp(1.5))}, restarts=10, random_state=0)
    found = kb.minimise(two_wells, kb.Gaussian(np.e), **settings)
    assert 0.5 < np.log(found.params.lengthscale) < 1.5


def test_a_search_survives_places_where_the_objective_is_nan(monkeypatch):
    seen = []
    compiled = _optimise._compiled

    def watched(objective):
        function = compiled(objective)

        def call(*args):
            value, gradient = function(*args)
            seen.append(float(value))
            return value, gradient

        return call

    monkeypatch.setattr(_optimise, "_compiled", watched)
    found = kb.minimise(far_and_flat, kb.Gaussian(np.exp(-4.0)), (1.2,))
    assert np.isnan(seen).any()
    assert np.log(found.params.lengthscale) == pytest.approx(1.0, abs=1e-3)
    assert found.value == pytest.approx(1.0)
    assert all(np.isfinite(step["value"]) for step in found.path)


def test_a_restart_where_the_objective_is_nan_does_no_harm():
    found = kb.minimise(far_and_flat, kb.Gaussian(np.exp(0.9)), (1.05,), restarts=6, random_state=0)
    assert np.log(found.params.lengthscale) == pytest.approx(1.0, abs=1e-3)


def test_nan_at_the_start_is_an_error():
    with pytest.raises(ValueError, match="not finite at the starting parameters"):
        kb.minimise(always_nan, kb.Gaussian(1.0))
    with pytest.raises(ValueError, match="not finite at the starting parameters"):
        kb.minimise(far_and_flat, kb.Gaussian(10.0), (0.0,))


def test_stopping_early_is_announced():
    with pytest.warns(RuntimeWarning, match="stopped early"):
        found = kb.minimise(two_wells, kb.Gaussian(10.0), max_iter=1)
    assert not found.success


def test_a_looser_tolerance_stops_sooner():
    strict, loose = (kb.minimise(two_wells, kb.Gaussian(10.0), tol=tol) for tol in (1e-12, 1e-2))
    assert loose.evaluations < strict.evaluations
    assert loose.value >= strict.value


@pytest.mark.parametrize("restarts", [-1, 1.5, "two"])
def test_bad_numbers_of_restarts_are_refused(restarts):
    with pytest.raises(ValueError, match="restarts"):
        kb.minimise(two_wells, kb.Gaussian(1.0), restarts=restarts)


# ---------------------------------------------------------------------------------------------------- precision


def precise(kernel):
    """Single precision would lose the second term beside the first."""
    return 1e8 + jnp.log(kernel.lengthscale / 3.0) ** 2


@pytest.mark.parametrize("enabled", [False, True])
def test_the_search_is_in_double_precision_and_leaves_the_global_flag_alone(enabled):
    before = jax.config.jax_enable_x64
    try:
        jax.config.update("jax_enable_x64", enabled)
        found = kb.minimise(precise, kb.Gaussian(1.0), tol=1e-16)
        assert jax.config.jax_enable_x64 is enabled
        with pytest.raises(ValueError, match="not finite"):
            kb.minimise(always_nan, kb.Gaussian(1.0))
        assert jax.config.jax_enable_x64 is enabled
    finally:
        jax.config.update("jax_enable_x64", before)
    assert found.params.lengthscale == pytest.approx(3.0, rel=1e-3)


def test_one_compilation_serves_problems_of_one_shape():
    traces = []

    def objective(kernel, target):
        traces.append(1)
        return jnp.log(kernel.lengthscale / target) ** 2

    for target in (2.0, 3.0):
        kb.minimise(objective, kb.Gaussian(1.0), (np.array(target),))
    assert len(traces) == 1


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("a", "str"),
        (None, "NoneType"),
        (3, "int"),
        (["a", "b"], "list"),
        (np.ones(2), r"an array of shape \(2,\) and dtype float64"),
        (np.complex128(1j), "dtype complex128"),
    ],
)
def test_an_objective_that_returns_no_number_is_refused_by_name(returned, said):
    with pytest.raises(TypeError, match=f"^objective must return one real number.*{said}"):
        kb.minimise(lambda kernel: returned, kb.Gaussian(1.0))


def test_steps_on_batches_are_those_of_optax():
    """Adam with a rate that falls along a cosine, away from all bounds."""
    import optax

    steps, rate, rng = 12, 0.05, np.random.default_rng(0)
    shifts = rng.normal(size=steps)
    batches = [(np.float64(shift),) for shift in shifts]
    found = _optimise.minimise_in_batches(log_square, kb.Gaussian(1.0), batches, steps, rate=rate, progress=False)
    adam = optax.adam(optax.cosine_decay_schedule(rate, steps, alpha=0.1))
    with jax.enable_x64(True):
        theta, state, wanted = np.zeros(1), adam.init(np.zeros(1)), []
        for shift in shifts:
            wanted.append(float(theta[0]))
            move, state = adam.update(2.0 * (theta - shift), state)
            theta = theta + np.asarray(move)
    learned = [float(np.log(step["lengthscale"])) for step in found.path]
    np.testing.assert_allclose(learned, wanted, rtol=1e-9, atol=1e-12)


def log_square(kernel, shift):
    return ((jnp.log(kernel.lengthscale) - shift) ** 2).sum()
