"""Rude clients: each check ends with a polite client that must be served as if nothing was."""

import os
import random
import resource
import socket
import struct
import threading
import time

import pymysql

from harness.checks import DATABASE, HOST, PASSWORD, PORT, USER, check, expect, expect_error, main

IDLE_CONNECTIONS = 5000


def connect(**options):
    """A polite client; without TLS, so that its socket takes bytes as they are."""
    return pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, autocommit=True,
                           ssl_disabled=True, **options)


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


def greeted(**options):
    """A raw connection that has read the greeting."""
    link = socket.create_connection((HOST, PORT), **options)
    link.settimeout(30)
    assert read_packet(link)[0] == 10, "no greeting"
    return link


def read_exactly(link, count):
    """So many bytes, or an end."""
    data = b""
    while len(data) < count:
        piece = link.recv(count - len(data))
        if not piece:
            raise ConnectionError("closed")
        data += piece
    return data


def read_packet(link):
    """The payload of one packet."""
    header = read_exactly(link, 4)
    return read_exactly(link, int.from_bytes(header[:3], "little"))


def error_of(payload):
    """The number an ERR packet carries."""
    assert payload[0] == 0xFF, f"no error: {payload[:40]!r}"
    return int.from_bytes(payload[1:3], "little")


class Patience:
    """A server that waits less, for the time of a check."""

    def __init__(self, **seconds):
        self.seconds = seconds

    def __enter__(self):
        self.admin = connect()
        with self.admin.cursor() as cursor:
            self.before = {}
            for name, seconds in self.seconds.items():
                cursor.execute(f"SELECT @@global.{name}")
                self.before[name] = cursor.fetchone()[0]
                cursor.execute(f"SET GLOBAL {name} = {seconds}")

    def __exit__(self, *_):
        with self.admin.cursor() as cursor:
            for name, seconds in self.before.items():
                cursor.execute(f"SET GLOBAL {name} = {seconds}")
        self.admin.close()


@check
def a_client_that_connects_and_says_nothing_is_closed():
    """Also one that stops inside its login, and one that stops inside a TLS handshake."""
    with Patience(connect_timeout=2):
        silent, halfway, in_tls = greeted(), greeted(), greeted()
        halfway.sendall(packet(b"x" * 100, 1)[:50])
        in_tls.sendall(packet(struct.pack("<IIB", 0x000FAE8D, 1 << 24, 45) + bytes(23), 1))
        in_tls.sendall(b"\x16\x03\x01\x40\x00")
        others_are_served()
        for link in (silent, halfway, in_tls):
            until_closed(link)  # fails by its own time-out when the server never closes
            link.close()
    others_are_served()


@check
def a_tls_handshake_sent_byte_by_byte_does_not_stretch_the_login():
    with Patience(connect_timeout=2):
        link = greeted()
        link.sendall(packet(struct.pack("<IIB", 0x000FAE8D, 1 << 24, 45) + bytes(23), 1))
        link.sendall(b"\x16\x03\x01\x40\x00")
        link.settimeout(0.02)
        for _ in range(1500):
            try:
                link.sendall(b"\x01")
                if not link.recv(100):
                    break
            except TimeoutError:
                continue
            except ConnectionError:
                break
        else:
            raise AssertionError("still listened to after ten times the deadline")
        link.close()
    others_are_served()


@check
def a_command_that_stops_halfway():
    """The rest is waited for by net_read_timeout, others are not kept waiting."""
    with Patience(net_read_timeout=1):
        link = connect()
        link._sock.sendall(packet(b"\x03SELECT 1 + 1")[:9])
        others_are_served()
        expect(error_of(read_packet(link._sock)), 1159)
        until_closed(link._sock)
        link._force_close()


