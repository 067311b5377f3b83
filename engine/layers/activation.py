"""Activation functions by their published names, in NumPy. The compiled kernels approximate these within 1e-6."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

F32 = NDArray[np.float32]

# |x| past which erf(x) is 1 in double precision, and a degree that resolves erf on [0, 6] to 1e-15.
ERF_LIMIT, ERF_DEGREE = 6.0, 60

# Less than that, x gives what this gives, which is -0 in float32: e^700 is near the largest float64.
LOWEST = np.float32(-700.0)


@cache
def _erf_coefficients() -> NDArray[np.floating]:
    from numpy.polynomial import chebyshev  # here and below, because the compiled kernels do without

    nodes = chebyshev.chebpts1(ERF_DEGREE + 1)
    values = [math.erf((x + 1) * ERF_LIMIT / 2) for x in nodes]
    return chebyshev.chebfit(nodes, values, ERF_DEGREE)


def erf(x: NDArray[np.floating]) -> NDArray[np.float64]:
    """The error function in double precision (NumPy has none): a Chebyshev series fitted to `math.erf`."""
    from numpy.polynomial import chebyshev

    size = np.minimum(np.abs(x.astype(np.float64)), ERF_LIMIT)
    value: NDArray[np.float64] = chebyshev.chebval(size * (2 / ERF_LIMIT) - 1, _erf_coefficients())
    value[size == ERF_LIMIT] = 1.0  # not nearly: the rest is multiplied by numbers of any size
    return np.where(x < 0, -value, value)


def gelu(x: F32) -> F32:
    """x * Phi(x), exact (Hendrycks and Gimpel 2016)."""
    wide = np.maximum(x, LOWEST).astype(np.float64)
    return (0.5 * wide * (1.0 + erf(wide / math.sqrt(2.0)))).astype(np.float32)


def gelu_tanh(x: F32) -> F32:
    """The tanh form of GELU."""
    wide = np.maximum(x, LOWEST).astype(np.float64)
    return (0.5 * wide * (1.0 + np.tanh(math.sqrt(2.0 / math.pi) * (wide + 0.044715 * wide**3)))).astype(np.float32)


def relu(x: F32) -> F32:
    return np.maximum(x, np.float32(0))


def silu(x: F32) -> F32:
    """x * sigmoid(x)."""
    wide = np.maximum(x, LOWEST).astype(np.float64)
    return (wide / (1.0 + np.exp(-wide))).astype(np.float32)


def tanh(x: F32) -> F32:
    return np.tanh(x)


ACTIVATIONS: dict[str, Callable[[F32], F32]] = {
    "gelu": gelu,
    "gelu_new": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "relu": relu,
    "silu": silu,
    "tanh": tanh,
}
