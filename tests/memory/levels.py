"""The random transactions of the isolation suite on two database servers of one rack, whose clients
conflict with each other through memory only.

    levels.py [word of a check's name …]
"""

from functools import partial

import pymysql

from harness.checks import check, expect, main
from harness.memory import Rack
from harness.servers import PASSWORD
from isolation.run import LEVELS, holds

# Of each client in one history.
TRANSACTIONS = 40
SEEDS = range(1, 4)


def connections(rack, count=2):
    """Functions that connect to as many database servers."""
    ports = [rack.database().port for _ in range(count)]
    return [partial(pymysql.connect, host="127.0.0.1", port=port, user="root", password=PASSWORD,
                    autocommit=True) for port in ports]


def both_go_off_duty(links, level):
    """Two doctors on two servers each see that the other one is on duty, and go; those who could not."""
    refused = []
    with links[0].cursor() as cursor:
        cursor.execute("CREATE DATABASE IF NOT EXISTS ward")
        cursor.execute("DROP TABLE IF EXISTS ward.duty")
        cursor.execute("CREATE TABLE ward.duty (doctor INT PRIMARY KEY, present INT NOT NULL)")
        cursor.execute("INSERT INTO ward.duty VALUES (0, 1), (1, 1)")
    cursors = [link.cursor() for link in links]
    for cursor in cursors:
        cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        cursor.execute("BEGIN")
        cursor.execute("SELECT SUM(present) FROM ward.duty")
        expect(cursor.fetchall(), ((2,),))
    for doctor, cursor in enumerate(cursors):
        cursor.execute("UPDATE ward.duty SET present = 0 WHERE doctor = %s", (doctor,))
    for doctor, cursor in enumerate(cursors):
        try:
            cursor.execute("COMMIT")
        except pymysql.err.OperationalError as error:
            expect(error.args[0], 1213)
            refused.append(doctor)
    return refused


@check
def write_skew_between_servers_is_seen_at_repeatable_read_and_not_at_serializable():
    with Rack() as rack:
        links = [connect() for connect in connections(rack)]
        expect(both_go_off_duty(links, "REPEATABLE READ"), [])
        expect(both_go_off_duty(links, "SERIALIZABLE"), [1])


@check
def each_level_keeps_its_promise_on_two_servers_of_one_rack():
    with Rack() as rack:
        servers = connections(rack)
        for level in LEVELS:
            for seed in SEEDS:
                holds(servers, level, seed, TRANSACTIONS)


if __name__ == "__main__":
    main()