@check
def half_open_connections():
    """Clients that vanish without a word: reset, or closed in the middle of a result."""
    for ending in ("reset", "close"):
        for _ in range(50):
            link = connect()
            link._sock.sendall(packet(b"\x03SELECT REPEAT('x', 3000000)"))
            if ending == "reset":
                link._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link._force_close()
    others_are_served()
    admin = connect()
    with admin.cursor() as cursor:
        # Each leaves when it next meets its socket; asking is what gives it time.
        for _ in range(2000):
            cursor.execute("SELECT COUNT(*) FROM information_schema.processlist")
            if cursor.fetchone()[0] <= 1:
                return
    raise AssertionError("sessions of vanished clients stay")


@check
def packets_byte_by_byte():
    """A login and commands of which every byte comes alone."""
    link = greeted()
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    login = struct.pack("<IIB", 0x000FA68D & ~0x8, 1 << 24, 45) + bytes(23) + b"nobody\0\0mysql_native_password\0"
    for byte in packet(login, 1):
        link.sendall(bytes([byte]))
    switch = read_packet(link)
    expect(switch[0], 0xFE, "an unknown user is asked as any other")
    link.sendall(packet(b"", 3))
    expect(error_of(read_packet(link)), 1045)
    link = connect()
    link._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in packet(b"\x03SELECT 'split', 1 + 1"):
        link._sock.sendall(bytes([byte]))
    link._next_seq_id = 1
    link._read_query_result()
    expect(link._result.rows, (("split", 2),))
    link.close()


@check
def wrong_sequence_numbers():
    for sequence in (1, 2, 128, 255):
        link = connect()
        link._sock.sendall(packet(b"\x0e", sequence))
        expect(error_of(read_packet(link._sock)), 1156)
        until_closed(link._sock)
        link._force_close()
    # The second part of a long packet counts on.
    link = connect()
    link._sock.sendall(b"\xff\xff\xff\x00" + b"\x03" + b" " * 0xFFFFFE + packet(b"SELECT 1", 7))
    expect(error_of(read_packet(link._sock)), 1156)
    until_closed(link._sock)
    others_are_served()


@check
def truncated_bodies_of_every_command():
    """Each command cut after every byte: an answer or an orderly end, never silence."""
    whole = {
        0x02: b"manx_test", 0x04: b"t\0", 0x0C: struct.pack("<I", 1 << 31), 0x11: b"root\0\x03abcdb\0\x2d\0mysql_native_password\0",
        0x16: b"SELECT ?", 0x17: struct.pack("<IBI", 1, 0, 1) + b"\0\x01\xfd\0\x01x", 0x19: struct.pack("<I", 99),
        0x18: struct.pack("<IH", 1, 0) + b"x", 0x1A: struct.pack("<I", 99), 0x1B: b"\0\0", 0x1C: struct.pack("<II", 99, 1)}
    for command, body in whole.items():
        for length in range(len(body) + 1):
            link = connect()
            link._sock.settimeout(30)
            link._sock.sendall(packet(b"\x16SELECT ?"))
            link._sock.recv(4096)
            link._sock.sendall(packet(bytes([command]) + body[:length]) + packet(b"\x0e"))
            end_writing(link._sock)
            assert until_closed(link._sock) > 0, f"no word about command {command} cut to {length} bytes"
            link._force_close()
    others_are_served()


@check
def statements_that_do_not_exist():
    link = connect()
    for command, rest in ((0x17, b"\0\x01\0\0\0"), (0x1A, b""), (0x1C, b"\x01\0\0\0")):
        for identity in (0, 1, 7, 0xFFFFFFFF):
            link._sock.sendall(packet(bytes([command]) + struct.pack("<I", identity) + rest))
            expect(error_of(read_packet(link._sock)), 1243)
    # These two have no answer, whatever they name.
    link._sock.sendall(packet(b"\x19" + struct.pack("<I", 77)) + packet(b"\x18" + struct.pack("<IH", 77, 3) + b"data"))
    link.ping(reconnect=False)
    link.close()


