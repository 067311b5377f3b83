"""Fixtures that run a test on every instruction set of this processor."""

from collections.abc import Iterator

import pytest

from engine.kernels import loader

COMPILED = [isa for isa in loader.info()["available"] if isa != loader.REFERENCE]


def use_isa(name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The kernels of one instruction set until the test ends."""
    monkeypatch.setenv("INKLING_ISA", name)
    loader.library.cache_clear()
    yield name
    loader.library.cache_clear()


@pytest.fixture(params=[*COMPILED, loader.REFERENCE])
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every instruction set that runs here, and the NumPy reference."""
    yield from use_isa(request.param, monkeypatch)


@pytest.fixture(params=COMPILED)
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Every instruction set that runs here."""
    yield from use_isa(request.param, monkeypatch)
