"""Long statements and changes of tables beside others: clients that die, writers that go on."""

import socket
import struct
import threading
import time

import pymysql
from pymysql.constants import COMMAND

from harness.checks import DATABASE, HOST, IS_MARIADB, PASSWORD, PORT, USER, Skip, check, expect, main

ROWS = 20_000
WRITERS = 3
# Longer than any of it takes; only a failure waits for so long.
PATIENCE_SECONDS = 60


def connect(database=DATABASE):
    """Without TLS, so that its socket is the connection."""
    return pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, autocommit=True,
                           database=database, ssl_disabled=True, read_timeout=PATIENCE_SECONDS * 2)


def run(link, sql):
    """The rows of a statement."""
    cursor = link.cursor()
    cursor.execute(sql)
    return cursor.fetchall()


def filled(link):
    """A table `bulk` of ROWS rows with n = 1."""
    run(link, "DROP TABLE IF EXISTS bulk")
    run(link, "CREATE TABLE bulk (id INT PRIMARY KEY, n INT NOT NULL, u INT, UNIQUE (u), KEY (n))")
    for first in range(0, ROWS, 5_000):
        run(link, "INSERT INTO bulk VALUES "
            + ",".join(f"({i}, 1, {i})" for i in range(first, first + 5_000)))


def send_and_die(sql, reset):
    """A client that sends a statement and is gone; its connection id."""
    link = connect()
    identity = link.thread_id()
    link._execute_command(COMMAND.COM_QUERY, sql)
    if reset:
        # Closing sends RST.
        link._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link._rfile.close()
    link._sock.close()
    link._sock = None
    return identity


def wait_until_gone(link, identity):
    """Until a connection is in the process list no more."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while any(row[0] == identity for row in run(link, "SHOW PROCESSLIST")):
        assert time.monotonic() < deadline, f"connection {identity} still works for nobody"
        time.sleep(0.02)


@check
def a_dead_client_ends_its_statement():
    if IS_MARIADB:
        raise Skip("MariaDB looks at its client only when it answers")
    link = connect()
    filled(link)
    run(link, "DROP TABLE IF EXISTS peers")
    run(link, "CREATE TABLE peers AS SELECT id, n FROM bulk")
    # Each would take minutes.
    statements = [
        "SELECT SUM(a.n * b.n * c.n) FROM bulk a, bulk b, bulk c",
        "UPDATE bulk SET n = 2 WHERE (SELECT COUNT(*) FROM peers a, peers b WHERE a.n + b.n > bulk.id) >= 0",
        "DELETE FROM bulk WHERE (SELECT COUNT(*) FROM peers a, peers b WHERE a.n + b.n > bulk.id) >= 0",
        "CREATE TABLE joined AS SELECT SUM(a.n * b.n * c.n) AS s FROM bulk a, bulk b, bulk c",
        "SELECT SLEEP(100000)",
    ]
    for sql in statements:
        for reset in (False, True):
            wait_until_gone(link, send_and_die(sql, reset))
    expect(run(link, "SELECT COUNT(*), SUM(n) FROM bulk"), ((ROWS, ROWS),))
    expect(run(link, "SHOW TABLES LIKE 'joined'"), ())
    link.close()


@check
def a_dead_clients_alter_leaves_the_table_and_its_writers_alone():
    if IS_MARIADB:
        raise Skip("MariaDB looks at its client only when it answers")
    link, writer = connect(), connect()
    filled(link)
    before = run(link, "SHOW CREATE TABLE bulk")
    # The change waits for a while for who has written the table.
    run(writer, "BEGIN")
    run(writer, "UPDATE bulk SET n = 5 WHERE id = 7")
    wait_until_gone(link, send_and_die("ALTER TABLE bulk MODIFY n BIGINT NOT NULL", False))
    run(writer, "COMMIT")
    expect(run(link, "SHOW CREATE TABLE bulk"), before)
    expect(run(link, "SELECT SUM(n) FROM bulk"), ((ROWS + 4,),))
    run(link, "ALTER TABLE bulk MODIFY n BIGINT NOT NULL")
    expect(run(link, "SELECT SUM(n) FROM bulk"), ((ROWS + 4,),))
    writer.close()
    link.close()


@check
def a_copy_ends_under_writers_who_lose_nothing():
    link = connect()
    filled(link)
    stop = threading.Event()
    counts = [0] * WRITERS
    problems = []

    def write(number):
        writer = connect()
        try:
            while not stop.is_set():
                identity = (counts[number] * 7919 + number * 31) % ROWS
                run(writer, f"UPDATE bulk SET n = n + 1 WHERE id = {identity}")
                counts[number] += 1
        except pymysql.err.MySQLError as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        for kind in ("BIGINT", "INT"):
            run(link, f"ALTER TABLE bulk MODIFY n {kind} NOT NULL")
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    expect(problems, [])
    expect(run(link, "SELECT COUNT(*), SUM(n) FROM bulk"), ((ROWS, ROWS + sum(counts)),))
    expect(run(link, "SELECT COUNT(*), SUM(n) FROM bulk FORCE INDEX (u) WHERE u >= 0"),
           ((ROWS, ROWS + sum(counts)),))
    link.close()


if __name__ == "__main__":
    run(connect(None), f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    main()
