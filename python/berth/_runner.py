"""Requests in flight: a program opened once, any number of runs at the same time, their results as futures."""

import atexit
import concurrent.futures
import ctypes
import itertools
import threading
import weakref

from . import _arrays, _native, _program
from ._native import BerthError, Handle, run, text

_pending: dict = {}  # number -> Request that has not ended; keeps it, its arrays and its runner
_numbers = itertools.count(1)
_here = threading.local()
_runners: weakref.WeakSet = weakref.WeakSet()


@atexit.register
def _close_all():
    for runner in list(_runners):
        runner.close()


def _end(user, pointer):
    """On a thread of the runner, or on that of who cancels."""
    request = _pending.pop(user)
    _here.ending = getattr(_here, "ending", 0) + 1
    try:
        request._end(pointer)
    finally:
        del request
        _here.ending -= 1


_done = _native.REQUEST_DONE(_end)


def _destroy(pointer):
    # The library waits for callbacks: from within one, another thread has to do it.
    if getattr(_here, "ending", 0):
        threading.Thread(target=run.berth_runner_destroy, args=(pointer,)).start()
    else:
        run.berth_runner_destroy(pointer)


class Request(concurrent.futures.Future):
    """A run on its way: a concurrent.futures.Future of the list of outputs, so that `wait`, `as_completed` and
    `asyncio.wrap_future` take it. What went wrong is a BerthError (DEADLINE_EXCEEDED where its time was up)."""

    def __init__(self, runner, inputs, out):
        super().__init__()
        self._runner, self._inputs, self._out = runner, inputs, out
        self._lock = threading.RLock()  # of the next two; cancelling may end the request on the same thread
        self._pointer, self._over = None, False

    def cancel(self):
        """Ends it: at once where it waits for its turn; when it runs, after the steps that have begun. True: it has
        ended by that; False: it has ended otherwise, or is about to."""
        with self._lock:
            if self._pointer and not self._over:
                run.berth_request_cancel(self._pointer)
        return self.cancelled()

    def _begin(self, pointer):
        with self._lock:
            if self._over:
                run.berth_request_release(pointer)
            else:
                self._pointer = pointer

    def _end(self, pointer):
        code = text(run.berth_code_name(run.berth_request_code(pointer)))
        failed = run.berth_request_code(pointer) != 0
        message = text(run.berth_request_message(pointer))
        with self._lock:
            self._over = True
            if self._pointer:
                run.berth_request_release(self._pointer)
        out, self._inputs, self._out, self._runner = self._out, None, None, None
        if not failed:
            self.set_result(out)
        elif code == "CANCELLED":
            super().cancel()
            self.set_running_or_notify_cancel()
        else:
            self.set_exception(BerthError(code, message))


class Runner:
    """A program on this machine's devices, with its threads, code and constants once, for many runs at the same time.
    Any thread may submit. Closing it, or leaving its `with`, cancels what has not begun and waits for the rest.

    at_once:      runs at the same time; 0 = one per device that the program computes on, and one
    most_waiting: that wait for their turn besides; more are BerthError OUT_OF_RANGE. 0 = no limit
    threads, devices, cache, message, fallbacks: as Session takes them

    >>> import berth, numpy as np
    >>> program = berth.load("examples/digits/digits.onnx", target="cpu", dims={"batch": 1}).program()
    >>> images = np.load("examples/digits/test_images.npy")
    >>> with program.runner(at_once=2) as runner:
    ...     requests = [runner.submit([images[i:i + 1]]) for i in range(3)]
    ...     [int(request.result()[0].argmax()) for request in requests]
    [2, 3, 4]
    """

    def __init__(self, program, at_once=0, most_waiting=0, threads=0, devices=None, cache=None, message=None,
                 fallbacks=True):
        self.program = program
        self._settings = _program.SessionSettings(threads, False, devices, cache, message, fallbacks)
        settings = _native.RunnerSettings(size_bytes=ctypes.sizeof(_native.RunnerSettings), at_once=at_once,
                                          most_waiting=most_waiting, session=ctypes.pointer(self._settings.record))
        self._handle = Handle(run.berth_runner_create, _destroy, _program.pointer_of(program), ctypes.byref(settings))
        _runners.add(self)

    def submit(self, inputs, out=None, timeout=None, done=None):
        """Puts a run behind those that wait. `inputs`: values in the program's order, left alone until the end; `out`:
        contiguous arrays to write; new ones otherwise. `timeout`: seconds from now on, waiting included. `done`:
        function(request), called at its end, mostly on a thread of the runner, which does nothing else meanwhile.
        Gives a Request, whose result is the list of outputs."""
        pointer = self._open()
        program = self.program
        inputs = [_arrays.as_array(value, port) for value, port in zip(inputs, program.inputs)] + list(
            inputs[len(program.inputs):])
        if out is None:
            out = [_arrays.empty(port) for port in program.outputs]
        _arrays.check_out(out, program.outputs)
        request, number, held = Request(self, inputs, out), next(_numbers), ctypes.c_void_p()
        call = _native.RequestCall(
            size_bytes=ctypes.sizeof(_native.RequestCall), inputs=_arrays.tensors_of(inputs, program.inputs),
            input_count=len(inputs), outputs=_arrays.tensors_of(out, program.outputs), output_count=len(out),
            timeout_ns=max(1, int(timeout * 1e9)) if timeout is not None else 0, done=_done, user=number)
        if done:
            request.add_done_callback(done)
        _pending[number] = request
        try:
            run.berth_runner_submit(pointer, ctypes.byref(call), ctypes.byref(held))
        except BaseException:
            _pending.pop(number, None)
            raise
        request._begin(held)
        return request

    def map(self, inputs, timeout=None):
        """The outputs for each list of inputs, in their order; all are submitted at once."""
        requests = [self.submit(one, timeout=timeout) for one in inputs]
        return [request.result() for request in requests]

    @property
    def plan(self):
        """Which plan runs, and why no earlier one: as Session.plan."""
        return _program.plan_in_use(run.berth_runner_plan, self._open())

    def close(self):
        pointer, self._handle.pointer = self._handle.pointer, None
        if pointer:
            _destroy(pointer)

    def _open(self):
        if not self._handle.pointer:
            raise BerthError("FAILED_PRECONDITION", "the runner is closed")
        return self._handle.pointer

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
