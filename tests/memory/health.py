"""What /readyz and /healthz say when memory servers are lost: one line with what is lost, and what to do."""

import threading

from common import connect, contains, run
from harness.checks import check, expect
from harness.memory import Rack
from harness.pool import wait_for

# Beside the first try to reach a lost server, one that a session makes.
SELECTS = 2


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


def try_to_read(server):
    """A statement that may take long; it goes on without whoever asked."""
    def ask():
        try:
            run(connect(server), "SELECT * FROM shop.item")
        except Exception as error:  # it fails, or the server is ended under it
            print(f"    {error}", flush=True)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread


@check
def the_loss_of_too_many_memory_servers_is_told_while_statements_wait():
    with Rack(servers=4, flags={"--replicas": 3}) as rack:
        server = with_rows(rack)
        # At once: of two that are lost one after the other nothing is lost.
        for memory in rack.memory[:2]:
            memory.process.kill()
        for memory in rack.memory[:2]:
            memory.end()
        waiting = [try_to_read(server) for _ in range(SELECTS)]
        line = await_line(server, 503, "statements are not served", "memory servers 0 and 1 of 4 are lost")
        contains(line, "end all memory servers")
        still = [thread for thread in waiting if thread.is_alive()]
        print(f"    {len(still)} of {SELECTS} statements still waited when it was told", flush=True)
        # It is told before the first statement has failed: that is what the page is for.
        if not still:
            raise AssertionError("the page knew it no sooner than the statements")


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
