"""A simulator for worker processes, which import this file and with it nothing but the standard library."""

NOISE = 0.5


def normal_pair(mu, rng):
    return {"mean": rng.normal(mu, NOISE), "other": rng.normal(0.5 * mu, NOISE)}
