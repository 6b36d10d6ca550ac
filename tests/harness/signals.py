"""Signals to processes that tests do not own."""

import os
import signal
import time
from pathlib import Path

# Only against hanging.
PATIENCE = 60
GONE_OR_STOPPED = (None, "t", "T")


def stand_still(process):
    """SIGSTOP; returns when no thread of the process runs any more, which takes its time on a busy machine."""
    os.kill(process, signal.SIGSTOP)
    deadline = time.monotonic() + PATIENCE
    while any(state(thread) not in GONE_OR_STOPPED for thread in Path(f"/proc/{process}/task").iterdir()):
        assert time.monotonic() < deadline, f"process {process} does not stand still"
        time.sleep(0.001)


def state(thread):
    """The letter that the kernel has for what a thread does; None: it is no more."""
    try:
        # The name of the program before it, in brackets, may have spaces.
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None
