"""Memory servers that are reached as from other machines: through libfabric over TCP."""

import socket
import time

from common import ACCOUNTS, check_books, connect, contains, go_on, insist, open_bank, run, start_tellers
from harness.checks import check, expect
from harness.memory import Memory, OnMemory, Rack, addresses
from harness.pool import PATIENCE, wait_for
from harness.servers import free_port

# Long beside what a busy machine makes a process wait: all servers look for work without rest.
LEASE_SECONDS = 6.0
FLAGS = {"--replicas": 3, "--size-mb": 256, "--lease-ms": int(LEASE_SECONDS * 1000)}


@check
def over_tcp_a_memory_server_and_a_database_server_are_killed_and_nothing_is_lost():
    with Rack(servers=4, flags=FLAGS, listens=True) as rack:
        servers = [rack.database(), rack.database()]
        open_bank(servers[0])
        tellers = start_tellers(servers, 0)
        go_on(tellers, 5)
        rack.memory[1].end()
        struck = time.monotonic()
        go_on(tellers, 1)
        print(f"    a memory server is lost: all tellers go on after {time.monotonic() - struck:.2f} s; "
              f"a lease is {LEASE_SECONDS} s", flush=True)
        wait_for("the loss is known", lambda: all(
            server.numbers()["manxdb_memory_lost_servers"] == 1 for server in servers))
        servers[0].is_struck = True
        servers[0].process.kill()
        struck = time.monotonic()
        link = connect(servers[1], "bank")
        for number in range(ACCOUNTS):  # whatever it had locked
            insist(link, f"UPDATE account SET balance = balance WHERE id = {number}")
        print(f"    a database server is killed: its rows are free after {time.monotonic() - struck:.2f} s",
              flush=True)
        go_on(tellers[2:], 1)
        for teller in tellers:
            teller.ended.set()
        for teller in tellers[2:]:
            teller.join(PATIENCE)
            if teller.problem:
                raise AssertionError(f"worker {teller.number}: {teller.problem!r}")
        check_books(link, tellers)
        wait_for("the dead one is shut out",
                 lambda: rack.memory[0].numbers()["manxdb_memory_shut_out_total"] >= 4)
        servers[0].process.wait(PATIENCE)
        servers[0].start()
        check_books(connect(servers[0], "bank"), tellers)
        for server in servers:
            expect(server.stop(), 0, server.log_tail())


@check
def what_cannot_be_across_machines_is_refused_by_name():
    with Rack(flags={"--size-mb": 64}, listens=True) as rack:
        directory = rack.directory
        for flags, words in [
                ({"--provider": "nosuch"}, "libfabric has no provider 'nosuch' here"),
                ({"--listen": "10.1.2.3:7000"}, "can be reached from elsewhere: give token_file"),
                ({"--listen": "0.0.0.0:7000"}, "by which others reach it"),
                ({"--disk": directory}, "cannot be written to disk yet"),
                ({"--token-file": "/no/such"}, "cannot read /no/such"),
                ({"--listen": rack.at.rpartition(",")[2]}, "ddress already in use")]:
            contains(Memory(directory, 0, 2, flags, free_port()).refused(), words)
        server = rack.database()
        run(connect(server), "CREATE DATABASE shop")
        one, two = (int(address.rpartition(":")[2]) for address in rack.at.split(","))
        # Bound, so that no other process listens there, and not listening.
        nobody = socket.socket()
        nobody.bind(("127.0.0.1", 0))
        for at, words in [
                (addresses(one), "memory server 1 has none"),
                (addresses(two, one), "is said to be of memory server 0, but memory server 1 answers"),
                (addresses(one, two, two), "memory has 3 addresses, but there are 2 memory servers"),
                (addresses(one, nobody.getsockname()[1]), "refused"),
                (addresses(server.port, two), "is no memory server or client of this release"),
                ("tcp://127.0.0.1", "each must be HOST:PORT"),
                ("tcp://no.such.machine.invalid:7000", "cannot find the memory server no.such.machine")]:
            other = OnMemory(directory, at=at)
            contains(other.refused(), words)
            other.close()
        nobody.close()
        other = OnMemory(directory, at=rack.at)
        other.extra += ["--memory-provider", "shm"]
        contains(other.refused(), "the provider is 'tcp;ofi_rxm' here and 'shm' there")
        other.close()
        for words in (b"GET / HTTP/1.1\r\n\r\n", b"MANXOFI\x02" + b"\xff" * 300, b""):
            with socket.create_connection(("127.0.0.1", one), timeout=PATIENCE) as stranger:
                try:
                    stranger.sendall(words)
                    stranger.shutdown(socket.SHUT_WR)
                    said = stranger.recv(100)
                except OSError:
                    said = b""  # it has ended before it was asked to
                expect(said, b"", str(words))
        expect(run(connect(server), "SHOW DATABASES LIKE 'shop'"), (("shop",),))


@check
def memory_servers_across_machines_ask_for_a_token():
    with Rack(flags={"--size-mb": 64}, listens=True) as rack:
        for name, token in [("ours", "between us\n"), ("theirs", "a guess\n")]:
            with open(f"{rack.directory}/{name}", "w", encoding="utf-8") as file:
                file.write(token)
        for memory in rack.memory:
            memory.end()
            memory.command += ["--token-file", f"{rack.directory}/ours"]
            memory.start()
        for flags in ([], ["--memory-token-file", f"{rack.directory}/theirs"]):
            other = OnMemory(rack.directory, at=rack.at)
            other.extra += flags
            contains(other.refused(), "its token is another one than the server's")
            other.close()
        server = OnMemory(rack.directory, at=rack.at)
        server.extra += ["--memory-token-file", f"{rack.directory}/ours"]
        rack.databases.append(server)
        server.start()
        run(connect(server), "CREATE DATABASE shop")
