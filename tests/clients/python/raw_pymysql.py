"""PyMySQL: the protocol as a Python program without a framework sees it."""

import datetime
import decimal
import socket
import tempfile
import threading

import pymysql
import pymysql.cursors
from pymysql.constants import CLIENT

from harness.checks import (DATABASE, HOST, IS_MARIADB, PASSWORD, PORT, USER, check, expect,
                            expect_error, main)

SCHEMA = """
DROP DATABASE IF EXISTS {db};
CREATE DATABASE {db};
USE {db};
CREATE TABLE author (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    name VARCHAR(80) NOT NULL,
    email VARCHAR(120) NOT NULL,
    UNIQUE KEY author_email (email)
);
CREATE TABLE book (
    id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    author_id INT NOT NULL,
    title VARCHAR(200) NOT NULL,
    price DECIMAL(8,2) NOT NULL DEFAULT 0,
    published DATE,
    KEY book_author (author_id),
    CONSTRAINT book_author_fk FOREIGN KEY (author_id) REFERENCES author (id) ON DELETE RESTRICT
);
CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL);
INSERT INTO account VALUES (1, 100), (2, 100);
"""


def connect(database=DATABASE, **options):
    """A connection with autocommit on."""
    options.setdefault("autocommit", True)
    return pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD,
                           database=database, **options)


def run(connection, sql, arguments=None):
    """Affected rows or the rows of a statement."""
    with connection.cursor() as cursor:
        count = cursor.execute(sql, arguments)
        return cursor.fetchall() if cursor.description else count


@check
def a_load_that_is_cut_off_loses_nothing_else():
    connection = connect(database=None)
    run(connection, "SET GLOBAL local_infile = 1")
    run(connection, f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    run(connection, f"CREATE TABLE {DATABASE}.loaded (a INT PRIMARY KEY, b VARCHAR(50))")
    run(connection, f"INSERT INTO {DATABASE}.loaded VALUES (0, 'before')")
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(f"{number}\ttext {number}\n" for number in range(1, 50_001))
        file.flush()
        statement = f"LOAD DATA LOCAL INFILE '{file.name}' INTO TABLE {DATABASE}.loaded"
        # A client that goes when it has sent half of its file.
        half = connect(database=None, local_infile=True)
        write, sent = half._write_bytes, 0

        def cut(data):
            nonlocal sent
            sent += len(data)
            if sent > 400_000:
                half._sock.shutdown(socket.SHUT_RDWR)
                raise OSError("cut off")
            write(data)
        half._write_bytes = cut
        try:
            run(half, statement)
            raise AssertionError("the load was not cut off")
        except (OSError, pymysql.err.MySQLError):
            pass
        expect(run(connection, f"SELECT * FROM {DATABASE}.loaded"), ((0, "before"),))
        expect(run(connect(database=None, local_infile=True), statement), 50_000)
    expect(run(connection, f"SELECT COUNT(*), SUM(a) FROM {DATABASE}.loaded"),
           ((50_001, 1_250_025_000),))
    # A client that was not told to send files sends none.
    expect_error((1148, 4166) if IS_MARIADB else 3948,
                 lambda: run(connect(database=None), statement))


def connection_charset(**options):
    """What the server took from the handshake alone: PyMySQL's SET NAMES is left out."""
    link = pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, defer_connect=True,
                           **options)
    link.set_character_set = lambda *_: None
    link.connect()
    return run(link, "SELECT @@character_set_client, @@character_set_connection,"
                     " @@character_set_results, @@collation_connection")[0]


@check
def the_collation_of_the_handshake_is_the_sessions():
    expect(connection_charset(charset="utf8mb4"), ("utf8mb4",) * 3 + ("utf8mb4_general_ci",))
    expect(connection_charset(charset="latin1"), ("latin1",) * 3 + ("latin1_swedish_ci",))


@check
def an_interrupted_read_leaves_nothing_for_the_next_statement():
    connection = connect()
    cursor = pymysql.cursors.SSCursor(connection)
    cursor.execute("SELECT a.ordinal_position FROM information_schema.columns a,"
                   " information_schema.columns b LIMIT 20000")
    cursor.fetchone()
    cursor.close()
    expect(run(connection, "SELECT 42"), ((42,),))
    # A client that goes in the middle of its result leaves the others alone.
    gone = connect()
    cursor = gone.cursor(pymysql.cursors.SSCursor)
    cursor.execute("SELECT a.ordinal_position FROM information_schema.columns a,"
                   " information_schema.columns b LIMIT 20000")
    gone._force_close()
    gone._result.unbuffered_active = False  # nothing is read when the result is collected
    expect(run(connection, "SELECT 43"), ((43,),))


