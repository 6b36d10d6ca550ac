"""Peak memory of the server, over what it holds at rest, while one transaction writes many rows.

Each case has a server of its own, started on a directory that was filled before, so that nothing of
the case before is in its memory; another session updates other rows of the same table meanwhile.

    PYTHONPATH=tests python scripts/bulk_memory.py target/debug/manxdb [--rows 1000000] [--only UPDATE]
"""

import argparse
import shutil
import threading
import time
from pathlib import Path

import pymysql

from harness.servers import PASSWORD, Manxdb

CASES = [
    ("INSERT … SELECT", "INSERT INTO target SELECT * FROM source"),
    ("LOAD DATA", "LOAD DATA INFILE '{files}/rows' INTO TABLE target"),
    ("UPDATE, no index", "UPDATE source SET note = CONCAT(note, 'x')"),
    ("UPDATE, indexed column", "UPDATE source SET number = number + 1"),
    ("DELETE", "DELETE FROM source"),
]
TABLE = "(id INT PRIMARY KEY, number INT NOT NULL, note VARCHAR(40) NOT NULL, KEY (number))"


def connect(server):
    """A session as root in the database."""
    return pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, autocommit=True,
                           read_timeout=3600)


def memory_mb(server, field):
    """A field of the process's status, in MiB."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1]) / 1024


def fill(server, rows):
    """The table that cases read and change, in transactions of a few rows, and a file of it."""
    with open(server.files / "rows", "w", encoding="ascii") as file:
        for row in range(rows):
            file.write(f"{row}\t{row * 7919 % rows}\tnote of row {row}\n")
    with connect(server) as link, link.cursor() as cursor:
        cursor.execute("CREATE DATABASE bulk")
        cursor.execute("USE bulk")
        for name in ("source", "target", "beside"):
            cursor.execute(f"CREATE TABLE {name} {TABLE}")
        lines = (server.files / "rows").read_text().splitlines(keepends=True)
        part = server.files / "part"
        for start in range(0, rows, 20_000):
            part.write_text("".join(lines[start:start + 20_000]))
            cursor.execute(f"LOAD DATA INFILE '{part}' INTO TABLE source")


def write_beside(server, table, first, stop):
    """Rows of the same table that the case does not write, one a transaction."""
    with connect(server) as link, link.cursor() as cursor:
        cursor.execute("USE bulk")
        row = first
        while not stop.wait(0.05):
            cursor.execute(f"INSERT INTO {table} VALUES ({row}, {row}, 'beside')")
            row += 1


def measure(binary, data, files, case, level):
    """(MiB over what the server holds at rest, seconds) of one case at one level."""
    server = Manxdb(binary)
    shutil.copytree(data, server.data)
    for file in files.iterdir():
        shutil.copy(file, server.files)
    with server:
        name, text = case
        with connect(server) as link, link.cursor() as cursor:
            cursor.execute("USE bulk")
            cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
            time.sleep(1)
            at_rest = memory_mb(server, "VmRSS")
            # The peak begins anew.
            Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")
            stop = threading.Event()
            table = "target" if "INTO" in text else "source"
            other = threading.Thread(target=write_beside, args=(server, table, 1 << 29, stop))
            # A whole table that is written would wait for its rows, or lose to them.
            if table == "target":
                other.start()
            began = time.monotonic()
            cursor.execute(text.format(files=server.files))
            seconds = time.monotonic() - began
            stop.set()
            if other.ident:
                other.join()
            return memory_mb(server, "VmHWM") - at_rest, seconds


def main():
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--only", default="")
    parser.add_argument("--level", default="")
    options = parser.parse_args()
    with Manxdb(options.binary) as server:
        fill(server, options.rows)
        server.stop()
        print(f"| {options.rows} rows in one transaction | level | MiB over rest | seconds |\n|---|---|---|---|")
        for case in CASES:
            for level in ("REPEATABLE READ", "SERIALIZABLE"):
                if options.only in case[0] and options.level in level:
                    peak, seconds = measure(options.binary, server.data, server.files, case, level)
                    print(f"| {case[0]} | {level} | {peak:.0f} | {seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
