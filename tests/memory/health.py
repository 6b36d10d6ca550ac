"""What /readyz and /healthz say when memory servers are lost: one line with what is lost, and what to do."""

import threading
import time

from common import connect, contains, run
from harness.checks import check, error_number, expect, expect_error
from harness.memory import Rack
from harness.pool import PATIENCE, wait_for

# As many as the server has clients in its memory, and more that wait for one of these.
SELECTS = 6
# Longer than elsewhere: who waits for losses to be made up for waits for eight leases.
LONG_LEASE_SECONDS = 5


def with_rows(rack):
    """A server with a row."""
    server = rack.database()
    link = connect(server)
    run(link, "CREATE DATABASE shop")
    run(link, "CREATE TABLE shop.item (id INT PRIMARY KEY)")
    run(link, "INSERT INTO shop.item VALUES (1)")
    expect(server.ready(), (200, "ready"))
    return server


def await_line(server, status, *words):
    """Until /readyz has this status and all of these words; its line."""
    def holds():
        found, line = server.ready()
        return found == status and all(word in line for word in words)

    wait_for(f"/readyz says {status} {words}, not {server.ready()}", holds)
    line = server.ready()[1]
    expect(line.count("\n"), 0, line)
    return line


class Reader(threading.Thread):
    """A statement that only reads, and what comes of it."""

    def __init__(self, link):
        super().__init__(daemon=True)
        self.link, self.error, self.seconds = link, None, None
        self.start()

    def run(self):
        began = time.monotonic()
        try:
            run(self.link, "SELECT * FROM shop.item")
        except Exception as error:  # whichever it is, it is looked at
            self.error = error
        self.seconds = time.monotonic() - began


@check
def the_loss_of_too_many_memory_servers_is_told_and_statements_are_refused_by_it():
    with Rack(servers=4, flags={"--replicas": 3, "--lease-ms": LONG_LEASE_SECONDS * 1000}) as rack:
        server = with_rows(rack)
        links = [connect(server, "shop") for _ in range(SELECTS)]
        writer = connect(server, "shop")
        run(writer, "BEGIN")
        run(writer, "INSERT INTO item VALUES (2)")
        # At once: of two that are lost one after the other nothing is lost.
        for memory in rack.memory[:2]:
            memory.process.kill()
        for memory in rack.memory[:2]:
            memory.end()
        waiting = [Reader(link) for link in links]
        line = await_line(server, 503, "statements are not served", "memory servers 0 and 1 of 4 are lost")
        contains(line, "end all memory servers")
        still = [thread for thread in waiting if thread.is_alive()]
        print(f"    {len(still)} of {SELECTS} statements still waited when it was told", flush=True)
        # It is told before the first statement has failed: that is what the page is for.
        if not still:
            raise AssertionError("the page knew it no sooner than the statements")
        for reader in waiting:
            reader.join(PATIENCE)
        longest = max(reader.seconds for reader in waiting)
        print(f"    statements were refused after {longest:.1f} s; a lease is {LONG_LEASE_SECONDS} s", flush=True)
        if longest > 5 * LONG_LEASE_SECONDS:
            raise AssertionError(f"a statement waited for {longest:.1f} s")
        # They say what is lost, and not that they may have written.
        lost = "memory servers 0 and 1 of 4 are lost"
        for error in [*(reader.error for reader in waiting), expect_error(1030, run, links[0], "SELECT 1 FROM item")]:
            expect(error_number(error), 1030, str(error))
            contains(str(error), lost)
        for sql in ("INSERT INTO item VALUES (3)", "CREATE TABLE other (id INT)"):
            contains(str(expect_error(1030, run, links[1], sql)), lost)
        contains(str(expect_error(1030, run, writer, "COMMIT")), lost)
        began = time.monotonic()
        expect(server.stop(), 0, server.log_tail())
        print(f"    the server ended after {time.monotonic() - began:.1f} s", flush=True)


@check
def one_lost_server_of_several_with_replicas_is_told_and_rows_are_served():
    with Rack(servers=4, flags={"--replicas": 3}) as rack:
        server = with_rows(rack)
        rack.memory[3].end()
        await_line(server, 200, "degraded: memory server 3 of 4 is lost", "served by the other 3", "1 more may be lost")
        expect(run(connect(server), "SELECT id FROM shop.item"), ((1,),))
        # One that is started anew stays empty: the page goes on to say that it is lost.
        rack.memory[3].start()
        await_line(server, 200, "memory server 3 of 4 is lost")


@check
def without_replicas_the_loss_of_one_server_is_that_of_all_rows():
    with Rack() as rack:
        server = with_rows(rack)
        rack.memory[1].end()
        await_line(server, 503, "memory server 1 of 2 is lost, and rows have no replicas", "load a dump")