@check
def more_prepared_statements_than_the_server_keeps():
    with Patience(max_prepared_stmt_count=300):
        one, two = connect(), connect()
        for link in (one, two):
            for number in range(150):
                link._sock.sendall(packet(f"\x16SELECT {number}".encode()))
                expect(read_packet(link._sock)[0], 0)
                read_packet(link._sock)  # its one column
                read_packet(link._sock)
        one._sock.sendall(packet(b"\x16SELECT 300"))
        expect(error_of(read_packet(one._sock)), 1461)
        two.close()
        # The end of a session gives its places back; it may take a moment to end.
        for _ in range(2000):
            one._sock.sendall(packet(b"\x16SELECT 300"))
            if read_packet(one._sock)[0] == 0:
                break
        else:
            raise AssertionError("the places of a closed session stay taken")
        one._force_close()
    others_are_served()


@check
def tls_that_is_none():
    """Records of every kind and length in place of a handshake."""
    source = random.Random(12)
    for _ in range(60):
        link = greeted()
        link.sendall(packet(struct.pack("<IIB", 0x000FAE8D, 1 << 24, 45) + bytes(23), 1))
        kind = source.choice((0x14, 0x15, 0x16, 0x17, source.randrange(256)))
        body = source.randbytes(source.randint(0, 200))
        length = source.choice((len(body), 0, 0xFFFF))
        link.sendall(bytes([kind, 3, source.randrange(5)]) + struct.pack(">H", length) + body)
        end_writing(link)
        until_closed(link)
        link.close()
    others_are_served()


@check
def passwords_that_are_no_ciphertext():
    """In the exchange that takes a password without TLS."""
    source = random.Random(13)
    for length in (0, 1, 2, 20, 255, 256, 257, 5000):
        link = greeted()
        login = struct.pack("<IIB", 0x000FA68D & ~0x8, 1 << 24, 45) + bytes(23) + b"root\0\x20" + bytes(32) + b"caching_sha2_password\0"
        link.sendall(packet(login, 1))
        expect(read_packet(link), b"\x01\x04")
        link.sendall(packet(source.randbytes(length), 3))
        answer = read_packet(link)
        expect(error_of(answer), 1045)
        until_closed(link)
        link.close()
    others_are_served()


@check
def a_flood_above_the_limit_is_told_1040():
    """Connections come faster than they can be served; those that have one keep it."""
    served = connect()
    with Patience(max_connections=50):
        links, told = [], 0
        for _ in range(400):
            link = socket.create_connection((HOST, PORT))
            link.settimeout(30)
            links.append(link)
        for link in links:
            payload = read_packet(link)
            if payload[0] == 0xFF:
                expect(error_of(payload), 1040)
                told += 1
        assert told >= 350, f"only {told} of 400 were told"
        with served.cursor() as cursor:
            cursor.execute("SELECT 1 + 1")
            expect(cursor.fetchone(), (2,))
        for link in links:
            link.close()
    served.close()
    others_are_served()


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


def wait_until_alone(admin):
    """Until the server has noticed that all other clients are gone: thousands take it a while."""
    for _ in range(600):
        cursor = admin.cursor()
        cursor.execute("SELECT COUNT(*) FROM information_schema.PROCESSLIST")
        if cursor.fetchone() == (1,):
            return
        time.sleep(0.1)
    raise AssertionError("connections whose clients are gone are still there")


@check
def too_many_connections_is_1040():
    admin = connect()
    wait_until_alone(admin)
    admin.cursor().execute("SET GLOBAL max_connections = 10")
    links = []
    try:
        expect_error(1040, lambda: [links.append(connect()) for _ in range(20)])
    finally:
        for link in links:
            link.close()
        wait_until_alone(admin)
        admin.cursor().execute("SET GLOBAL max_connections = 500")
    assert len(links) == 9, f"{len(links)} connections beside one of ten"
    others_are_served()


if __name__ == "__main__":
    main()
