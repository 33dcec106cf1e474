"""A message is sent once when kernels are compiled."""

import logging

import numpy as np
import pytest

from coterie.kernels import compile_notice
from coterie.kernels.cpu.jit import compiling


@pytest.fixture
def unsent(monkeypatch):
    monkeypatch.setattr(compile_notice, "_is_sent", False)
    monkeypatch.setattr(compile_notice, "_listeners", [])


def compile_something():
    kernel = compiling(cache=False)(lambda x: x + 1)
    assert kernel(1) == 2


def test_a_listener_gets_one_message(unsent):
    messages = []
    with compile_notice.listening(messages.append):
        compile_something()
        compile_something()
    assert messages == [compile_notice.MESSAGE]
    assert compile_notice._listeners == []


def test_it_is_logged(unsent, caplog):
    with caplog.at_level(logging.INFO, "coterie"):
        compile_something()
    assert caplog.messages == [compile_notice.MESSAGE]


def test_it_is_printed_if_an_estimator_is_verbose(unsent, capsys, monkeypatch):
    from coterie import KMeans

    KMeans(2, verbose=1, random_state=0).fit(np.arange(10.0).reshape(5, 2))
    capsys.readouterr()
    monkeypatch.setattr(compile_notice, "_is_sent", False)  # without a cache, the fit has compiled its kernels
    compile_something()
    assert capsys.readouterr().out == f"{compile_notice.MESSAGE}\n"


def test_nothing_is_printed_by_default(unsent, capsys):
    compile_something()
    assert capsys.readouterr() == ("", "")
