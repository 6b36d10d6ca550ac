"""mysql-connector-python, in Python alone and over its C library."""

import datetime
import decimal
import os

import mysql.connector
from mysql.connector import pooling

from harness.checks import (DATABASE, HOST, PASSWORD, PORT, USER, Skip, check, expect,
                            expect_error, main)

ADDRESS = {"host": HOST, "port": PORT, "user": USER, "password": PASSWORD}
COLUMNS = {
    "tiny": ("TINYINT", -5), "big": ("BIGINT UNSIGNED", 2**63 - 1), "single": ("FLOAT", 1.5),
    "real_one": ("DOUBLE", 3.25), "price": ("DECIMAL(20,5)", decimal.Decimal("123.45000")),
    "word": ("VARCHAR(50)", "h\u00f6llo \U0001F600"), "long_one": ("MEDIUMTEXT", "x" * 70_000),
    "raw": ("VARBINARY(10)", b"\xfe\x00\xff"), "day": ("DATE", datetime.date(2020, 2, 29)),
    "span": ("TIME(3)", datetime.timedelta(hours=10, milliseconds=5)),
    "moment": ("DATETIME(6)", datetime.datetime(2024, 1, 2, 3, 4, 5, 678901)),
    "stamp": ("TIMESTAMP NULL", datetime.datetime(2024, 1, 2, 3, 4, 5)),
    "state": ("ENUM('a','b')", "b"), "nothing": ("INT", None),
}
INSERT = (f"INSERT INTO kinds ({', '.join(COLUMNS)}) "
          f"VALUES ({', '.join(['%s'] * len(COLUMNS))})")
SELECT = f"SELECT {', '.join(COLUMNS)} FROM kinds WHERE id = %s"
VALUES = tuple(value for _, value in COLUMNS.values())


def connect(**options):
    """A connection by the chosen implementation."""
    return mysql.connector.connect(**ADDRESS, **options)


def tidy(row):
    """Binary strings arrive as bytes or bytearray, a prepared ENUM as text or bytes."""
    return tuple(bytes(value) if isinstance(value, bytearray) else value for value in row)


def both(function):
    """The check for each implementation."""
    for pure in (True, False):
        def run(pure=pure):
            if not pure and not mysql.connector.HAVE_CEXT:
                raise Skip("no C library on this platform")
            function(pure)
        run.__name__ = f"{function.__name__}_{'in_python' if pure else 'in_c'}"
        check(run)
    return function


@both
def values_of_every_type_come_back(pure):
    connection = connect(use_pure=pure)
    cursor = connection.cursor()
    cursor.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
    cursor.execute(f"CREATE DATABASE {DATABASE}")
    connection.database = DATABASE
    columns = ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())
    cursor.execute(f"CREATE TABLE kinds (id INT AUTO_INCREMENT PRIMARY KEY, {columns})")
    cursor.execute(INSERT, VALUES)
    expect(cursor.lastrowid, 1)
    connection.commit()
    cursor.execute(SELECT, (1,))
    expect(tidy(cursor.fetchone()), VALUES)
    expect(list(cursor.column_names), list(COLUMNS))
    # The C library garbles the microseconds of a timedelta it binds.
    bound = VALUES if pure else tuple(
        None if isinstance(value, datetime.timedelta) else value for value in VALUES)
    prepared = connection.cursor(prepared=True)
    prepared.execute(INSERT, bound)
    prepared.execute(SELECT, (2,))
    expect(tidy(prepared.fetchone()), bound)
    connection.commit()


