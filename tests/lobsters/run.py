"""Lobsters' pages on ManxDB and on MariaDB, filled alike: every answer must be the same.

    run.py [--pages 400] [--seeds 2] [--scale 0.02]
"""

import argparse
import os
import subprocess
import sys

from harness.servers import PASSWORD, Manxdb, Mariadb

DATABASE = "lobsters"


def address(server, database):
    """What `manxdb bench` takes."""
    return f"mysql://root@127.0.0.1:{server.port}/{database}"


def bench(binary, *arguments):
    """(exit code, output) of `manxdb bench lobsters`."""
    command = [binary, "bench", "lobsters", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "MANXDB_PASSWORD": PASSWORD})
    return done.returncode, " | ".join((done.stdout + done.stderr).split("\n")).strip(" |")


def check(name, code, output):
    """Prints the result as the runner reads it."""
    print(f"PASS {name}" if code == 0 else f"FAIL {name}: {output[-1500:]}", flush=True)
    return code == 0


def same_answers(binary, servers, options, seed):
    """One seed: its own database on both servers, the same pages on both."""
    database = f"{DATABASE}_{seed}"
    site = ["--scale", options.scale, "--seed", seed]
    for server in servers:
        code, output = bench(binary, "fill", "--url", address(server, database), *site)
        if code != 0:
            return check(f"{server.name} is filled with seed {seed}", code, output)
    ours, theirs = (address(server, database) for server in servers)
    return check(f"pages of seed {seed} answer alike",
                 *bench(binary, "compare", "--url", ours, "--against", theirs, "--pages", options.pages, *site))


def annotated(binary, manxdb, options):
    """Owners named: the same site runs, open loop, without a failed page."""
    url = address(manxdb, "owned")
    site = ["--url", url, "--scale", options.scale]
    code, output = bench(binary, "fill", "--annotated", *site)
    if not check("the annotated schema is filled", code, output):
        return False
    code, output = bench(binary, "run", "--rate", "50", "--seconds", "2", *site)
    return check("the annotated site serves pages as they arrive", code or int("FAILED" in output), output)


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--scale", type=float, default=0.02)
    options = parser.parse_args()
    binary = os.environ["MANXDB_TEST_BINARY"]
    with Manxdb(binary) as manxdb, Mariadb() as mariadb:
        good = [same_answers(binary, (manxdb, mariadb), options, seed) for seed in range(1, options.seeds + 1)]
        good.append(annotated(binary, manxdb, options))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
