"""SQL's rows replicated in one round trip, by servers that die and stand still.

`manxdb cluster up curp --sql` starts a cluster; MySQL clients connect to any of its servers. Sessions
transfer money between accounts and write down each transfer in the same transaction. Masters are killed
with `kill -9` and stopped with SIGSTOP under load: the sum of all accounts stays what it was, the
balances are those of the transfers that are there, and every transfer that was acknowledged is. Round
trips are counted in what the master says of its commits, and against the emulated distance.

    sql.py [word of a check's name …]
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from harness.checks import check, expect, main  # noqa: E402
from harness.signals import stand_still  # noqa: E402
from processes import AWAY, BINARY, PATIENCE, SqlCluster, seconds  # noqa: E402
from sql_sessions import BROKEN, connect, harmed, patiently, query  # noqa: E402
import sql_rows  # noqa: E402, F401

ACCOUNTS = 50
BALANCE = 1000
_clusters = {}


def far():
    """A cluster whose processes are 20 ms apart."""
    if "far" not in _clusters:
        _clusters["far"] = SqlCluster("--lan-us", str(int(AWAY * 1e6)))
    return _clusters["far"]


def near():
    """A cluster whose processes come back when they die."""
    if "near" not in _clusters:
        _clusters["near"] = SqlCluster("--supervise")
    return _clusters["near"]


def fill(cluster):
    """Makes the bank."""
    def make(connection):
        query(connection, "DROP DATABASE IF EXISTS bank")
        query(connection, "CREATE DATABASE bank")
        query(connection, "CREATE TABLE bank.account (id INT PRIMARY KEY, balance INT NOT NULL)")
        query(connection, "CREATE TABLE bank.transfer (id INT PRIMARY KEY, source INT NOT NULL, "
                          "target INT NOT NULL, amount INT NOT NULL)")
        rows = ", ".join(f"({number}, {BALANCE})" for number in range(ACCOUNTS))
        query(connection, f"INSERT INTO bank.account VALUES {rows}")

    patiently(cluster, make)


def counted(cluster, what):
    """How the master has completed the commits of `what`."""
    number, _ = cluster.master()
    names = ["sql commits fast", "sql commits at backups", "sql commits after a refusal"]
    before = cluster.notes(number)
    what()
    after = cluster.notes(number)
    return [int(after[name]) - int(before[name]) for name in names]


def wait_collected(cluster, number):
    """Until no witness has a record, which a write of the same key would conflict with."""
    deadline = time.monotonic() + PATIENCE
    while int(cluster.notes(number)["records not collected"]) > 0:
        assert time.monotonic() < deadline, "witnesses are never told what to forget"


@check
def every_server_serves_mysql_clients():
    cluster = near()
    cluster.wait_whole()
    fill(cluster)
    for port in cluster.mysql_ports():
        connection = connect(port)
        query(connection, f"INSERT INTO transfer VALUES ({port}, 0, 1, 5)")
        expect(query(connection, "SELECT count(*) FROM account"), ((ACCOUNTS,),))
        connection.close()
    connection = connect(cluster.mysql_ports()[0])
    expect(query(connection, "SELECT count(*) FROM transfer"), ((len(cluster.mysql_ports()),),))
    large = "x" * 100_000
    query(connection, "CREATE TABLE large (id INT PRIMARY KEY AUTO_INCREMENT, words LONGTEXT)")
    query(connection, f"INSERT INTO large (words) VALUES ('{large}'), ('{large}')")
    expect(query(connection, "SELECT id, length(words) FROM large"), ((1, 100_000), (2, 100_000)))
    query(connection, "BEGIN")
    query(connection, "DELETE FROM large")
    query(connection, "ROLLBACK")
    query(connection, "DELETE FROM large WHERE id = 1")
    expect(query(connection, "SELECT id FROM large"), ((2,),))
    connection.close()


@check
def a_commit_takes_one_round_trip_to_the_witnesses():
    cluster = far()
    fill(cluster)
    number, _ = cluster.master()
    connection = connect(cluster.mysql_port(number))
    took = []

    def transfers():
        for one in range(10):
            wait_collected(cluster, number)
            took.append(seconds(lambda one=one: query(
                connection, f"UPDATE account SET balance = balance + 1 WHERE id = {one}")))

    ways = counted(cluster, transfers)
    assert ways[0] >= 8 and ways[1] <= 2, f"fast, at backups, after a refusal: {ways}"
    assert 2 * AWAY <= min(took) < 4 * AWAY, f"{min(took) * 1e3:.1f} ms is not one round trip"
    reads = [seconds(lambda: query(connection, "SELECT sum(balance) FROM account")) for _ in range(5)]
    assert min(reads) < 2 * AWAY, f"{min(reads) * 1e3:.1f} ms: a read waits for nobody"
    connection.close()


@check
def a_commit_that_does_not_fit_into_a_record_goes_to_the_backups():
    cluster = far()
    fill(cluster)
    number, _ = cluster.master()
    connection = connect(cluster.mysql_port(number))
    query(connection, "CREATE TABLE words (id INT PRIMARY KEY, word VARCHAR(4000))")
    took = []

    def commits():
        for one in range(3):
            wait_collected(cluster, number)
            took.append(seconds(lambda one=one: query(
                connection, f"INSERT INTO words VALUES ({one}, '{'w' * 3000}')")))
            wait_collected(cluster, number)
            took.append(seconds(lambda: query(
                connection, "UPDATE account SET balance = balance + 1 WHERE id < 20")))

    ways = counted(cluster, commits)
    # The server commits now and then for itself.
    assert ways[1] >= 6 and ways[0] <= 3 and ways[2] == 0, f"fast, at backups, after a refusal: {ways}"
    assert 2 * AWAY <= min(took) < 4 * AWAY, f"{min(took) * 1e3:.1f} ms is not one round trip"
    connection.close()


@check
def sessions_that_update_one_row_wait_for_each_other_and_lose_nothing():
    cluster = far()
    fill(cluster)
    number, _ = cluster.master()
    sessions = [connect(cluster.mysql_port(number)) for _ in range(3)]

    def count(connection):
        for _ in range(5):
            query(connection, "UPDATE account SET balance = balance + 1 WHERE id = 7")

    threads = [threading.Thread(target=count, args=(one,), daemon=True) for one in sessions]
    took = seconds(lambda: [[thread.start() for thread in threads], [thread.join() for thread in threads]])
    expect(query(sessions[0], "SELECT balance FROM account WHERE id = 7"), ((BALANCE + 15,),))
    # A row is locked until the commit that wrote it is confirmed.
    assert took >= 15 * 2 * AWAY, f"{took * 1e3:.0f} ms for 15 commits of one row"
    for connection in sessions:
        connection.close()


class Teller(threading.Thread):
    """Transfers money through any of some servers, and notes what it was told."""

    def __init__(self, number, ports, stop):
        super().__init__(daemon=True)
        self.number, self.ports, self.stop = number, ports, stop
        self.random = random.Random(number)
        self.done, self.unknown, self.wrong = {}, {}, []
        self.errors = []  # of commits whose end is not known
        self.connection = None

    def session(self):
        """A connection to some server."""
        while self.connection is None and not self.stop.is_set():
            try:
                self.connection = connect(self.random.choice(self.ports), timeout=20)
            except BROKEN:
                time.sleep(0.05)
        return self.connection

    def transfer(self, connection, name, source, target, amount):
        """One transfer; whether it was asked to commit."""
        query(connection, "BEGIN")
        query(connection, f"UPDATE account SET balance = balance - {amount} WHERE id = {source}")
        query(connection, f"UPDATE account SET balance = balance + {amount} WHERE id = {target}")
        query(connection, f"INSERT INTO transfer VALUES ({name}, {source}, {target}, {amount})")

    def run(self):
        name = self.number * 1_000_000
        while not self.stop.is_set():
            name += 1
            source, target = self.random.sample(range(ACCOUNTS), 2)
            what = (min(source, target), max(source, target), self.random.randint(1, 9))
            connection = self.session()
            if connection is None:
                return
            asked = False
            try:
                self.transfer(connection, name, *what)
                asked = True
                query(connection, "COMMIT")
                self.done[name] = what
                total, = query(connection, "SELECT sum(balance) FROM account")
                if total[0] != ACCOUNTS * BALANCE:
                    self.wrong.append(f"after transfer {name} the sum is {total[0]}")
            except BROKEN as error:
                # 1213 says that all was rolled back; `judge` finds it if it is there nevertheless.
                is_rolled_back = error.args and error.args[0] == 1213
                if asked and name not in self.done and not is_rolled_back:
                    self.unknown[name] = what
                    self.errors.append(repr(error))
                connection.close()
                self.connection = None


def judge(cluster, tellers):
    """The sum stays, nothing acknowledged is lost, and balances are those of the transfers; how many
    were acknowledged, and what those were told whose end they do not know."""
    def look(connection):
        query(connection, "USE bank")
        query(connection, "BEGIN")
        balances = dict(query(connection, "SELECT id, balance FROM account"))
        transfers = {row[0]: row[1:] for row in query(connection, "SELECT * FROM transfer")}
        return balances, transfers

    balances, transfers = patiently(cluster, look)
    expect(sum(balances.values()), ACCOUNTS * BALANCE, "the sum of all accounts")
    expected = {number: BALANCE for number in range(ACCOUNTS)}
    for source, target, amount in transfers.values():
        expected[source] -= amount
        expected[target] += amount
    expect(balances, expected, "balances")
    done, unknown = {}, {}
    for teller in tellers:
        done.update(teller.done)
        unknown.update(teller.unknown)
        expect(teller.wrong, [], f"what teller {teller.number} saw")
    lost = [name for name in done if transfers.get(name) != done[name]]
    expect(lost, [], "acknowledged and lost")
    strange = [name for name in transfers if name not in done and name not in unknown]
    expect(strange, [], "never asked for, or refused")
    return len(done), [error for teller in tellers for error in teller.errors]


def under_load(harm, times, cluster=None, ports=None):
    """Tellers at all servers or some, while something happens to one, so many times."""
    cluster = cluster or near()
    cluster.wait_whole()
    fill(cluster)
    stop = threading.Event()
    tellers = [Teller(number, ports or cluster.mysql_ports(), stop) for number in range(1, 5)]
    for teller in tellers:
        teller.start()
    try:
        for _ in range(times):
            before = sum(len(teller.done) for teller in tellers)
            deadline = time.monotonic() + PATIENCE
            while sum(len(teller.done) for teller in tellers) < before + 20:
                assert time.monotonic() < deadline, "nothing is acknowledged any more"
                time.sleep(0.02)
            harm(cluster)
            cluster.wait_whole()
    finally:
        stop.set()
    for teller in tellers:
        teller.join(timeout=PATIENCE)
        assert not teller.is_alive(), "a statement is never answered"
    return judge(cluster, tellers)


@check
def no_money_is_lost_when_masters_are_killed():
    done, unknown = under_load(harmed("kill", "master", wait=1.2), times=3)
    assert done >= 60 and len(unknown) <= 12, f"{done} done, of each teller one a kill: {unknown}"


@check
def no_money_is_lost_when_all_processes_are_killed_at_once():
    cluster = SqlCluster("--durability", "fsync")

    def all_of_them(cluster):
        cluster.kill_all()
        cluster.start()

    try:
        done, _ = under_load(all_of_them, 2, cluster)
        assert done >= 40, done
    finally:
        cluster.close()


@check
def no_money_is_lost_when_a_backup_and_a_witness_are_killed():
    def both(cluster):
        for role in ["backup", "witness"]:
            harmed("kill", role, wait=1.2)(cluster)
            cluster.wait_whole()

    # A backup serves sessions too, which end with it; those of the master hear of nothing.
    cluster = near()
    cluster.wait_whole()
    number, _ = cluster.master()
    _, unknown = under_load(both, times=1, ports=[cluster.mysql_port(number)])
    expect(unknown, [], "the master went on")


@check
def no_money_is_lost_while_a_master_stands_still():
    under_load(harmed("pause", "master", "--for-ms", "1500", wait=0.5), times=2)


@check
def a_master_that_stood_still_shows_nothing_old():
    cluster = near()
    cluster.wait_whole()
    fill(cluster)
    master, process = cluster.master()
    reader = connect(cluster.mysql_port(master))
    other = next(port for port in cluster.mysql_ports() if port != cluster.mysql_port(master))
    expect(query(reader, "SELECT balance FROM account WHERE id = 1"), ((BALANCE,),))
    stand_still(process)
    answer = []
    try:
        # It waits in its socket, and is the first that it sees when it goes on.
        def ask():
            try:
                answer.append(query(reader, "SELECT balance FROM account WHERE id = 1"))
            except BROKEN as error:
                answer.append(error)

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                connection = connect(other, timeout=5)
                query(connection, "UPDATE account SET balance = 7 WHERE id = 1")
                connection.close()
                break
            except BROKEN as error:
                assert time.monotonic() < deadline, f"nobody takes over: {error}"
                time.sleep(0.1)
    finally:
        os.kill(process, signal.SIGCONT)
    asking.join(timeout=PATIENCE)
    assert answer, "never answered"
    assert answer[0] == ((7,),) or isinstance(answer[0], BROKEN), f"it showed {answer[0]}"
    cluster.wait_whole()


@check
def what_does_not_fit_together_is_said():
    cluster = near()
    serve = [BINARY, "serve", "--commit-path", "curp", "--data", str(cluster.data / "other"),
             "--mysql-listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]
    for more, words in [([], "give the file of the cluster"),
                        (["--curp-cluster", str(cluster.data), "--curp-node", "0"], "node 0 is no server"),
                        (["--curp-cluster", "/nowhere", "--curp-node", "1"], "no cluster file")]:
        ran = subprocess.run([*serve, *more], text=True, check=False, capture_output=True, timeout=PATIENCE)
        assert ran.returncode == 1 and words in ran.stderr, ran.stderr


if __name__ == "__main__":
    main()
