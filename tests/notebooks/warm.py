"""Notebook kernels that start from a process in
which what notebooks import is imported already.

A kernel takes four seconds of processor time before its first cell runs. These are
forked from one process of each test worker, which imports once; everything else is the
kernel that readers have.
"""

import os
import signal
import sys
import time
from multiprocessing import get_context
from subprocess import TimeoutExpired
from unittest.mock import patch

# Not pyplot, which must find the kernel that it draws for,
# but what makes its import slow.
IMPORTED = (
    "ipykernel.kernelapp",
    "ipykernel.inprocess",
    "ipykernel.zmqshell",
    "IPython.core.pylabtools",
    "matplotlib.figure",
    "matplotlib.image",
    "matplotlib.style",
    "matplotlib.widgets",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib.dates",
    "pandas",
    "pandas.io.formats.style",
    "pyarrow.parquet",
    "scipy.stats",
    "sklearn.linear_model",
    "sklearn.pipeline",
    "sklearn.preprocessing",
    "statsmodels.api",
    "statsmodels.stats.power",
    "statsmodels.stats.proportion",
    "rubricnb.book.replication",
    "rubricnb.rulers",
    "rubricnb.book.summary",
    "rubricnb.statistics",
    "rubricnb.book.tables",
    "rubricnb.book.plots",
    "rubricnb.engines.embedded",
    "rubricnb.engines.fitting",
    "rubricnb.engines.openai",
    "rubricnb.core.run",
)
# What libraries read while they are imported.
AT_IMPORT = {
    "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
_forks = get_context("forkserver")


def _run(command, cwd, environment, path):
    """In the forked process: what ``python -m ipykernel_launcher`` does."""
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[:] = path
    sys.argv = ["ipykernel_launcher", *command[command.index("-f") :]]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from ipykernel import kernelapp

    kernelapp.launch_new_instance()


class _Started:
    """A forked kernel, as `subprocess.Popen` would show it."""

    stdin = stdout = stderr = None

    def __init__(self, process):
        self.process, self.pid = process, process.pid

    def poll(self):
        return self.process.exitcode

    def wait(self, timeout=None):
        self.process.join(timeout)
        if self.process.exitcode is None:
            raise TimeoutExpired("kernel", timeout)
        return self.process.exitcode

    def send_signal(self, number):
        os.kill(self.pid, number)

    def terminate(self):
        self.process.terminate()

    def kill(self):
        self.process.kill()


def launch(command, *, cwd=None, env=None, **_):
    """Start a kernel, as `jupyter_client.launch_kernel` would."""
    _forks.set_forkserver_preload(list(IMPORTED))
    environment = dict(os.environ if env is None else env)
    kernel = _forks.Process(
        target=_run,
        args=(command, cwd or os.getcwd(), environment, _kernel_path()),
        daemon=True,
    )
    # the first kernel also starts the process to fork from
    with patch.dict(os.environ, AT_IMPORT):
        kernel.start()
    while os.getpgid(kernel.pid) != kernel.pid and kernel.is_alive():
        time.sleep(0.005)  # the kernel's manager ends the group that it finds here
    return _Started(kernel)


def _kernel_path():
    """What a Python of its own would search: nothing that tests add."""
    added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [p for p in sys.path if p and ("tests" not in p.split(os.sep) or p in added)]
