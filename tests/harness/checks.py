"""For Python suites: functions marked `@check` run in order and print PASS or FAIL."""

import os
import sys
import time
import traceback

HOST = os.environ.get("MANXDB_TEST_HOST", "127.0.0.1")
PORT = int(os.environ.get("MANXDB_TEST_PORT", "3306"))
USER = os.environ.get("MANXDB_TEST_USER", "root")
PASSWORD = os.environ.get("MANXDB_TEST_PASSWORD", "")
DATABASE = os.environ.get("MANXDB_TEST_DATABASE", "manx_test")
IS_MARIADB = os.environ.get("MANXDB_TEST_SERVER") == "mariadb"

# Characters of an error that are shown.
SHOWN = 1200
# A check that takes more seconds says so.
SLOW = 10

_registered = []


def rounds(usual, at_night):
    """How often a check repeats what goes otherwise each time: `make night` draws more seeds, too."""
    return at_night if int(os.environ.get("MANXDB_SEEDS", "1")) > 1 else usual


class Skip(Exception):
    """The check cannot run here; the text says why."""


def check(function):
    """Marks a check; its name is the function's with spaces."""
    _registered.append(function)
    return function


def one_line(error):
    """An exception as one line with the place it came from in the suite."""
    frame = traceback.extract_tb(error.__traceback__)[1:2]
    place = f" (line {frame[0].lineno})" if frame else ""
    text = " ".join(str(error).split())
    if len(text) > SHOWN:
        # What a server said last is at the end.
        text = f"{text[:SHOWN // 3]} […] {text[-2 * SHOWN // 3:]}"
    return f"{type(error).__name__}: {text}{place}"


def run_check(name, function):
    """Runs one check and prints its line, and its time when that is long; True when it passed."""
    began = time.monotonic()
    busy = time.process_time()
    try:
        function()
    except Skip as reason:
        print(f"SKIP {name}: {reason}", flush=True)
    except Exception as error:  # every failure of a check is a result, not a crash
        print(f"FAIL {name}: {one_line(error)}", flush=True)
        return False
    else:
        print(f"PASS {name}", flush=True)
    if (seconds := time.monotonic() - began) > SLOW:
        print(f"    took {seconds:.0f} s, {time.process_time() - busy:.0f} s of CPU in the suite itself", flush=True)
    return True


def main():
    """Runs all registered checks; exits 1 when one failed."""
    wanted = sys.argv[1:]
    failed = 0
    for function in _registered:
        name = function.__name__.replace("_", " ")
        if wanted and not any(word in name for word in wanted):
            continue
        failed += not run_check(name, function)
    sys.exit(1 if failed else 0)


def expect(actual, wanted, what=""):
    """Equal, or a failure that shows both."""
    if actual != wanted:
        raise AssertionError(f"{what + ': ' if what else ''}got {actual!r}, wanted {wanted!r}")


def expect_error(numbers, function, *arguments, **named):
    """The call fails with one of the error numbers; returns the exception."""
    numbers = numbers if isinstance(numbers, tuple) else (numbers,)
    try:
        function(*arguments, **named)
    except Exception as error:
        number = error_number(error)
        if number not in numbers:
            raise AssertionError(f"error {number} ({error}), wanted {numbers}") from error
        return error
    raise AssertionError(f"succeeded, wanted error {numbers}")


def error_number(error):
    """MySQL's number out of a PyMySQL, SQLAlchemy or Django exception."""
    original = getattr(error, "orig", None) or error
    arguments = getattr(original, "args", ())
    return arguments[0] if arguments and isinstance(arguments[0], int) else None
