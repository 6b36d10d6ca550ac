"""Memory that is given away: what becomes of it when rows are deleted, or servers killed that have it."""

import pymysql

from common import connect, insist, run
from harness.checks import check, expect
from harness.memory import OnMemory, Rack
from harness.pool import wait_for

CLIENTS = 4
# Twice as many: a server may be started again before the places of the dead are free.
PLACES = 2 * CLIENTS
KILLED = 10


@check
def rows_that_are_deleted_leave_their_room_to_others():
    sizes = {"--size-mb": 12, "--log-kb": 64, "--versions": 2, "--row-bytes": 160, "--node-bytes": 2048}
    with Rack(flags=sizes) as rack:
        links = [connect(rack.database()) for _ in range(2)]
        run(links[0], "CREATE DATABASE shop")
        run(links[0], "CREATE TABLE shop.queue (id INT PRIMARY KEY, job VARCHAR(200))")

        def is_added(number):
            """Whether there was room: what is gone is collected by and by."""
            rows = ",".join(f"({row}, '{'x' * 100}')" for row in range(number * 300, number * 300 + 300))
            try:
                insist(links[number % 2], f"INSERT INTO shop.queue VALUES {rows}")
            except pymysql.err.OperationalError as error:
                if error.args[0] == 1021:
                    return False
                raise
            return True

        # More than memory has room for, twice.
        for number in range(200):
            wait_for(f"room for rows, turn {number}", lambda number=number: is_added(number))
            insist(links[(number + 1) % 2], f"DELETE FROM shop.queue WHERE id < {number * 300}")
        expect(run(links[0], "SELECT COUNT(*), MIN(id) FROM shop.queue"), ((300, 199 * 300),))


@check
def who_has_the_places_of_a_killed_server_has_its_room():
    with Rack(servers=1, flags={"--places": PLACES}) as rack:
        given = lambda: rack.memory[0].numbers()["manxdb_memory_given_bytes"]
        taken = lambda: rack.memory[0].numbers()["manxdb_memory_places_taken"]
        server = OnMemory(rack.directory, clients=CLIENTS)
        rack.databases.append(server)
        before = given()
        for number in range(KILLED):
            server.start()
            link = connect(server)
            # What is counted is what these statements take, not when the server finds time for statistics.
            run(link, "SET GLOBAL innodb_stats_auto_recalc = OFF")
            run(link, "CREATE DATABASE IF NOT EXISTS test")
            run(link, "CREATE TABLE IF NOT EXISTS test.note (id INT AUTO_INCREMENT PRIMARY KEY)")
            # Clients take turns, so each of them adds some.
            for _ in range(4 * CLIENTS):
                run(link, "INSERT INTO test.note () VALUES ()")
            if number == 0:
                first = given() - before
            wait_for("the places of the one before are free", lambda: taken() == CLIENTS)
            server.kill()
        # Who finds nothing takes as much each time. A portion is lost with each client, a quarter of that.
        times = (given() - before) / first
        print(f"    {times:.1f} times what one server took, for {KILLED} servers")
        if not times <= KILLED / 2:
            raise AssertionError(f"{times} times what one server took, for {KILLED} servers")
        server.start()
        rows = run(connect(server), "SELECT COUNT(*), COUNT(DISTINCT id) FROM test.note")
        expect(rows, ((4 * CLIENTS * KILLED,) * 2,))
