"""Ctrl-C is recorded at once and raised at safe points; signal handlers of the user's program are not replaced."""

import os
import signal
import sys
import threading
import time

import numpy as np
import pytest
from numba.core import serialize

from coterie import interrupts, machine
from coterie.errors import FitInterruptedWarning
from coterie.kernels.cpu.jit import jit

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a process cannot send itself signals there")


def press():
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(autouse=True)
def python_handler():
    """Each test starts with Python's own handler, and must leave it as it was."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    after = signal.signal(signal.SIGINT, before)
    assert after is signal.default_int_handler
    assert not interrupts._request.pending


def test_ctrl_c_is_raised_by_the_next_check():
    steps = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():  # noqa: PT012
        press()
        steps.append("after")
        interrupts.check()
        steps.append("never")
    assert steps == ["after"]


def test_ctrl_c_without_a_check_is_raised_at_the_end():
    steps = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        with interrupts.deferred():
            with interrupts.deferred():
                press()
            steps.append("the inner context is not the end")
        steps.append("never")
    assert steps == ["the inner context is not the end"]


def test_a_second_ctrl_c_is_raised_at_once():
    steps = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():  # noqa: PT012
        press()
        steps.append("after the first")
        press()
        steps.append("never")
    assert steps == ["after the first"]


def test_a_second_ctrl_c_does_not_leave_a_lock_half_taken():
    @interrupts.critical
    def taken():
        press()
        press()
        steps.append("whole")

    steps = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():  # noqa: PT012
        taken()
        interrupts.check()
    assert steps == ["whole"]


def test_an_error_after_ctrl_c_is_its_context():
    with pytest.raises(KeyboardInterrupt) as raised, interrupts.deferred():  # noqa: PT012
        press()
        raise ValueError
    assert isinstance(raised.value.__context__, ValueError)


@pytest.mark.parametrize("own", [signal.SIG_IGN, lambda *_: None], ids=["ignored", "a function"])
def test_a_handler_of_the_program_is_not_replaced(own):
    signal.signal(signal.SIGINT, own)
    with interrupts.deferred():
        assert signal.getsignal(signal.SIGINT) is own
        press()
        interrupts.check()
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is own


def test_a_handler_installed_meanwhile_stays():
    with interrupts.deferred():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    assert signal.signal(signal.SIGINT, signal.default_int_handler) is signal.SIG_IGN


def test_other_threads_do_not_touch_handlers():
    def work():
        with interrupts.deferred():
            seen.append(signal.getsignal(signal.SIGINT))

    seen = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.default_int_handler]


def test_a_child_process_starts_with_pythons_handler():
    if not hasattr(os, "fork"):
        pytest.skip("this platform does not fork")
    with interrupts.deferred():
        child = os.fork()
        if child == 0:
            os._exit(0 if signal.getsignal(signal.SIGINT) is signal.default_int_handler else 1)
        assert os.waitpid(child, 0)[1] == 0


@jit
def both(x):
    return x.sum(), x  # a tuple, which Numba makes by a Python function


def test_a_kernel_is_left_by_ctrl_c_alone():
    """Numba calls a Python function to make the result, and ignores what is raised there."""
    both(np.ones(3))
    unpickled = serialize._numba_unpickle.__code__
    for handler in (signal.default_int_handler, _raising):
        signal.signal(signal.SIGINT, handler)
        outcomes = [_pressed_in(unpickled) for _ in range(3)]
        signal.signal(signal.SIGINT, signal.default_int_handler)
        assert outcomes == [KeyboardInterrupt] * 3


def _raising(*_):
    raise KeyboardInterrupt


def _pressed_in(code):
    """What a kernel raises if Ctrl-C is pressed while Python runs `code` within it."""

    def trace(frame, event, arg):
        if event == "call" and frame.f_code is code:
            press()

    try:
        sys.setprofile(trace)
        try:
            both(np.ones(3))
        finally:
            sys.setprofile(None)
    except BaseException as error:
        return type(error)
    return None


def test_the_cause_of_a_system_error_is_found_however_deep_it_is():
    error = SystemError("kernel")
    error.__cause__ = SystemError("unpacking")
    error.__cause__.__cause__ = interrupt = KeyboardInterrupt()
    assert interrupts.cause(error) is interrupt
    alone = SystemError("something else")
    assert interrupts.cause(alone) is alone


def test_one_blas_thread_is_given_back_after_ctrl_c():
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt), machine.one_blas_thread:  # noqa: PT012
            press()
            interrupts.check()
        assert machine.one_blas_thread._users == 0


def test_calls_in_other_threads_end_soon_after_ctrl_c():
    """Each call would take a minute, but looks for interrupts."""
    running = []

    def long(i):
        running.append(i)
        if len(running) == 2:
            press()
        for _ in range(6000):
            time.sleep(0.01)
            interrupts.check()

    with pytest.raises(KeyboardInterrupt), machine.one_blas_thread:
        list(machine.in_threads(long, [(i,) for i in range(8)], 2))
    assert sorted(running) == [0, 1]


def test_an_error_in_one_call_cancels_the_others():
    def call(i):
        if i == 0:
            raise ValueError("first")
        for _ in range(6000):
            time.sleep(0.01)
            interrupts.check()

    with pytest.raises(ValueError, match="first"):
        list(machine.in_threads(call, [(i,) for i in range(8)], 2))


def test_only_the_outermost_computation_keeps_its_result():
    with interrupts.outermost() as keeps:
        assert keeps
        with interrupts.outermost() as nested:
            assert not nested
    for n_jobs in (1, 2):
        assert list(machine.in_threads(_keeps, [()] * 3, n_jobs)) == [False] * 3
    assert _keeps()


def _keeps():
    with interrupts.outermost() as keeps:
        return keeps


def test_only_ctrl_c_in_a_computation_of_the_user_with_a_result_keeps_it():
    stop = KeyboardInterrupt()
    with pytest.warns(FitInterruptedWarning, match="interrupted: the best result so far is kept"):
        interrupts.keep_result(stop, is_outermost=True, has_result=True)
    for error, is_outermost, has_result in [(ValueError(), True, True), (stop, False, True), (stop, True, False)]:
        with pytest.raises(type(error)):
            interrupts.keep_result(error, is_outermost, has_result)
