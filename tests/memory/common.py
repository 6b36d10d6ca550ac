"""What the checks of this suite have in common: connections, and a bank whose books are checked."""

import random
import threading

import pymysql

from harness.checks import expect
from harness.pool import PATIENCE, wait_for
from harness.servers import PASSWORD

ACCOUNTS = 8
START_BALANCE = 1000
# Lost to somebody else: to be tried again.
CONFLICTS = (1205, 1213, 1412)


def connect(server, database=None):
    """A connection with autocommit on."""
    return pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD,
                           database=database, autocommit=True, read_timeout=PATIENCE)


def run(link, sql):
    """All rows of a statement."""
    cursor = link.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def insist(link, sql):
    """A statement, until nobody is in its way."""
    while True:
        try:
            return run(link, sql)
        except pymysql.err.OperationalError as error:
            if error.args[0] not in CONFLICTS:
                raise


def contains(said, words):
    """The words are in what was said."""
    if words not in said:
        raise AssertionError(f"wanted {words!r}: {said}")


class Teller(threading.Thread):
    """Moves money between accounts and notes it, until its server is gone or it is told to end."""

    def __init__(self, number, server, books):
        super().__init__(daemon=True)
        self.number, self.server, self.books = number, server, books
        self.acknowledged, self.uncertain, self.next = set(), set(), 0
        self.problem = None
        self.ended = threading.Event()

    def run(self):
        source = random.Random(self.number)
        try:
            link = connect(self.server, "bank")
            while not self.ended.is_set():
                self.transfer(link, *source.sample(range(ACCOUNTS), 2))
        except (pymysql.err.OperationalError, pymysql.err.InterfaceError, OSError) as error:
            if self.server.alive() and not self.server.is_struck:
                self.problem = error
        except Exception as error:  # pymysql meets half packets when the server dies
            self.problem = None if self.server.is_struck else error

    def transfer(self, link, source, target):
        """One transaction."""
        sequence = self.next
        try:
            run(link, "BEGIN")
            run(link, f"UPDATE account SET balance = balance - 1 WHERE id = {source}")
            run(link, f"UPDATE account SET balance = balance + 1 WHERE id = {target}")
            run(link, f"INSERT INTO ledger VALUES ({self.number}, {sequence}, {source}, {target})")
            self.uncertain = {sequence}
            run(link, "COMMIT")
        except pymysql.err.OperationalError as error:
            if error.args[0] not in CONFLICTS:
                raise
            self.uncertain = set()
            run(link, "ROLLBACK")
            return
        self.next += 1
        self.acknowledged.add(sequence)
        self.uncertain = set()


def open_bank(server):
    """Accounts and a ledger."""
    link = connect(server)
    run(link, "CREATE DATABASE bank")
    run(link, "CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT NOT NULL)")
    run(link, "CREATE TABLE bank.ledger (worker INT, seq INT, source INT, target INT, PRIMARY KEY (worker, seq))")
    for number in range(ACCOUNTS):
        run(link, f"INSERT INTO bank.account VALUES ({number}, {START_BALANCE})")


def start_tellers(servers, first):
    """Two for each server."""
    tellers = []
    for place, server in enumerate(servers):
        server.is_struck = False
        for step in range(2):
            tellers.append(Teller(first + 2 * place + step, server, None))
    for teller in tellers:
        teller.start()
    return tellers


def check_books(link, tellers):
    """All that was acknowledged is there, nothing is by half, no money came or went."""
    ledger = insist(link, "SELECT worker, seq, source, target FROM bank.ledger")
    present = {}
    balances = dict.fromkeys(range(ACCOUNTS), START_BALANCE)
    for worker, sequence, source, target in ledger:
        present.setdefault(worker, set()).add(sequence)
        balances[source] -= 1
        balances[target] += 1
    expect(dict(insist(link, "SELECT id, balance FROM bank.account")), balances, "balances")
    for teller in tellers:
        rows = present.get(teller.number, set())
        if not teller.acknowledged <= rows <= teller.acknowledged | teller.uncertain:
            raise AssertionError(f"worker {teller.number}: {rows ^ teller.acknowledged}")


def go_on(tellers, more):
    """All tellers do some more."""
    before = [len(teller.acknowledged) for teller in tellers]

    def is_done():
        for teller in tellers:
            if teller.problem:
                raise AssertionError(f"worker {teller.number}: {teller.problem!r}")
        return all(len(teller.acknowledged) >= count + more for teller, count in zip(tellers, before))

    wait_for("all tellers go on", is_done)
