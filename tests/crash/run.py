"""kill -9 under write load: what was acknowledged is there, nothing is there by half.

Workers move money between accounts and write a ledger row in the same transaction. Each keeps
what the server acknowledged and what was under way when the connection broke. After every kill
the server starts again on the same directory and the books are checked:

1. the sum of all balances is what it was;
2. every acknowledged ledger row is there, and no row that nobody wrote;
3. each balance is what the ledger says (no half transaction);
4. an index agrees with the table, also while indexes come and go;
5. materialized views, which the load reads and which hold nothing after a start, answer what the tables say;
6. rows that were deleted before do not come back.

    run.py [--cycles 40] [--seed 1]     (the default: MANXDB_CRASH_CYCLES)
"""

import argparse
import os
import random
import signal
import sys
import threading
import time

import pymysql

from harness.servers import PASSWORD, Manxdb, Mariadb

ACCOUNTS = 16
START_BALANCE = 1000
WORKERS = 6
# Views are read and checked in each so many cycles.
VIEWS_EVERY = 8
# The ledger is emptied after each so many cycles: reading all of it is what a check costs.
CLOSED_EVERY = 10
VIEWS = """CREATE MATERIALIZED VIEW rows_of_source AS SELECT COUNT(*), COUNT(note) FROM ledger WHERE source = ?;
CREATE MATERIALIZED VIEW moved AS SELECT account.id, COUNT(*), SUM(amount) FROM account
    JOIN ledger ON ledger.source = account.id WHERE account.id = ? GROUP BY account.id"""
SCHEMA = f"""CREATE DATABASE bank;
CREATE TABLE bank.account (id INT PRIMARY KEY, balance BIGINT NOT NULL);
CREATE TABLE bank.ledger (worker INT, seq BIGINT, source INT NOT NULL, target INT NOT NULL,
    amount INT NOT NULL, note VARCHAR(200), PRIMARY KEY (worker, seq), KEY by_source (source),
    CONSTRAINT known FOREIGN KEY (target) REFERENCES bank.account (id))"""


class Worker(threading.Thread):
    """Moves money until its connection breaks."""

    def __init__(self, number, port, random_source, first, progress, reads_views):
        super().__init__(daemon=True)
        self.reads_views = reads_views
        self.number = number
        self.port = port
        self.random = random_source
        self.next = first
        self.progress = progress
        self.acknowledged = []
        self.uncertain = []
        self.problem = None

    def run(self):
        try:
            link = connect(self.port)
            while True:
                self.transfer(link)
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError, EOFError) as error:
            number = error.args[0] if error.args else 0
            if number not in (0, 1053, 2003, 2006, 2013):
                self.problem = error
        except Exception as error:  # pymysql meets half packets when the server dies
            self.problem = None if isinstance(error, (IndexError, AssertionError)) else error

    def transfer(self, link):
        """One transaction; a conflict is tried again with the same number."""
        source, target = self.random.sample(range(ACCOUNTS), 2)
        amount = self.random.randint(1, 9)
        sequence = self.next
        cursor = link.cursor()
        try:
            if sequence % 5 == 0:
                # Autocommitted: a ledger row that moves nothing.
                amount = 0
                self.uncertain = [sequence]
                cursor.execute(LEDGER_ROW, (self.number, sequence, source, target, amount, "x" * 150))
            else:
                cursor.execute("BEGIN")
                cursor.execute("UPDATE account SET balance = balance - %s WHERE id = %s", (amount, source))
                cursor.execute(LEDGER_ROW, (self.number, sequence, source, target, amount, "x" * (sequence % 200)))
                cursor.execute("UPDATE account SET balance = balance + %s WHERE id = %s", (amount, target))
                self.uncertain = [sequence]
                cursor.execute("COMMIT")
        except pymysql.err.OperationalError as error:
            if error.args[0] in (1213, 1205, 1412):
                self.uncertain = []
                cursor.execute("ROLLBACK")
                return
            raise
        self.acknowledged.append(sequence)
        self.uncertain = []
        if self.reads_views and sequence % 3 == 0:
            # Keys of views are filled, and read, while others commit.
            cursor.execute(ROWS_OF_SOURCE % source)
            cursor.execute(MOVED % target)
        self.next = sequence + 1
        self.progress.one()


