"""SQL on rows in memory servers: real processes that are killed, stopped and come back.

    run.py [word of a check's name …]
"""

import random
import signal
import subprocess
import threading
import time

import pymysql

from common import ACCOUNTS, check_books, connect, contains, go_on, insist, open_bank, run, start_tellers
from harness.checks import check, expect, expect_error, main, rounds
from harness.memory import LEASE_SECONDS, Memory, OnMemory, Rack
from harness.pool import PATIENCE, wait_for
from harness.servers import PASSWORD

import across  # noqa: F401  (its checks are of this suite)
import health  # noqa: F401  (as are these)
import on_disk  # noqa: F401  (as are these)
import rooms  # noqa: F401  (as are these)


@check
def what_cannot_be_is_refused_by_name():
    with Rack(servers=1) as rack:
        directory = rack.directory
        for flags, words in [
                ({"--server": 3}, "server is 3 but must be 0 to 1, because servers is 2"),
                ({"--size-mb": 1}, "bytes of memory are too few"),
                ({"--places": 0}, "the number of places is 0 but must be 1 to 256"),
                ({"--replicas": 2}, "the number of memory servers is 2 but must be 3 to 64"),
                ({"--log-copies": 9}, "the number of copies of a log is 9 but must be 1 to 2"),
                ({"--config": "/no/such.toml"}, "/no/such.toml")]:
            contains(Memory(directory, 1, 2, flags).refused(), words)
        contains(Memory(directory, 0, 1).refused(), "memory server 0 runs already in")
        other = OnMemory(f"{directory}/nowhere")
        contains(other.refused(), "is no directory of memory servers: start them with manxdb memory")
        other.extra[3] = directory  # a directory without sockets
        contains(other.refused(), "memory-0 is gone: No such file or directory")
        other.extra = ["--memory", directory]
        contains(other.refused(), 'memory is set, but commit_path is "local"')
        other.close()


@check
def memory_servers_that_do_not_belong_together_are_refused():
    for flags, words in [({"--name": "shop"}, "the name of the database is 'shop' at memory server 1"),
                         ({"--size-mb": 256}, "the size of memory in bytes is 268435456 at memory server 1")]:
        with Rack() as rack:
            rack.memory[1].end(signal.SIGTERM)
            rack.memory[1] = Memory(rack.directory, 1, 2, flags).start()
            server = OnMemory(rack.directory)
            contains(server.refused(), words)
            server.close()


@check
def the_mariadb_client_creates_writes_and_reads():
    with Rack() as rack:
        server = rack.database()
        sql = ("CREATE DATABASE shop; USE shop;"
               "CREATE TABLE person (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40), bio TEXT, KEY (name));"
               "INSERT INTO person (name, bio) VALUES ('ada', REPEAT('x', 3000)), ('bob', NULL);"
               "BEGIN; UPDATE person SET name = 'eve' WHERE id = 2; ROLLBACK;"
               "BEGIN; UPDATE person SET name = 'zoe' WHERE id = 2; COMMIT;"
               "SELECT id, name, LENGTH(bio) FROM person ORDER BY name")
        done = subprocess.run(["mariadb", "-h", "127.0.0.1", "-P", str(server.port), "-u", "root",
                               f"-p{PASSWORD}", "-N", "-B", "-e", sql],
                              text=True, capture_output=True, timeout=PATIENCE, check=False)
        expect((done.returncode, done.stdout), (0, "1\tada\t3000\n2\tzoe\tNULL\n"), done.stderr)
        expect(rack.memory[1].version()["memory_server"], 1)
        numbers = rack.memory[0].numbers()
        expect(numbers["manxdb_memory_registered_bytes"], 512 << 20)
        expect(numbers["manxdb_memory_places_taken"], 4)
        for name in ("given_bytes", "clients", "logged_total", "coordinator_term"):
            if not numbers[f"manxdb_memory_{name}"] > 0:
                raise AssertionError(numbers)
        expect(server.numbers()["manxdb_memory_own_places"], 4)
        expect(server.stop(), 0, server.log_tail())
        expect(rack.memory[0].end(signal.SIGTERM), 0)


@check
def a_server_that_ends_in_order_leaves_its_places_and_its_rows():
    with Rack() as rack:
        server = rack.database()
        run(connect(server), "CREATE DATABASE shop")
        expect(server.stop(), 0, server.log_tail())
        server.start()
        expect(run(connect(server), "SHOW DATABASES LIKE 'shop'"), (("shop",),))
        wait_for("the places are free", lambda: rack.memory[0].numbers()["manxdb_memory_places_taken"] == 4
                 and rack.memory[0].numbers()["manxdb_memory_places_over"] == 0)


