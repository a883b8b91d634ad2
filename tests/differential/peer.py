"""What the scripts of this folder share: when results are equal, Berth's package of this checkout, and comparing in a process of its own."""
import multiprocessing
import os
import sys

import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BERTH = os.environ.get('BERTH', os.path.join(ROOT, 'build/release/berth'))
os.environ.setdefault('BERTH_LIBRARY_DIR', os.path.join(ROOT, 'build/release'))


def use_package():
    sys.path.insert(0, os.path.join(ROOT, 'python'))
    import berth
    return berth


def differs(expected, got, slack, floor=1e-3):
    """What differs, or None. Floats: within `slack` (16 bits: 1e-2 at least) of the largest finite magnitude and `floor`; sequences: in order."""
    if isinstance(expected, list):
        if not isinstance(got, list) or len(got) != len(expected):
            return 'expected a sequence of %d, got %s' % (len(expected), len(got) if isinstance(got, list) else type(got).__name__)
        return next((d for d in (differs(a, b, slack, floor) for a, b in zip(expected, got)) if d), None)
    if expected is None or got is None:
        return None if expected is got else 'expected %s, got %s' % (expected, got)
    expected, got = np.asarray(expected), np.asarray(got)
    if expected.shape != got.shape or (expected.dtype != got.dtype and expected.dtype.kind == got.dtype.kind):
        return 'expected %s %s, got %s %s' % (expected.dtype, expected.shape, got.dtype, got.shape)
    if expected.dtype.kind != 'f':
        wrong = expected != got
    else:
        a, b = expected.astype(np.float64), got.astype(np.float64)
        finite = np.isfinite(a)
        scale = (np.abs(a[finite]).max() if finite.any() else 0) + floor
        with np.errstate(invalid='ignore'):
            near = np.abs(a - b) <= scale * max(slack, 1e-2 if expected.dtype.itemsize == 2 else 0)
        wrong = ~((a == b) | (np.isnan(a) & np.isnan(b)) | (finite & near))
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return '%d of %d elements differ, the first at %s: expected %s, got %s' % (wrong.sum(), wrong.size, at, expected[at], got[at])


def attempt(compare, limit, *arguments):
    """What `compare(*arguments, sink)`, in a process of its own, puts into the sink; or how that process ended, after `limit` seconds at most."""
    sink = multiprocessing.Queue()
    process = multiprocessing.Process(target=compare, args=(*arguments, sink))
    process.start()
    process.join(limit)
    if process.is_alive():
        process.kill()
        process.join()
        return 'no end after %d s' % limit
    return sink.get() if process.exitcode == 0 else 'the process ended with %d' % process.exitcode