ROWS_OF_SOURCE = "SELECT COUNT(*), COUNT(note) FROM ledger WHERE source = %s"
MOVED = "SELECT account.id, COUNT(*), SUM(amount) FROM account JOIN ledger ON ledger.source = account.id " \
        "WHERE account.id = %s GROUP BY account.id"
LEDGER_ROW = "INSERT INTO ledger (worker, seq, source, target, amount, note) VALUES (%s, %s, %s, %s, %s, %s)"


class Progress:
    """Counts acknowledged transactions and says when there are enough."""

    def __init__(self, enough):
        self.count = 0
        self.enough = enough
        self.condition = threading.Condition()

    def one(self):
        """One more."""
        with self.condition:
            self.count += 1
            if self.count >= self.enough:
                self.condition.notify_all()

    def wait(self, seconds):
        """True when there were enough in time."""
        with self.condition:
            return self.condition.wait_for(lambda: self.count >= self.enough, seconds)


def connect(port, database="bank"):
    """A connection with autocommit on."""
    return pymysql.connect(host="127.0.0.1", port=port, user="root", password=PASSWORD, database=database,
                           autocommit=True, read_timeout=60, write_timeout=60)


def change_indexes(port):
    """Creates and drops an index until the connection breaks."""
    try:
        cursor = connect(port).cursor()
        while True:
            for sql in ("CREATE INDEX by_amount ON ledger (amount)", "DROP INDEX by_amount ON ledger"):
                try:
                    cursor.execute(sql)
                except pymysql.err.OperationalError as error:
                    if error.args[0] not in (1061, 1091, 1205, 1213, 1412):
                        raise
    except Exception:  # the server dies under it, in the middle of any packet
        pass


def rows(cursor, sql):
    """All rows."""
    cursor.execute(sql)
    return cursor.fetchall()


def check_books(port, opening, acknowledged, allowed, with_views):
    """Raises when the books are wrong; returns the keys of the ledger's rows, and all balances."""
    cursor = connect(port).cursor()
    balances = dict(rows(cursor, "SELECT id, balance FROM account"))
    assert sum(balances.values()) == ACCOUNTS * START_BALANCE, f"the sum is {sum(balances.values())}"
    ledger = rows(cursor, "SELECT worker, seq, source, target, amount FROM ledger")
    present = {(worker, seq) for worker, seq, *_ in ledger}
    lost = acknowledged - present
    assert not lost, f"{len(lost)} acknowledged rows are gone, for example {sorted(lost)[:3]}"
    unknown = present - acknowledged - allowed
    assert not unknown, f"{len(unknown)} rows nobody was told of, for example {sorted(unknown)[:3]}"
    computed = dict(opening)
    by_source = dict.fromkeys(range(ACCOUNTS), 0)
    for _, _, source, target, amount in ledger:
        computed[source] -= amount
        computed[target] += amount
        by_source[source] += 1
    half = {account for account in computed if computed[account] != balances.get(account)}
    assert not half, f"balances of {sorted(half)} differ from the ledger"
    if with_views:
        check_views(cursor, by_source)
    for source, count in by_source.items():
        got = rows(cursor, f"SELECT COUNT(*), COUNT(note) FROM ledger WHERE source = {source} AND seq = seq")[0][0]
        assert got == count, f"the index by_source finds {got} of {count} rows"
    zero = sum(1 for row in ledger if row[4] == 0)
    got = rows(cursor, "SELECT COUNT(*), COUNT(note) FROM ledger WHERE amount = 0")[0][0]
    assert got == zero, f"amount = 0 finds {got} of {zero} rows"
    return present, balances


def close_books(port, balances, books):
    """Empties the ledger, all of which was checked: balances start from what they are now."""
    connect(port).cursor().execute("DELETE FROM ledger")
    books["opening"] = balances
    books["acknowledged"] = set()


