"""Rude clients: each check ends with a polite client that must be served as if nothing was."""

import os
import random
import resource
import socket
import struct
import threading

import pymysql

from harness.checks import DATABASE, HOST, PASSWORD, PORT, USER, check, expect, expect_error, main

IDLE_CONNECTIONS = 5000


def connect(**options):
    """A polite client."""
    return pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, autocommit=True, **options)


def others_are_served():
    """A fresh connection writes and reads."""
    link = connect()
    cursor = link.cursor()
    cursor.execute(f"CREATE DATABASE IF NOT EXISTS {DATABASE}")
    cursor.execute(f"CREATE TABLE IF NOT EXISTS {DATABASE}.served (id INT AUTO_INCREMENT PRIMARY KEY)")
    cursor.execute(f"INSERT INTO {DATABASE}.served VALUES ()")
    cursor.execute("SELECT 1 + 1")
    expect(cursor.fetchall(), ((2,),))
    link.close()


def packet(payload, sequence=0):
    """A MySQL packet."""
    return struct.pack("<I", len(payload))[:3] + bytes([sequence]) + payload


def end_writing(link):
    """Half-closes; the server may have closed already."""
    try:
        link.shutdown(socket.SHUT_WR)
    except OSError:
        pass


def until_closed(link):
    """Reads until the server closes; the number of bytes."""
    total = 0
    link.settimeout(30)
    try:
        while data := link.recv(65536):
            total += len(data)
    except ConnectionError:
        pass
    return total


@check
def garbage_instead_of_a_login():
    source = random.Random(7)
    for _ in range(60):
        with socket.create_connection((HOST, PORT)) as link:
            link.recv(1024)
            try:
                link.sendall(source.randbytes(source.randint(1, 300)))
            except ConnectionError:
                continue
            end_writing(link)
            until_closed(link)
    others_are_served()


@check
def mutated_logins():
    """Bits flipped in a real login packet."""
    source = random.Random(8)
    login = (struct.pack("<IIB", 0x000FA68D, 1 << 24, 45) + bytes(23) + b"root\0" + bytes([20]) + bytes(20)
             + b"mysql\0" + b"caching_sha2_password\0")
    for _ in range(150):
        broken = bytearray(packet(login, 1))
        for _ in range(source.randint(1, 8)):
            broken[source.randrange(len(broken))] = source.randrange(256)
        with socket.create_connection((HOST, PORT)) as link:
            link.recv(1024)
            link.sendall(bytes(broken))
            end_writing(link)
            until_closed(link)
    others_are_served()


@check
def random_commands_after_a_login():
    """Every command byte with a random body, on real sessions."""
    source = random.Random(9)
    for command in list(range(0x20)) + [0xFE, 0xFF]:
        if command == 0x08:  # COM_SHUTDOWN may mean what it says
            continue
        for _ in range(3):
            link = connect()
            raw = link._sock
            raw.sendall(packet(bytes([command]) + source.randbytes(source.randint(0, 60))))
            end_writing(raw)
            until_closed(raw)
            raw.close()
    others_are_served()


@check
def random_executes_of_a_real_statement():
    """COM_STMT_EXECUTE with broken null bitmaps, types and lengths."""
    source = random.Random(10)
    for _ in range(150):
        link = connect()
        raw = link._sock
        raw.sendall(packet(b"\x16SELECT ?, ?, ?"))
        raw.recv(4096)
        body = struct.pack("<BIBI", 0x17, 1, 0, 1) + source.randbytes(source.randint(0, 40))
        raw.sendall(packet(body))
        end_writing(raw)
        until_closed(raw)
        raw.close()
    others_are_served()


@check
def text_that_is_not_sql():
    """Random bytes and deep nesting as queries: an error each, the session lives."""
    source = random.Random(11)
    link = connect()
    texts = [source.randbytes(source.randint(1, 200)) for _ in range(200)]
    texts += [b"SELECT " + b"(" * 20000 + b"1" + b")" * 20000, b"SELECT " + b"NOT " * 30000 + b"1",
              b"SELECT 1" + b" + 1" * 30000, b"SELECT " + b"-" * 60000 + b"1", b"SELECT '" + b"x" * 100000,
              b"SELECT 1 WHERE " + b" OR ".join([b"1 = 2"] * 20000), b"SELECT * FROM " + b"(SELECT * FROM " * 3000]
    for text in texts:
        try:
            with link.cursor() as cursor:
                link.query(text)
                cursor.fetchall()
        except pymysql.err.MySQLError as error:
            number = error.args[0] if error.args else 0
            assert number not in (0, 2006, 2013), f"the session died of {text[:60]!r}: {error}"
    others_are_served()


@check
def a_client_that_never_reads():
    """It asks for a large result and does not take it; others go on, and it can be killed."""
    rude = connect()
    identity = rude.thread_id()
    rude._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    rude._sock.sendall(packet(b"\x03SELECT REPEAT('x', 60000000)"))
    others_are_served()
    connect().cursor().execute(f"KILL {identity}")
    others_are_served()


@check
def a_packet_of_64_megabytes():
    """A query just under max_allowed_packet works; one over it is refused, others go on."""
    link = connect(max_allowed_packet=200 * 1024 * 1024)
    cursor = link.cursor()
    cursor.execute("SELECT LENGTH('" + "x" * (64 * 1024 * 1024 - 1000) + "')")
    expect(cursor.fetchall(), ((64 * 1024 * 1024 - 1000,),))
    expect_error((1153, 2006, 2013, 0), cursor.execute, "SELECT LENGTH('" + "x" * (70 * 1024 * 1024) + "')")
    others_are_served()


@check
def a_login_that_never_comes():
    """Half-open logins hold nothing that others need."""
    links = [socket.create_connection((HOST, PORT)) for _ in range(200)]
    others_are_served()
    for link in links:
        link.close()


@check
def idle_connections():
    """Thousands of them; the server's limit is raised, and others are served meanwhile."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = IDLE_CONNECTIONS + 500
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    admin = connect()
    admin.cursor().execute(f"SET GLOBAL max_connections = {IDLE_CONNECTIONS + 100}")
    links, problems = [], []
    lock = threading.Lock()

    def open_some(count):
        try:
            for _ in range(count):
                link = connect()
                with lock:
                    links.append(link)
        except Exception as error:  # the count below tells
            problems.append(error)

    threads = [threading.Thread(target=open_some, args=(IDLE_CONNECTIONS // 20,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        assert len(links) == IDLE_CONNECTIONS, f"{len(links)} connections: {problems[:1]}"
        others_are_served()
        for link in links[::100]:
            link.ping(reconnect=False)
    finally:
        for link in links:
            link._force_close()
    others_are_served()


@check
def too_many_connections_is_1040():
    admin = connect()
    admin.cursor().execute("SET GLOBAL max_connections = 10")
    links = []
    try:
        expect_error(1040, lambda: [links.append(connect()) for _ in range(20)])
    finally:
        for link in links:
            link.close()
        admin.cursor().execute("SET GLOBAL max_connections = 500")
    others_are_served()


if __name__ == "__main__":
    main()