@check
def two_servers_are_one_database():
    with Rack() as rack:
        one, two = (connect(rack.database()) for _ in range(2))
        run(one, "CREATE DATABASE shop")
        run(two, "CREATE TABLE shop.item (id INT AUTO_INCREMENT PRIMARY KEY, who INT)")
        run(one, "CREATE TABLE shop.note (who INT)")
        for round_number in range(30):
            run(one, "INSERT INTO shop.item (who) VALUES (1)")
            run(two, "INSERT INTO shop.item (who) VALUES (2), (2)")
            run(one if round_number % 2 else two, "INSERT INTO shop.note VALUES (7)")
        for link in (one, two):
            expect(run(link, "SELECT COUNT(*), COUNT(DISTINCT id) FROM shop.item"), ((90, 90),))
            expect(run(link, "SELECT COUNT(*), SUM(who) FROM shop.note"), ((30, 210),))
        run(one, "ALTER TABLE shop.item ADD COLUMN price INT NOT NULL DEFAULT 5, ADD KEY by_who (who)")
        run(two, "INSERT INTO shop.item (who) VALUES (3)")
        expect(run(two, "SELECT price FROM shop.item WHERE who = 3"), ((5,),))
        run(two, "ALTER TABLE shop.item MODIFY who BIGINT")
        expect(run(one, "SELECT SUM(who) FROM shop.item"), ((30 + 120 + 3,),))
        expect_error(1050, run, one, "CREATE TABLE shop.note (id INT)")
        run(two, "DROP TABLE shop.note")
        expect_error(1146, run, one, "SELECT * FROM shop.note")
        run(one, "CREATE USER eve IDENTIFIED BY 'pw'")
        run(one, "GRANT SELECT ON shop.* TO eve")
        eve = pymysql.connect(host="127.0.0.1", port=two.port, user="eve", password="pw")
        expect(run(eve, "SELECT COUNT(*) FROM shop.item"), ((91,),))
        run(two, "REVOKE SELECT ON shop.* FROM eve")
        eve = pymysql.connect(host="127.0.0.1", port=one.port, user="eve", password="pw")
        expect_error((1142, 1044), run, eve, "SELECT COUNT(*) FROM shop.item")