@both
def transactions_and_errors(pure):
    connection = connect(use_pure=pure, database=DATABASE)
    cursor = connection.cursor()
    connection.start_transaction(isolation_level="REPEATABLE READ", consistent_snapshot=True)
    assert connection.in_transaction
    cursor.executemany("INSERT INTO kinds (word) VALUES (%s)", [(str(n),) for n in range(300)])
    expect(cursor.rowcount, 300)
    expect_error(1062, cursor.execute, "INSERT INTO kinds (id) VALUES (1)")
    expect_error(1146, cursor.execute, "SELECT * FROM nothing")
    connection.rollback()
    cursor.execute("SELECT COUNT(*) FROM kinds WHERE word = '7'")
    expect(cursor.fetchall(), [(0,)])
    connection.rollback()
    connection.start_transaction(readonly=True)
    expect_error(1792, cursor.execute, "DELETE FROM kinds")
    connection.rollback()
    cursor.execute("SELECT CAST('x' AS UNSIGNED)")
    cursor.fetchall()
    expect(cursor.warning_count, 1)


@both
def cursors_of_every_kind(pure):
    connection = connect(use_pure=pure, database=DATABASE)
    with connection.cursor(dictionary=True) as cursor:
        cursor.execute("SELECT COUNT(*) AS n FROM kinds")
        assert cursor.fetchone()["n"] >= 2
    with connection.cursor(buffered=True) as cursor:
        cursor.execute("SELECT id FROM kinds WHERE id < 3")
        expect(cursor.rowcount, 2)
    with connection.cursor(raw=True) as cursor:
        cursor.execute("SELECT id FROM kinds ORDER BY id")
        expect(bytes(cursor.fetchall()[0][0]), b"1")


@both
def a_connection_is_reset_and_changes_its_user(pure):
    connection = connect(use_pure=pure, database=DATABASE)
    cursor = connection.cursor()
    cursor.execute("SET @x = 1")
    connection.cmd_reset_connection()
    cursor.execute("SELECT @x")
    expect(cursor.fetchall(), [(None,)])
    connection.cmd_change_user(USER, PASSWORD, DATABASE)
    expect(connection.database, DATABASE)
    connection.ping()
    connection.time_zone = "+02:00"
    expect(connection.time_zone, "+02:00")


@both
def the_compressed_protocol_carries_everything(pure):
    connection = connect(use_pure=pure, database=DATABASE, compress=True)
    cursor = connection.cursor()
    cursor.execute("SHOW STATUS LIKE 'Compression'")
    expect(cursor.fetchall(), [("Compression", "ON")])
    # Packets of 16 MiB and more are beyond this client's reader of compressed frames.
    cursor.execute("SELECT REPEAT('ab', 7000000), 1")
    expect([len(value) if isinstance(value, str) else value for value in cursor.fetchone()],
           [14_000_000, 1])
    big = "compressed " * 300_000
    cursor.execute("SELECT CRC32(%s) = CRC32(REPEAT('compressed ', 300000))", (big,))
    expect(cursor.fetchall(), [(1,)])
    noise = os.urandom(1_000_000)
    cursor.execute("SELECT %s", (noise,))
    expect(bytes(cursor.fetchone()[0]) == noise, True)
    prepared = connection.cursor(prepared=True)
    for number in (7, 8):
        prepared.execute("SELECT ?, ?", (number, "x" * 100))
        expect([tidy(row) for row in prepared.fetchall()], [(number, "x" * 100)])
    expect_error(1146, lambda: cursor.execute("SELECT * FROM nowhere"))
    cursor.execute("SELECT 'alive'")
    expect(cursor.fetchall(), [("alive",)])


@both
def a_collation_is_what_the_client_asked_for(pure):
    connection = connect(use_pure=pure, collation="utf8mb4_bin")
    cursor = connection.cursor()
    cursor.execute("SELECT @@collation_connection, 'a' = 'A'")
    expect(cursor.fetchall(), [("utf8mb4_bin", 0)])


@check
def a_pool_hands_connections_around():
    pool = pooling.MySQLConnectionPool(pool_size=2, pool_name="few", **ADDRESS)
    for number in range(6):
        with pool.get_connection() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT %s", (number,))
            expect(cursor.fetchall(), [(number,)])


if __name__ == "__main__":
    main()