def check_views(cursor, by_source):
    """Raises when a view holds anything after the start, or answers something else than its tables."""
    try:
        held = rows(cursor, "SHOW MATERIALIZED VIEWS FROM bank")
    except pymysql.err.Error:
        return  # MariaDB
    assert [row[3:5] for row in held] == [(0, 0)] * 2, f"views are not empty after a start: {held}"
    for source, count in by_source.items():
        base = rows(cursor, (MOVED % source).replace("GROUP", "AND seq = seq GROUP"))
        for filled in ("is filled", "is filled already"):
            got = rows(cursor, ROWS_OF_SOURCE % source)[0][0]
            assert got == count, f"the view that {filled} has {got} of {count} rows"
            assert rows(cursor, MOVED % source) == base, f"the view of a join that {filled} answers otherwise"
    hits = [row[5] for row in rows(cursor, "SHOW MATERIALIZED VIEWS FROM bank")]
    assert all(hits), f"views did not answer: {hits}"


def run_cycle(server, number, source, books):
    """Load, kill, restart, check."""
    progress = Progress(source.randint(1, 200))
    # The keys of views are as large as the ledger, which grows: not in every cycle.
    with_views = number % VIEWS_EVERY == 0
    workers = [Worker(index, server.port, random.Random(source.random()), books["next"][index], progress,
                      with_views)
               for index in range(WORKERS)]
    for worker in workers:
        worker.start()
    if number % 3 == 0:
        threading.Thread(target=change_indexes, args=(server.port,), daemon=True).start()
    enough = progress.wait(120)
    server.kill()
    for worker in workers:
        worker.join(60)
        if worker.problem:
            raise AssertionError(f"worker {worker.number}: {worker.problem!r}")
    assert enough, f"only {progress.count} of {progress.enough} transactions in 120 s"
    allowed = set()
    for worker in workers:
        books["acknowledged"] |= {(worker.number, seq) for seq in worker.acknowledged}
        allowed |= {(worker.number, seq) for seq in worker.uncertain}
        books["next"][worker.number] = worker.next + 1
    started = time.monotonic()
    server.start()
    present, balances = check_books(server.port, books["opening"], books["acknowledged"], allowed, with_views)
    # Uncertain ones that made it are facts from now on.
    books["acknowledged"] |= present
    if number % CLOSED_EVERY == CLOSED_EVERY - 1:
        close_books(server.port, balances, books)
    return progress.count, time.monotonic() - started


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=int(os.environ.get("MANXDB_CRASH_CYCLES", "40")))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    source = random.Random(options.seed)
    binary = os.environ.get("MANXDB_TEST_BINARY")
    # Without a binary MariaDB is killed: a check of this program.
    server = Manxdb(binary) if binary else Mariadb()
    failed = 0
    try:
        server.start()
        cursor = connect(server.port, None).cursor()
        for statement in SCHEMA.split(";\n"):
            cursor.execute(statement)
        if binary:
            cursor.execute("USE bank")
            for statement in VIEWS.split(";\n"):
                cursor.execute(statement)
        cursor.executemany("INSERT INTO bank.account VALUES (%s, %s)",
                           [(number, START_BALANCE) for number in range(ACCOUNTS)])
        books = {"opening": dict.fromkeys(range(ACCOUNTS), START_BALANCE), "acknowledged": set(),
                 "next": [1] * WORKERS}
        for number in range(options.cycles):
            try:
                count, seconds = run_cycle(server, number, source, books)
            except Exception as error:
                print(f"FAIL cycle {number}: {error!r} (seed {options.seed}); log: "
                      f"{' | '.join(server.log_tail(5).splitlines())}", flush=True)
                failed += 1
                break
            print(f"PASS cycle {number}: {count} transactions, back and checked in {seconds:.1f} s", flush=True)
    finally:
        server.close()
    return 1 if failed else 0


if __name__ == "__main__":
    # An orderly end of this program ends the servers it started too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())