@check
def migrate_in_one_multi_statement():
    connection = connect(database=None, client_flag=CLIENT.MULTI_STATEMENTS)
    with connection.cursor() as cursor:
        cursor.execute(SCHEMA.format(db=DATABASE))
        while cursor.nextset():
            pass
    expect(run(connect(), "SHOW TABLES"), (("account",), ("author",), ("book",)))


@check
def insert_gives_affected_rows_and_last_insert_id():
    connection = connect()
    with connection.cursor() as cursor:
        expect(cursor.execute("INSERT INTO author (name, email) VALUES (%s, %s)",
                              ("Ada", "ada@example.org")), 1)
        expect(cursor.lastrowid, 1)
        expect(cursor.executemany("INSERT INTO author (name, email) VALUES (%s, %s)",
                                  [("Grace", "g@example.org"), ("Edsger", "e@example.org")]), 2)
        expect(cursor.lastrowid, 2)
    expect(run(connection, "SELECT LAST_INSERT_ID()"), ((2,),))


@check
def the_ok_packet_tells_ids_the_client_gave():
    connection = connect()
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE given (id INT AUTO_INCREMENT PRIMARY KEY, n INT UNIQUE)")
        for sql, wanted in (("INSERT INTO given VALUES (7, 1), (5, 2)", 5),
                            ("INSERT INTO given (n) VALUES (3), (4)", 8),
                            ("INSERT INTO given (n) VALUES (2) ON DUPLICATE KEY UPDATE n = 20", 5),
                            ("UPDATE given SET n = 30 WHERE id = 8", 0),
                            ("UPDATE given SET n = LAST_INSERT_ID(n + 1) WHERE id = 8", 31)):
            cursor.execute(sql)
            expect((sql, cursor.lastrowid), (sql, wanted))
        cursor.execute("DROP TABLE given")


@check
def a_comment_alone_succeeds():
    connection = connect(client_flag=CLIENT.MULTI_STATEMENTS)
    for text in ("/* x */", "-- x", "/*!99999 SET a = 1 */"):
        expect(run(connection, text), 0)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1; /* x */; SELECT 2")
        results = [cursor.fetchall()]
        while cursor.nextset():
            results.append(cursor.fetchall())
        expect([rows for rows in results if rows], [((1,),), ((2,),)])
    expect_error(1065, run, connection, ";")


@check
def update_counts_changed_rows():
    connection = connect()
    expect(run(connection, "UPDATE author SET name = 'Ada' WHERE id = 1"), 0 if not found_rows() else 1)
    expect(run(connection, "UPDATE author SET name = 'Ada L.' WHERE id = 1"), 1)
    found = connect(client_flag=CLIENT.FOUND_ROWS)
    expect(run(found, "UPDATE author SET name = 'Ada L.' WHERE id = 1"), 1)


def found_rows():
    """PyMySQL's default capabilities do not hold CLIENT_FOUND_ROWS."""
    return bool(CLIENT.CAPABILITIES & CLIENT.FOUND_ROWS)


@check
def commit_and_rollback():
    connection = connect(autocommit=False)
    run(connection, "INSERT INTO book (author_id, title, price) VALUES (1, 'Notes', 12.50)")
    expect(run(connect(), "SELECT COUNT(*) FROM book"), ((0,),))
    connection.commit()
    expect(run(connect(), "SELECT title, price FROM book"), (("Notes", decimal.Decimal("12.50")),))
    run(connection, "DELETE FROM book")
    connection.rollback()
    expect(run(connect(), "SELECT COUNT(*) FROM book"), ((1,),))


@check
def savepoints():
    connection = connect(autocommit=False)
    run(connection, "INSERT INTO book (author_id, title) VALUES (1, 'Kept')")
    run(connection, "SAVEPOINT half")
    run(connection, "INSERT INTO book (author_id, title) VALUES (1, 'Dropped')")
    run(connection, "ROLLBACK TO SAVEPOINT half")
    connection.commit()
    expect(run(connect(), "SELECT title FROM book ORDER BY id"), (("Notes",), ("Kept",)))
    expect_error(1305, run, connection, "ROLLBACK TO SAVEPOINT half")


