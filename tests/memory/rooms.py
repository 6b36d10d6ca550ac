"""Memory that is given away, and what becomes of it when servers are killed that have not used it."""

from common import connect, run
from harness.checks import check
from harness.memory import OnMemory, Rack
from harness.pool import wait_for

CLIENTS = 4
# Twice as many: a server may be started again before the places of the dead are free.
PLACES = 2 * CLIENTS
KILLED = 10


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
            run(link, "CREATE TABLE IF NOT EXISTS test.note (id INT AUTO_INCREMENT PRIMARY KEY)"
                if number else "CREATE DATABASE test")
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
        if rows != ((4 * CLIENTS * KILLED,) * 2,):
            raise AssertionError(rows)