@check
def a_long_transaction_reads_what_was_there_beside_writers():
    with Rack() as rack:
        reader, writer = (connect(rack.database()) for _ in range(2))
        run(reader, "CREATE DATABASE shop")
        run(reader, "CREATE TABLE shop.stock (id INT PRIMARY KEY, count INT)")
        run(reader, "INSERT INTO shop.stock VALUES " + ",".join(f"({row}, 0)" for row in range(50)))
        run(reader, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        run(reader, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        for count in range(1, 31):
            insist(writer, f"UPDATE shop.stock SET count = {count}")
            insist(writer, f"DELETE FROM shop.stock WHERE id = {count}")
            expect(run(reader, "SELECT COUNT(*), SUM(count) FROM shop.stock"), ((50, 0),), count)
        run(reader, "COMMIT")
        expect(run(reader, "SELECT COUNT(*), MIN(count), MAX(count) FROM shop.stock"), ((20, 30, 30),))


@check
def tables_are_made_and_changed_by_two_servers_at_once():
    with Rack() as rack:
        servers = [rack.database() for _ in range(2)]
        run(connect(servers[0]), "CREATE DATABASE shop")
        problems = []

        def work(number):
            try:
                link = connect(servers[number])
                for step in range(6):
                    insist(link, f"CREATE TABLE shop.own_{number}_{step} (id INT PRIMARY KEY, v INT)")
                    insist(link, f"INSERT INTO shop.own_{number}_{step} VALUES (1, {step})")
                    insist(link, f"CREATE INDEX by_v ON shop.own_{number}_{step} (v)")
                    if step % 2:
                        insist(link, f"DROP TABLE shop.own_{number}_{step}")
            except Exception as error:
                problems.append(error)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(PATIENCE)
        expect(problems, [])
        for server in servers:
            link = connect(server)
            expect(len(run(link, "SHOW TABLES FROM shop")), 6)
            for number in range(2):
                expect(run(link, f"SELECT v FROM shop.own_{number}_4 WHERE v = 4"), ((4,),))


def strike(rack, servers, how, all_tellers):
    """Kills or stops one of two servers under load; the other one goes on. Returns how long a row
    was in anybody's way."""
    tellers = start_tellers(servers, len(all_tellers))
    all_tellers += tellers
    busy = lambda: all(len(teller.acknowledged) >= 10 for teller in tellers)
    wait_for("all tellers work", busy)
    victim, other = servers
    reaped = rack.memory[0].numbers()["manxdb_memory_shut_out_total"]
    victim.is_struck = True
    victim.process.send_signal(how)
    struck = time.monotonic()
    link = connect(other, "bank")
    # Whoever is dead has locks at most here.
    for number in range(ACCOUNTS):
        insist(link, f"UPDATE account SET balance = balance WHERE id = {number}")
    freed = time.monotonic() - struck
    wait_for("the dead one is shut out", lambda: victim.process.poll() is not None)
    wait_for("its clients are shut out", lambda: rack.memory[0].numbers()["manxdb_memory_shut_out_total"] >= reaped + 4)
    gone = time.monotonic() - struck
    before = [len(teller.acknowledged) for teller in tellers[2:]]
    wait_for("the other one goes on", lambda: all(
        len(teller.acknowledged) >= count + 10 for teller, count in zip(tellers[2:], before)))
    for teller in tellers:
        teller.ended.set()
    for teller in tellers[2:]:
        teller.join(PATIENCE)
    for teller in tellers:
        if teller.problem:
            raise AssertionError(f"worker {teller.number}: {teller.problem!r}")
    check_books(link, all_tellers)
    return freed, gone


def strike_often(how, times):
    """The one that is struck comes back, and is the other one next time."""
    with Rack() as rack:
        servers = [rack.database(), rack.database()]
        open_bank(servers[0])
        tellers = []
        for _ in range(times):
            freed, gone = strike(rack, servers, how, tellers)
            print(f"    rows free after {freed:.2f} s, shut out and recovered after {gone:.2f} s; "
                  f"a lease is {LEASE_SECONDS} s", flush=True)
            if freed > 2 * LEASE_SECONDS + 1:
                raise AssertionError(f"a row was in the way for {freed:.1f} s")
            servers[0].process.wait(PATIENCE)
            servers[0].start()
            check_books(connect(servers[0], "bank"), tellers)
            servers.reverse()
        for server in servers:
            expect(server.stop(), 0, server.log_tail())


@check
def a_server_that_is_killed_is_in_nobodys_way_and_comes_back():
    # Each of two servers dies once: one of them is the one whose coordinator leads.
    strike_often(signal.SIGKILL, rounds(2, 8))


WIDE_ROWS = 600


def raise_all(server, acknowledged):
    """Adds one to every row, again and again."""
    try:
        link = connect(server)
        while True:
            insist(link, "UPDATE bank.wide SET v = v + 1")
            acknowledged[0] += 1
    except Exception:  # it is killed
        pass


def stop_with_locks(victim, link):
    """Stops a server at a moment at which it has locks."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        time.sleep(random.uniform(0, 0.02))
        victim.process.send_signal(signal.SIGSTOP)
        try:
            run(link, "UPDATE bank.wide SET touched = touched + 1 WHERE id = 0")
        except pymysql.err.OperationalError as error:
            expect(error.args[0], 1213)
            return
        victim.process.send_signal(signal.SIGCONT)
    raise AssertionError("it is never met with locks")


@check
def who_dies_with_locks_leaves_a_transaction_whole_or_not_at_all():
    with Rack() as rack:
        servers = [rack.database(), rack.database()]
        link = connect(servers[0])
        run(link, "CREATE DATABASE bank")
        run(link, "CREATE TABLE bank.wide (id INT PRIMARY KEY, v INT NOT NULL, touched INT NOT NULL)")
        rows = ", ".join(f"({number}, 0, 0)" for number in range(WIDE_ROWS))
        insist(link, f"INSERT INTO bank.wide VALUES {rows}")
        # Once it is the one whose coordinator leads.
        for _ in range(rounds(2, 6)):
            victim, other = servers
            link = connect(other)
            acknowledged = [run(link, "SELECT MAX(v) FROM bank.wide")[0][0]]
            threading.Thread(target=raise_all, args=(victim, acknowledged), daemon=True).start()
            stop_with_locks(victim, link)
            victim.kill()
            struck = time.monotonic()
            insist(link, "UPDATE bank.wide SET v = v + 1")
            freed = time.monotonic() - struck
            print(f"    rows free after {freed:.2f} s; a lease is {LEASE_SECONDS} s", flush=True)
            if freed > 2 * LEASE_SECONDS + 1:
                raise AssertionError(f"rows were in the way for {freed:.1f} s")
            values = {value for value, in run(link, "SELECT DISTINCT v FROM bank.wide")}
            if len(values) != 1 or not values <= {acknowledged[0] + 1, acknowledged[0] + 2}:
                raise AssertionError(f"{values} after {acknowledged[0]} was acknowledged")
            victim.start()
            servers.reverse()


@check
def a_server_that_stands_still_is_shut_out_and_comes_back():
    strike_often(signal.SIGSTOP, rounds(2, 4))


def change_tables(server, changes):
    """Makes an index and takes it away, again and again."""
    try:
        link = connect(server, "shop")
        while True:
            for sql in ("CREATE INDEX by_v ON item (v)", "ALTER TABLE item MODIFY v BIGINT NOT NULL",
                        "DROP INDEX by_v ON item", "ALTER TABLE item MODIFY v INT NOT NULL"):
                insist(link, sql)
                changes[0] += 1
    except Exception:  # it is killed
        pass


@check
def who_dies_over_a_table_leaves_it_as_it_was_or_as_it_was_to_be():
    rows = 1500
    with Rack() as rack:
        servers = [rack.database(), rack.database()]
        link = connect(servers[0])
        run(link, "CREATE DATABASE shop")
        run(link, "CREATE TABLE shop.item (id INT PRIMARY KEY, v INT NOT NULL)")
        for first in range(0, rows, 500):
            values = ", ".join(f"({number}, {number % 7})" for number in range(first, first + 500))
            insist(link, f"INSERT INTO shop.item VALUES {values}")
        for times in range(rounds(2, 8)):
            victim, other = servers
            changes = [0]
            threading.Thread(target=change_tables, args=(victim, changes), daemon=True).start()
            wait_for("tables are changed", lambda: changes[0] >= 1 + 2 * times)
            time.sleep(random.uniform(0, 0.3))
            victim.kill()
            struck = time.monotonic()
            link = connect(other, "shop")
            # The turn of the dead one is taken, and what it left half done is put right.
            insist(link, "CREATE TABLE other (id INT PRIMARY KEY)")
            print(f"    the next change after {time.monotonic() - struck:.2f} s; a lease is {LEASE_SECONDS} s",
                  flush=True)
            insist(link, "DROP TABLE other")
            indexes = {row[2] for row in run(link, "SHOW INDEXES FROM item")}
            if not indexes <= {"PRIMARY", "by_v"}:
                raise AssertionError(indexes)
            insist(link, "INSERT INTO item VALUES (100000, 3)")
            hint = "FORCE INDEX (by_v)" if "by_v" in indexes else ""
            expect(run(link, f"SELECT COUNT(*) FROM item {hint} WHERE v = 3"),
                   ((len(range(3, rows, 7)) + 1,),), str(indexes))
            insist(link, "DELETE FROM item WHERE id = 100000")
            expect(run(link, "SELECT COUNT(*), SUM(v) FROM item"), ((rows, sum(n % 7 for n in range(rows))),))
            if "by_v" in indexes:
                insist(link, "DROP INDEX by_v ON item")
            victim.start()
            servers.reverse()


REPLICATED = {"--replicas": 3, "--size-mb": 128}


class Clerk(threading.Thread):
    """Adds rows by itself, and notes how long it was kept from it; the first error that it hears."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.count, self.longest, self.problem = server, 0, 0.0, None
        self.ended = threading.Event()

    def run(self):
        try:
            link = connect(self.server, "bank")
            last = time.monotonic()
            while not self.ended.is_set():
                insist(link, f"INSERT INTO clerk VALUES ({self.count}, REPEAT('x', 700))")
                self.count += 1
                self.longest = max(self.longest, time.monotonic() - last)
                last = time.monotonic()
        except Exception as error:
            self.problem = error


def lost_servers(servers, count):
    """All database servers have heard of so many losses."""
    wait_for(f"{count} losses are known", lambda: all(
        server.numbers()["manxdb_memory_lost_servers"] == count for server in servers))


@check
def memory_servers_with_replicas_are_lost_one_after_the_other_and_sql_goes_on():
    with Rack(servers=4, flags=REPLICATED) as rack:
        servers = [rack.database(), rack.database()]
        open_bank(servers[0])
        run(connect(servers[0]), "CREATE TABLE bank.clerk (id INT PRIMARY KEY, note TEXT)")
        clerk = Clerk(servers[0])
        clerk.start()
        tellers = start_tellers(servers, 0)
        for lost, number in enumerate((1, 0), 1):
            go_on(tellers, 10)
            rack.memory[number].end()
            struck = time.monotonic()
            go_on(tellers, 1)
            print(f"    memory server {number} is lost: all tellers go on after "
                  f"{time.monotonic() - struck:.2f} s", flush=True)
            lost_servers(servers, lost)
        wait_for("the clerk works", lambda count=clerk.count: clerk.count >= count + 20 or clerk.problem)
        for worker in [clerk, *tellers]:
            worker.ended.set()
        for worker in [clerk, *tellers]:
            worker.join(PATIENCE)
            if worker.problem:
                raise AssertionError(f"{worker.problem!r}")
        print(f"    the longest pause of a statement was {clerk.longest:.2f} s; a lease is {LEASE_SECONDS} s",
              flush=True)
        for server in servers:
            link = connect(server, "bank")
            check_books(link, tellers)
            expect(run(link, "SELECT COUNT(*), SUM(LENGTH(note)) FROM clerk"), ((clerk.count, 700 * clerk.count),))
        # One that is started anew in the place of a lost one is nobody's; who comes later goes by the others.
        rack.memory[0].start()
        run(connect(rack.database(), "bank"), "CREATE TABLE late (id INT PRIMARY KEY)")
        for server in rack.databases:
            expect(run(connect(server, "bank"), "SELECT COUNT(*) FROM late"), ((0,),))
            expect(server.stop(), 0, server.log_tail())


@check
def a_memory_server_that_stands_still_for_a_while_is_not_given_up():
    # Tellers write until the late one has come in: room for a slow machine.
    with Rack(servers=4, flags={**REPLICATED, "--size-mb": 512}) as rack:
        servers = [rack.database()]
        open_bank(servers[0])
        tellers = start_tellers(servers, 0)
        go_on(tellers, 5)
        rack.memory[2].process.send_signal(signal.SIGSTOP)
        late = OnMemory(rack.directory)
        rack.databases.append(late)
        comes = threading.Thread(target=late.start, daemon=True)
        comes.start()
        time.sleep(6)  # longer than one waits at a door at once
        go_on(tellers, 5)
        rack.memory[2].process.send_signal(signal.SIGCONT)
        comes.join(PATIENCE)
        for teller in tellers:
            teller.ended.set()
            teller.join(PATIENCE)
        check_books(connect(late, "bank"), tellers)
        lost_servers([*servers, late], 0)


@check
def a_database_server_is_killed_while_a_memory_server_is_lost():
    with Rack(servers=4, flags=REPLICATED) as rack:
        servers = [rack.database(), rack.database()]
        open_bank(servers[0])
        tellers = start_tellers(servers, 0)
        wait_for("all tellers work", lambda: all(len(teller.acknowledged) >= 10 for teller in tellers))
        # Whose coordinator leads is one of both.
        servers[0].is_struck = True
        servers[0].process.kill()
        rack.memory[2].end()
        struck = time.monotonic()
        go_on(tellers[2:], 1)
        print(f"    the other one goes on after {time.monotonic() - struck:.2f} s; a lease is {LEASE_SECONDS} s",
              flush=True)
        for teller in tellers:
            teller.ended.set()
        for teller in tellers[2:]:
            teller.join(PATIENCE)
            if teller.problem:
                raise AssertionError(f"worker {teller.number}: {teller.problem!r}")
        servers[0].process.wait(PATIENCE)
        check_books(connect(servers[1], "bank"), tellers)
        servers[0].start()
        check_books(connect(servers[0], "bank"), tellers)


@check
def a_memory_server_that_is_lost_is_told_and_all_begin_anew():
    with Rack() as rack:
        server = rack.database()
        link = connect(server)
        run(link, "CREATE DATABASE shop")
        rack.memory[1].end()
        error = expect_error((1105, 1180, 1030), run, link, "CREATE DATABASE other")
        contains(str(error), "memory server")
        rack.memory[1].start()
        said = OnMemory(rack.directory).refused()
        contains(said, "memory server 1 was started anew: its memory is empty while others have rows")
        # Each client of the server hears by itself that what it knew is gone.
        for _ in range(8):
            error = expect_error((1105, 1180, 1030), run, link, "CREATE DATABASE other")
            if "was started anew" in str(error):
                break
        contains(str(error), "was started anew")
        server.stop()
        for memory in rack.memory:
            memory.end()
            memory.start()
        server.start()
        expect(run(connect(server), "SHOW DATABASES LIKE 'shop'"), ())


if __name__ == "__main__":
    main()