@check
def every_type_comes_back():
    connection = connect()
    run(connection, """CREATE TABLE every_type (
        id INT PRIMARY KEY, ti TINYINT, si SMALLINT, mi MEDIUMINT, bi BIGINT, ub BIGINT UNSIGNED,
        f FLOAT, d DOUBLE, de DECIMAL(20,5), c CHAR(5), v VARCHAR(20), t TEXT, b BLOB,
        vb VARBINARY(10), da DATE, dt DATETIME(6), ts TIMESTAMP NULL, ti2 TIME(3), y YEAR,
        bo BOOLEAN, j JSON, e ENUM('a','b'))""")
    values = (1, -128, 32767, -8388608, -2**63, 2**64 - 1, 1.5, 0.1, decimal.Decimal("-12345.67891"),
              "abc", "žluťoučký", "long 🐱 text", b"\x00\xff", b"\x01\x00", datetime.date(2024, 2, 29),
              datetime.datetime(2024, 2, 29, 23, 59, 59, 123456),
              datetime.datetime(2001, 2, 3, 4, 5, 6),
              -datetime.timedelta(hours=100, microseconds=250000), 1999, True, '{"a": [1, 2]}', "b")
    run(connection, f"INSERT INTO every_type VALUES ({','.join(['%s'] * len(values))})", values)
    (got,) = run(connection, "SELECT * FROM every_type")
    for name, wanted, value in zip("id ti si mi bi ub f d de c v t b vb da dt ts ti2 y bo j e".split(),
                                   values, got):
        expect(value, wanted, name)
    run(connection, f"INSERT INTO every_type (id) VALUES (2)")
    expect(run(connection, "SELECT * FROM every_type WHERE id = 2")[0][1:], (None,) * 21)


@check
def duplicate_key_is_1062_and_names_the_key():
    error = expect_error(1062, run, connect(),
                         "INSERT INTO author (name, email) VALUES ('x', 'ada@example.org')")
    assert isinstance(error, pymysql.err.IntegrityError), error
    assert "Duplicate entry 'ada@example.org' for key" in error.args[1], error
    assert "author_email" in error.args[1], error


@check
def foreign_keys_are_1451_and_1452():
    error = expect_error(1452, run, connect(), "INSERT INTO book (author_id, title) VALUES (99, 'x')")
    assert "book_author_fk" in error.args[1], error
    expect_error(1451, run, connect(), "DELETE FROM author WHERE id = 1")


@check
def errors_by_number():
    connection = connect()
    for number, sql in (
            (1064, "SELEC 1"), (1064, "SELECT FROM"), (1146, "SELECT * FROM nope"),
            (1054, "SELECT nope FROM author"), (1048, "INSERT INTO author (name, email) VALUES (NULL, 'n')"),
            (1364, "INSERT INTO author (name) VALUES ('x')"), (1050, "CREATE TABLE author (id INT)"),
            (1051, "DROP TABLE nope"), (1008, "DROP DATABASE nope"), (1007, f"CREATE DATABASE {DATABASE}"),
            (1406, "INSERT INTO author (name, email) VALUES (REPEAT('x', 81), 'long')"),
            (1264, "INSERT INTO account VALUES (99999999999, 1)"),
            (1366, "INSERT INTO account VALUES ('abc', 1)"),
            (1136, "INSERT INTO account VALUES (1)"), (1052, "SELECT id FROM author, book"),
            (1060, "CREATE TABLE dup (a INT, a INT)"), (1193, "SET no_such_variable = 1"),
            (1305, "SELECT no_such_function(1)"), (1242, "SELECT (SELECT id FROM author)"),
            (1241, "SELECT (SELECT 1, 2)"), (1111, "SELECT id FROM author WHERE COUNT(*) > 1"),
            (1222, "SELECT 1 UNION SELECT 1, 2"), (1292, "INSERT INTO book (author_id, title, published) VALUES (1, 'x', '2023-02-30')")):
        try:
            expect_error(number, run, connection, sql)
        except AssertionError as wrong:
            raise AssertionError(f"{sql}: {wrong}") from None
    expect(run(connection, "SELECT 1"), ((1,),))


@check
def warnings_are_counted_and_shown():
    connection = connect()
    with connection.cursor() as cursor:
        cursor.execute("INSERT IGNORE INTO author (name, email) VALUES ('x', 'ada@example.org')")
        expect(cursor.rowcount, 0)
        expect(cursor.warning_count, 1)
    expect(run(connection, "SHOW WARNINGS")[0][:2], ("Warning", 1062))


def lose_or_wait(level):
    """Two transactions add 10 to the same row from what they read; nothing may be lost."""
    run(connect(), "UPDATE account SET balance = 100")
    outcomes = []
    barrier = threading.Barrier(2, timeout=30)

    def add():
        connection = connect(autocommit=False)
        run(connection, f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        run(connection, "SET SESSION innodb_lock_wait_timeout = 5")
        try:
            balance = run(connection, "SELECT balance FROM account WHERE id = 1")[0][0]
            barrier.wait()
            run(connection, "UPDATE account SET balance = %s WHERE id = 1", (balance + 10,))
            connection.commit()
            outcomes.append("done")
        except pymysql.err.OperationalError as error:
            connection.rollback()
            outcomes.append(error.args[0])

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes, key=str), run(connect(), "SELECT balance FROM account WHERE id = 1")[0][0]


