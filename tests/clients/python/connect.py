"""What clients send when they connect, answered as MySQL 8 would (a golden test).

The statements are those captured from some 25 clients, without their MariaDB branches.
An expected value `ANY` says only that the statement must succeed with that shape.
"""

import socket

import pymysql
from pymysql.constants import CLIENT, SERVER_STATUS

from harness.checks import (DATABASE, HOST, IS_MARIADB, PASSWORD, PORT, USER, Skip, check,
                            expect, expect_error, main)


class Any:
    """Equal to everything."""

    def __eq__(self, _other):
        return True

    def __repr__(self):
        return "ANY"


ANY = Any()


def connect(**options):
    """A plain connection."""
    return pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, **options)


def rows(connection, sql):
    """All rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return cursor.fetchall()


def one(sql, wanted):
    """The only row of a query on a fresh connection."""
    connection = connect()
    got = rows(connection, sql)
    connection.close()
    expect(got, (wanted,), sql)


def mysql_only():
    """For answers in which MariaDB is not MySQL."""
    if IS_MARIADB:
        raise Skip("MariaDB answers as MariaDB")


@check
def handshake_names_mysql_8_and_manxdb():
    mysql_only()
    connection = connect()
    version = connection.get_server_info()
    assert version.startswith("8.0.36-ManxDB"), version
    expect(rows(connection, "SELECT VERSION()"), ((version,),))
    expect(rows(connection, "SELECT @@version"), ((version,),))


@check
def greeting_salt_is_random_and_clean():
    salts = set()
    for _ in range(20):
        with socket.create_connection((HOST, PORT)) as link:
            packet = link.recv(512)
        end = packet.index(b"\0", 5)
        salt = packet[end + 5:end + 13]
        assert b"\0" not in salt, packet
        salts.add(salt)
    expect(len(salts), 20)


@check
def wrong_password_is_1045():
    error = expect_error(1045, pymysql.connect, host=HOST, port=PORT, user=USER, password="no")
    assert "Access denied for user" in str(error), error


@check
def unknown_user_is_1045():
    expect_error(1045, pymysql.connect, host=HOST, port=PORT, user="nobody", password="x")


@check
def unknown_database_is_1049():
    expect_error(1049, connect, database="no_such_database")


@check
def pymysql_start():
    connection = connect()
    rows(connection, "SET NAMES utf8mb4")
    rows(connection, "SET AUTOCOMMIT = 0")
    assert not connection.get_autocommit()
    rows(connection, "SET AUTOCOMMIT = 1")
    assert connection.get_autocommit()


@check
def mysql_connector_python_start():
    connection = connect()
    rows(connection, "SET NAMES 'utf8mb4' COLLATE 'utf8mb4_general_ci'")
    expect(rows(connection, "SELECT @@collation_connection"), (("utf8mb4_general_ci",),))
    rows(connection, "SET @@session.autocommit = OFF")
    expect(rows(connection, "SELECT @@session.autocommit"), ((0,),))


@check
def sqlalchemy_start():
    one("SELECT DATABASE()", (None,))
    one("SELECT @@tx_isolation", ("REPEATABLE-READ",))
    one("SELECT @@sql_mode", ("ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,"
                              "ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION",))
    one("SELECT @@lower_case_table_names", (0 if IS_MARIADB else 2,))
    connect().rollback()


@check
def both_names_of_the_isolation_level():
    connection = connect()
    rows(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    expect(rows(connection, "SELECT @@tx_isolation"), (("READ-COMMITTED",),))
    mysql_only()
    expect(rows(connection, "SELECT @@transaction_isolation"), (("READ-COMMITTED",),))
    expect(rows(connection, "SELECT @@session.transaction_isolation"), (("READ-COMMITTED",),))
    rows(connection, "SET SESSION transaction_isolation = 'SERIALIZABLE'")
    expect(rows(connection, "SELECT @@transaction_isolation"), (("SERIALIZABLE",),))


@check
def django_start():
    connection = connect()
    got = rows(connection, """
        SELECT VERSION(), @@sql_mode, @@default_storage_engine, @@sql_auto_is_null,
               @@lower_case_table_names,
               CONVERT_TZ('2001-01-01 01:00:00', 'UTC', 'UTC') IS NOT NULL""")
    expect(got, ((ANY, ANY, "InnoDB", 0, 0 if IS_MARIADB else 2, ANY if IS_MARIADB else 1),))
    rows(connection, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
    rows(connection, "SET SQL_AUTO_IS_NULL = 0")


@check
def sequelize_start():
    connection = connect()
    rows(connection, "SET time_zone = '+00:00'")
    expect(rows(connection, "SELECT @@time_zone"), (("+00:00",),))
    with connection.cursor() as cursor:
        cursor.execute("SELECT VERSION() as version")
        expect(cursor.description[0][0], "version")
        cursor.execute("SELECT 1+1 AS result")
        expect(cursor.fetchall(), ((2,),))


@check
def typeorm_and_knex_start():
    with connect().cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute("select version() as version")
        expect(list(cursor.fetchone()), ["version"])
        cursor.execute("SELECT version()")
        expect(list(cursor.fetchone()), ["version()"])
        cursor.execute("SET FOREIGN_KEY_CHECKS = 0")
        cursor.execute("SET FOREIGN_KEY_CHECKS = 1")


@check
def connector_j_reads_21_variables_at_once():
    mysql_only()
    connection = connect()
    with connection.cursor(pymysql.cursors.DictCursor) as cursor:
        cursor.execute(
            "/* mysql-connector-j-9.1.0 */SELECT  @@session.auto_increment_increment AS "
            "auto_increment_increment, @@character_set_client AS character_set_client, "
            "@@character_set_connection AS character_set_connection, @@character_set_results AS "
            "character_set_results, @@character_set_server AS character_set_server, "
            "@@collation_server AS collation_server, @@collation_connection AS "
            "collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS "
            "interactive_timeout, @@license AS license, @@lower_case_table_names AS "
            "lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, "
            "@@net_write_timeout AS net_write_timeout, @@performance_schema AS "
            "performance_schema, @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, "
            "@@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation, "
            "@@wait_timeout AS wait_timeout")
        got = cursor.fetchone()
    expect(got["auto_increment_increment"], 1)
    expect(got["character_set_client"], "utf8mb4")
    expect(got["character_set_server"], "utf8mb4")
    expect(got["interactive_timeout"], 28800)
    expect(got["lower_case_table_names"], 2)
    expect(got["max_allowed_packet"], 67108864)
    expect(got["net_write_timeout"], 60)
    expect(got["time_zone"], "SYSTEM")
    expect(got["transaction_isolation"], "REPEATABLE-READ")
    expect(got["wait_timeout"], 28800)
    rows(connection, "SET character_set_results = NULL")
    expect(rows(connection, "SELECT @@character_set_results"), ((None,),))
    rows(connection, "SET autocommit=1")
    rows(connection, "SHOW DATABASES")
    rows(connection, "SHOW FULL TABLES FROM information_schema LIKE '%'")


@check
def query_cache_variables_of_old_connectors_are_answered():
    mysql_only()
    one("SELECT @@query_cache_size, @@query_cache_type", (0, "OFF"))


@check
def mariadb_connector_j_start():
    mysql_only()
    connection = connect()
    rows(connection, "set sql_mode=concat(@@sql_mode,',STRICT_TRANS_TABLES'), "
                     "session_track_system_variables='autocommit,transaction_isolation', "
                     "NAMES utf8mb4")
    assert "STRICT_TRANS_TABLES" in rows(connection, "SELECT @@sql_mode")[0][0]


@check
def activerecord_start():
    connection = connect()
    rows(connection, "SET @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), "
                     "',NO_AUTO_VALUE_ON_ZERO'), @@SESSION.sql_auto_is_null = 0, "
                     "@@SESSION.wait_timeout = 2147483")
    mode = rows(connection, "SELECT @@sql_mode")[0][0].split(",")
    assert "STRICT_ALL_TABLES" in mode and "NO_AUTO_VALUE_ON_ZERO" in mode, mode
    expect(rows(connection, "SELECT @@wait_timeout"), ((2147483,),))
    rows(connection, """SELECT table_name FROM (SELECT table_name, table_type FROM
        information_schema.tables WHERE table_schema = database()) _subquery
        WHERE table_name = 'x' AND table_type = 'BASE TABLE'""")
    rows(connection, "SELECT * FROM information_schema.statistics WHERE table_name = 'x'")


@check
def sqlx_start():
    connection = connect()
    rows(connection, "SET sql_mode=(SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT,"
                     "NO_ENGINE_SUBSTITUTION')),time_zone='+00:00',"
                     "NAMES utf8mb4 COLLATE utf8mb4_unicode_ci")
    expect(rows(connection, "SELECT 'a' || 'b'"), (("ab",),))
    expect(rows(connection, "SELECT @@collation_connection"), (("utf8mb4_unicode_ci",),))


@check
def mysql_async_start():
    mysql_only()
    one("SELECT @@max_allowed_packet,@@wait_timeout,@@socket", (67108864, 28800, ANY))
    socket_path = rows(connect(), "SELECT @@socket")[0][0]
    if socket_path:
        with socket.socket(socket.AF_UNIX) as link:
            link.connect(socket_path)


@check
def diesel_start():
    connection = connect()
    rows(connection, "SET time_zone = '+00:00'")
    for name in ("character_set_client", "character_set_connection", "character_set_results"):
        rows(connection, f"SET {name} = 'utf8mb4'")


@check
def mariadb_dump_start():
    connection = connect(client_flag=CLIENT.MULTI_STATEMENTS)
    for sql in (
            "/*!40100 SET @@SQL_MODE='' */", "/*!40103 SET TIME_ZONE='+00:00' */",
            "/*M!100100 SET NO_SUCH_THING = 1 */" if not IS_MARIADB else "/* */",
            "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
            "START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */",
            "UNLOCK TABLES", "SAVEPOINT sp", "ROLLBACK TO SAVEPOINT sp", "RELEASE SAVEPOINT sp",
            "SET SESSION character_set_results='binary'", "select @@collation_database",
            "SELECT /*!40001 SQL_NO_CACHE */ 1", "SHOW VARIABLES LIKE 'gtid\\_mode'"):
        if sql not in ("/* */",):
            rows(connection, sql)


@check
def executable_comments_run_only_up_to_our_version():
    mysql_only()
    expect(rows(connect(), "SELECT 1 /*!50000 + 1 */ /*!99999 + 10 */"), ((2,),))
    expect(rows(connect(), "SELECT /*+ MAX_EXECUTION_TIME(1000) */ 5"), ((5,),))


@check
def status_flags_follow_the_transaction():
    connection = connect(autocommit=True)
    rows(connection, "SELECT 1")
    in_transaction = SERVER_STATUS.SERVER_STATUS_IN_TRANS
    assert not connection.server_status & in_transaction
    assert connection.server_status & SERVER_STATUS.SERVER_STATUS_AUTOCOMMIT
    rows(connection, "START TRANSACTION")
    assert connection.server_status & in_transaction
    rows(connection, "COMMIT")
    assert not connection.server_status & in_transaction
    rows(connection, f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    rows(connection, "BEGIN")
    rows(connection, f"CREATE TABLE {DATABASE}.implicit_commit (id INT PRIMARY KEY)")
    assert not connection.server_status & in_transaction, "DDL commits"
    rows(connection, f"DROP DATABASE {DATABASE}")


@check
def no_backslash_escapes_flag():
    connection = connect()
    rows(connection, "SET sql_mode = 'NO_BACKSLASH_ESCAPES'")
    assert connection.server_status & SERVER_STATUS.SERVER_STATUS_NO_BACKSLASH_ESCAPES
    expect(rows(connection, r"SELECT '\n'"), (("\\n",),))


@check
def init_db_changes_the_database():
    connection = connect()
    rows(connection, f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    connection.select_db(DATABASE)
    expect(rows(connection, "SELECT DATABASE()"), ((DATABASE,),))
    expect_error(1049, connection.select_db, "no_such_database")
    expect(rows(connection, "SELECT DATABASE()"), ((DATABASE,),))


@check
def ping_and_kill():
    first, second = connect(), connect()
    first.ping(reconnect=False)
    identity = rows(second, "SELECT CONNECTION_ID()")[0][0]
    expect(second.thread_id(), identity)
    rows(first, f"KILL {identity}")
    expect_error((1317, 2006, 2013, 1053), rows, second, "SELECT 1")
    expect_error(1094, rows, first, "KILL 999999999")


@check
def multi_statements_give_several_results():
    connection = connect(client_flag=CLIENT.MULTI_STATEMENTS)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1; DO 0; SELECT 'two', 3")
        expect(cursor.fetchall(), ((1,),))
        assert cursor.nextset()
        assert cursor.nextset()
        expect(cursor.fetchall(), (("two", 3),))
        assert not cursor.nextset()


@check
def without_the_flag_multi_statements_are_1064():
    # PyMySQL asks for the flag only when told to.
    connection = connect(client_flag=0)
    expect_error(1064, rows, connection, "SELECT 1; SELECT 2")


@check
def native_password_account():
    mysql_only()
    admin = connect()
    rows(admin, "DROP USER IF EXISTS native@'%'")
    rows(admin, "CREATE USER native@'%' IDENTIFIED WITH mysql_native_password BY 'old way'")
    link = pymysql.connect(host=HOST, port=PORT, user="native", password="old way")
    expect(rows(link, "SELECT CURRENT_USER()"), (("native@%",),))
    expect_error(1045, pymysql.connect, host=HOST, port=PORT, user="native", password="new way")
    rows(admin, "DROP USER native@'%'")


@check
def caching_sha2_account_over_plain_and_tls():
    mysql_only()
    admin = connect()
    rows(admin, "DROP USER IF EXISTS sha@'%'")
    rows(admin, "CREATE USER sha@'%' IDENTIFIED WITH caching_sha2_password BY 'new wäy'")
    for _ in range(2):  # the first is full authentication, the second may be fast
        link = pymysql.connect(host=HOST, port=PORT, user="sha", password="new wäy".encode(),
                               ssl_disabled=True)
        expect(rows(link, "SELECT USER()")[0][0].split("@")[0], "sha")
        link.close()
    link = pymysql.connect(host=HOST, port=PORT, user="sha", password="new wäy".encode(),
                           ssl={"check_hostname": False})
    expect(rows(link, "SHOW STATUS LIKE 'Ssl_version'")[0][0], "Ssl_version")
    assert rows(link, "SHOW STATUS LIKE 'Ssl_version'")[0][1].startswith("TLS"), "encrypted"
    expect_error(1045, pymysql.connect, host=HOST, port=PORT, user="sha", password="")
    rows(admin, "DROP USER sha@'%'")


@check
def a_password_without_tls_travels_encrypted_for_the_servers_key():
    """A scramble the server cannot check makes it ask for the password itself."""
    mysql_only()
    admin = connect()
    rows(admin, "DROP USER IF EXISTS sha@'%'")
    rows(admin, "CREATE USER sha@'%' IDENTIFIED WITH caching_sha2_password BY 'a longer password than the challenge'")
    scramble = pymysql._auth.scramble_caching_sha2
    pymysql._auth.scramble_caching_sha2 = lambda password, nonce: b"?" * 32
    plain = {"host": HOST, "port": PORT, "ssl_disabled": True}
    try:
        link = pymysql.connect(user="sha", password="a longer password than the challenge", **plain)
        expect(rows(link, "SELECT USER()")[0][0].split("@")[0], "sha")
        assert rows(link, "SHOW STATUS LIKE 'Ssl_version'")[0][1] == "", "not encrypted"
        link.close()
        expect_error(1045, pymysql.connect, user="sha", password="another password", **plain)
        expect_error(1045, pymysql.connect, user="nobody", password="another password", **plain)
    finally:
        pymysql._auth.scramble_caching_sha2 = scramble
    expect(rows(admin, "SHOW VARIABLES LIKE 'caching_sha2_password_public_key_path'")[0][1], "public_key.pem")
    rows(admin, "DROP USER sha@'%'")


@check
def grants_bind_and_revoke():
    admin = connect()
    rows(admin, "CREATE DATABASE IF NOT EXISTS guarded")
    rows(admin, "CREATE TABLE IF NOT EXISTS guarded.t (id INT PRIMARY KEY, v INT)")
    rows(admin, "CREATE TABLE IF NOT EXISTS guarded.u (id INT PRIMARY KEY)")
    rows(admin, "DROP USER IF EXISTS guest@'%'")
    rows(admin, "CREATE USER guest@'%' IDENTIFIED BY 'pw'")
    rows(admin, "GRANT SELECT, INSERT ON guarded.t TO guest@'%'")
    guest = pymysql.connect(host=HOST, port=PORT, user="guest", password="pw", autocommit=True)
    rows(guest, "INSERT INTO guarded.t VALUES (1, 2)")
    expect(rows(guest, "SELECT v FROM guarded.t"), ((2,),))
    expect_error(1142, rows, guest, "DELETE FROM guarded.t")
    expect_error(1142, rows, guest, "UPDATE guarded.t SET v = 3")
    expect_error(1142, rows, guest, "SELECT * FROM guarded.u")
    expect_error((1044, 1142), rows, guest, "CREATE DATABASE nope")
    expect_error((1227, 1044), rows, guest, "CREATE USER x@'%'")
    assert any("SELECT, INSERT" in row[0] for row in rows(admin, "SHOW GRANTS FOR guest@'%'"))
    rows(admin, "REVOKE SELECT, INSERT ON guarded.t FROM guest@'%'")
    expect_error(1142, rows, guest, "SELECT v FROM guarded.t")
    rows(admin, "DROP USER guest@'%'")
    rows(admin, "DROP DATABASE guarded")


if __name__ == "__main__":
    main()
