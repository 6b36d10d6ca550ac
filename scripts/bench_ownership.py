"""What ownership costs: CPU of the server process a row and a statement, of one schema without annotations,
with them, and with rows sealed and keys blinded; FORGET against DELETE and GET against SELECT of the same rows.

    PYTHONPATH=tests scripts/bench_ownership.py --binary target/release/manxdb [--rounds 3] [--statements 3000]
        [--sizes 1000,10000,100000]

Prints tables in Markdown. CPU is the process's own, so that a machine which others use too changes it less
than times; the systems alternate, and the median of the rounds is shown.
"""

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import pymysql

from harness.servers import PASSWORD, Manxdb

PLAIN = """
CREATE TABLE users (id INT PRIMARY KEY, name VARCHAR(40), mail VARCHAR(60), UNIQUE (mail));
CREATE TABLE posts (id INT AUTO_INCREMENT PRIMARY KEY, user_id INT NOT NULL, title VARCHAR(60), body TEXT,
  KEY (title), CONSTRAINT of_user FOREIGN KEY (user_id) REFERENCES users (id))
"""
OWNED = PLAIN.replace("CREATE TABLE users", "CREATE DATA_SUBJECT TABLE users").replace(
    "REFERENCES users", "OWNED_BY users")
SYSTEMS = {"plain": PLAIN, "annotated": OWNED, "sealed": OWNED}
PEOPLE = 200
POSTS = 50
BODY = "x" * 150


class System:
    """A server with one of the schemas."""

    def __init__(self, binary, name, scratch):
        extra = []
        if name == "sealed":
            master = scratch / "master"
            master.write_text("5" * 64)
            extra = ["--vault", str(scratch / "vault"), "--vault-mirror", str(scratch / "mirror"),
                     "--master-key-file", str(master)]
        self.name = name
        self.server = Manxdb(binary, extra=extra)
        self.server.start()
        self.link = pymysql.connect(host="127.0.0.1", port=self.server.port, user="root", password=PASSWORD,
                                    autocommit=True)
        self.run("CREATE DATABASE bench")
        self.link.select_db("bench")
        for statement in SYSTEMS[name].split(";"):
            self.run(statement)

    def run(self, sql):
        """Rows of a statement."""
        with self.link.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall()

    def cpu(self, work):
        """Microseconds of CPU the server spends while `work` runs."""
        # The clock of another process's CPU: see clock_getcpuclockid(3).
        clock = (~self.server.process.pid << 3) | 2
        before = time.clock_gettime(clock)
        work()
        return (time.clock_gettime(clock) - before) * 1e6

    def person(self, number, posts):
        """A person with rows."""
        self.run(f"INSERT INTO users VALUES ({number}, 'name {number}', 'mail{number}@example.org')")
        for first in range(0, posts, 500):
            rows = ", ".join(f"({number}, 'title {number}-{at}', '{BODY}')"
                             for at in range(first, min(first + 500, posts)))
            self.run(f"INSERT INTO posts (user_id, title, body) VALUES {rows}")

    def stop(self):
        """Ends the server."""
        self.link.close()
        self.server.stop()


def one_round(system, statements):
    """{what: microseconds of CPU a row or statement}."""
    def fill():
        for number in range(PEOPLE):
            system.person(number, POSTS)

    def repeat(sql):
        def work():
            for at in range(statements):
                system.run(sql(at))
        return work

    found = {"insert, a row": system.cpu(fill) / (PEOPLE * (POSTS + 1))}
    posts = PEOPLE * POSTS
    for what, sql in (
            ("insert of one row", lambda at: f"INSERT INTO posts (user_id, title, body) VALUES ({at % PEOPLE}, 'more {at}', '{BODY}')"),
            ("select by primary key", lambda at: f"SELECT * FROM posts WHERE id = {at * 7 % posts + 1}"),
            ("select by text with an index", lambda at: f"SELECT * FROM posts WHERE title = 'title {at % PEOPLE}-{at % POSTS}'"),
            ("select of a person's rows", lambda at: f"SELECT * FROM posts WHERE user_id = {at % PEOPLE}"),
            ("update by primary key", lambda at: f"UPDATE posts SET body = '{at}' WHERE id = {at * 7 % posts + 1}")):
        found[what] = system.cpu(repeat(sql)) / statements
    return found


def statements(options, scratch):
    """The table of statements."""
    rounds = {name: [] for name in SYSTEMS}
    for number in range(options.rounds):
        order = list(SYSTEMS) if number % 2 == 0 else list(reversed(SYSTEMS))
        for name in order:
            with tempfile.TemporaryDirectory(dir=scratch) as place:
                system = System(options.binary, name, Path(place))
                rounds[name].append(one_round(system, options.statements))
                system.stop()
    print("| CPU µs | plain | annotated | sealed | annotated ÷ plain | sealed ÷ plain |")
    print("|---|---|---|---|---|---|")
    for what in rounds["plain"][0]:
        plain, annotated, sealed = (statistics.median(found[what] for found in rounds[name]) for name in SYSTEMS)
        print(f"| {what} | {plain:.1f} | {annotated:.1f} | {sealed:.1f} | {annotated / plain:.2f} | {sealed / plain:.2f} |")


def people(options, scratch):
    """The table of FORGET and GET, on a server with a vault."""
    print("\n| rows of the person | GET µs a row | SELECT | GET ÷ SELECT | FORGET µs a row | DELETE | FORGET ÷ DELETE |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=scratch) as place:
        system = System(options.binary, "sealed", Path(place))
        number = 1000
        for size in options.sizes:
            found = {what: [] for what in ("get", "select", "forget", "delete")}
            for _ in range(options.rounds):
                number += 2
                system.person(number, size)
                system.person(number + 1, size)
                work = {
                    "get": [f"GDPR GET users {number}"],
                    "select": [f"SELECT * FROM users WHERE id = {number}", f"SELECT * FROM posts WHERE user_id = {number}"],
                    "forget": [f"GDPR FORGET users {number}"],
                    "delete": ["BEGIN", f"DELETE FROM posts WHERE user_id = {number + 1}",
                               f"DELETE FROM users WHERE id = {number + 1}", "COMMIT"],
                }
                for what, sqls in work.items():
                    found[what].append(system.cpu(lambda sqls=sqls: [system.run(sql) for sql in sqls]) / size)
            get, select, forget, delete = (statistics.median(found[what]) for what in ("get", "select", "forget", "delete"))
            print(f"| {size:,} | {get:.1f} | {select:.1f} | {get / select:.2f} | {forget:.1f} | {delete:.1f} | {forget / delete:.2f} |",
                  flush=True)
        system.stop()


def main():
    """Both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--statements", type=int, default=3000, help="of each kind in a round")
    parser.add_argument("--sizes", type=lambda text: [int(size) for size in text.split(",")],
                        default=[1_000, 10_000, 100_000])
    options = parser.parse_args()
    options.binary = os.path.abspath(options.binary)
    version = subprocess.run([options.binary, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{version}, load {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors, {options.rounds} rounds\n")
    with tempfile.TemporaryDirectory(prefix="manxdb-bench-ownership-") as scratch:
        statements(options, scratch)
        people(options, scratch)


if __name__ == "__main__":
    main()