@check
def write_conflict_loses_no_update():
    outcomes, balance = lose_or_wait("SERIALIZABLE")
    done = outcomes.count("done")
    expect(balance, 100 + 10 * done, f"outcomes {outcomes}")
    assert done >= 1, outcomes
    assert all(outcome in ("done", 1213, 1205) for outcome in outcomes), outcomes


@check
def write_skew_is_refused_at_serializable():
    run(connect(), "UPDATE account SET balance = 100")
    first, second = connect(autocommit=False), connect(autocommit=False)
    for connection in (first, second):
        run(connection, "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        run(connection, "SET SESSION innodb_lock_wait_timeout = 1")
        run(connection, "SELECT SUM(balance) FROM account")
    outcomes = []
    for connection, row in ((first, 1), (second, 2)):
        try:
            run(connection, "UPDATE account SET balance = balance - 150 WHERE id = %s", (row,))
        except pymysql.err.OperationalError as error:
            outcomes.append(error.args[0])
            connection.rollback()
    for connection in (first, second):
        try:
            connection.commit()
        except pymysql.err.OperationalError as error:
            outcomes.append(error.args[0])
    assert outcomes and all(number in (1213, 1205) for number in outcomes), outcomes
    assert run(connect(), "SELECT SUM(balance) FROM account")[0][0] >= 50


@check
def for_update_waits_and_times_out_with_1205():
    first, second = connect(autocommit=False), connect(autocommit=False)
    run(first, "SELECT * FROM account WHERE id = 1 FOR UPDATE")
    run(second, "SET SESSION innodb_lock_wait_timeout = 1")
    expect_error(1205, run, second, "SELECT * FROM account WHERE id = 1 FOR UPDATE")
    first.rollback()
    expect(len(run(second, "SELECT * FROM account WHERE id = 1 FOR UPDATE")), 1)
    second.rollback()


@check
def statement_time_out():
    connection = connect()
    variable = "max_statement_time = 0.2" if IS_MARIADB else "max_execution_time = 200"
    run(connection, f"SET SESSION {variable}")
    heavy = ("SELECT COUNT(*) FROM " + ", ".join(f"digits AS d{i}" for i in range(9)))
    run(connection, "CREATE TABLE IF NOT EXISTS digits (d INT PRIMARY KEY)")
    run(connection, "INSERT IGNORE INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
    expect_error((3024, 1969), run, connection, heavy)
    expect(run(connection, "SELECT 1"), ((1,),))


@check
def kill_query_ends_a_statement():
    victim, killer = connect(), connect()
    outcome = []

    def suffer():
        try:
            outcome.append(run(victim, "SELECT SLEEP(60)"))
        except pymysql.err.OperationalError as error:
            outcome.append(error.args[0])

    thread = threading.Thread(target=suffer)
    thread.start()
    identity = victim.thread_id()
    while thread.is_alive():
        running = [row for row in run(killer, "SHOW PROCESSLIST") if row[0] == identity and row[7]]
        if running:
            run(killer, f"KILL QUERY {identity}")
            thread.join(10)
            break
    thread.join(10)
    assert not thread.is_alive(), "still running after KILL QUERY"
    assert outcome in ([1317], [((1,),)]), outcome
    expect(run(victim, "SELECT 1"), ((1,),))


@check
def streaming_a_large_result():
    connection = connect()
    run(connection, "CREATE TABLE big (id INT PRIMARY KEY, text VARCHAR(500))")
    with connection.cursor() as cursor:
        for start in range(0, 5000, 1000):
            cursor.executemany("INSERT INTO big VALUES (%s, %s)",
                               [(number, "x" * 500) for number in range(start, start + 1000)])
    with connection.cursor(pymysql.cursors.SSCursor) as cursor:
        cursor.execute("SELECT id, text FROM big ORDER BY id")
        expect(sum(1 for _ in cursor), 5000)


@check
def a_packet_of_20_megabytes_goes_both_ways():
    connection = connect(max_allowed_packet=64 * 1024 * 1024)
    run(connection, "CREATE TABLE huge (id INT PRIMARY KEY, b LONGBLOB)")
    blob = bytes(range(256)) * (20 * 4096)
    run(connection, "INSERT INTO huge VALUES (1, _binary %s)", (blob,))
    ((got,),) = run(connection, "SELECT b FROM huge")
    assert got == blob, f"{len(got)} bytes came back of {len(blob)}"


if __name__ == "__main__":
    main()
