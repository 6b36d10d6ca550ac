"""Faults of the disk under Redis clients: keys whose content follows from their number, and which of them
the server acknowledged."""

import os
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "redis"))

from resp import Link, ReplyError, info

PASSWORD = "secret"
# How the error of a write ends that met the full disk itself; its connection ends then.
NOT_KNOWN = "whether this write is kept is not known"


class Keys:
    """Keys written through one connection, and what was acknowledged."""

    def __init__(self, server, content, length):
        self.server, self.content, self.length = server, content, length
        self.acknowledged, self.unsure, self.link = set(), set(), None
        self.connect()

    def connect(self):
        """A fresh connection."""
        self.link = Link(self.server.redis_port, timeout=60)
        reply = self.link.call("AUTH", PASSWORD)
        assert reply == "OK", reply

    def write(self, number):
        """One key, every third one as the field of a hash; the error if it was refused. Nobody knows of one whose connection
        ended."""
        value = self.content(number, self.length)
        words = ("HSET", f"key{number}", "field", value) if number % 3 == 0 else ("SET", f"key{number}", value)
        try:
            reply = self.link.call(*words)
        except (EOFError, OSError):
            self.unsure.add(number)
            self.connect()
            return "the connection ended"
        if isinstance(reply, ReplyError):
            if reply.endswith(NOT_KNOWN):
                self.unsure.add(number)
                self.connect()
            return reply
        self.acknowledged.add(number)
        return None

    def read(self, number):
        """What is there."""
        name = f"key{number}"
        return self.link.call("HGET", name, "field") if number % 3 == 0 else self.link.call("GET", name)

    def numbers(self):
        """Counts that INFO tells."""
        return {name: int(value) for name, value in info(self.link).items() if value.isdigit()}

    def check(self, is_complete=True):
        """Every acknowledged key is there and whole, and no other that was refused."""
        for number in self.acknowledged:
            found = self.read(number)
            assert found == self.content(number, self.length), f"key {number} is {found!r:.80}"
        if is_complete:
            names = {int(name[3:]) for name in self.link.call("KEYS", "key*")}
            extra = names - self.acknowledged - self.unsure
            assert not extra, f"keys that were refused are there: {sorted(extra)[:3]}"
            assert self.acknowledged <= names, "KEYS does not tell all"


def until_refused(disk, keys, first):
    """Writes until writes are refused for want of space, and only for that; the next number."""
    disk.fill(2 << 20)
    number, refused = first, 0
    while refused < 5:
        error = keys.write(number)
        number += 1
        if error is None:
            refused = 0
            continue
        refused += 1
        assert error.startswith("MISCONF") and "o space left" in error, error
        disk.fill()
        assert number < first + 20_000, "the disk never got full"
    return number


# Milliseconds between the times at which keys of `expiring` expire.
EXPIRY_STEP_MILLIS = 50


def expiring(keys):
    """Keys that expire one after the other during two minutes; their names."""
    names = [f"expiring{number}" for number in range(120_000 // EXPIRY_STEP_MILLIS)]
    for number, name in enumerate(names, 1):
        keys.link.send("SET", name, "x", "PX", EXPIRY_STEP_MILLIS * number)
    assert {keys.link.read() for _ in names} == {"OK"}
    return names


def check_reads(keys, names):
    """Reads that find an expired key, and waits that end, are answered with nothing: what the server removes meanwhile need
    not be in the log for that."""
    gone, deadline = [], time.monotonic() + 3
    while time.monotonic() < deadline or len(gone) < 2:
        for name in names:
            keys.link.send("GET", name)
        found = [keys.link.read() for _ in names]
        wrong = [reply for reply in found if reply not in (b"x", None)]
        assert not wrong, f"a read is answered with {wrong[0]!r}"
        gone.append(found.count(None))
        reply = keys.link.call("XREAD", "BLOCK", 10, "STREAMS", "nothing", 0)
        assert reply is None, f"a wait ends with {reply!r}"
    assert gone[0] < gone[-1], f"no key of {len(names)} expired meanwhile: {gone}"


def full(disk, server, content):
    """A full disk: writes are refused, reads are served, and writes go on when there is space."""
    keys = Keys(server, content, 50_000)
    # More than the 16 MiB of memory that the server has for values.
    assert all(keys.write(number) is None for number in range(400))
    names = expiring(keys)
    number = until_refused(disk, keys, 1_000)
    before = keys.numbers()
    keys.check()
    keys.check()
    after = keys.numbers()
    loaded, evicted = (after[name] - before[name] for name in ("values_loaded", "values_evicted"))
    assert loaded >= 200 and evicted >= 200, f"{loaded} values were read and {evicted} left memory while the disk was full"
    assert after["used_memory"] < 20 << 20, f"{after['used_memory']} bytes of memory are used"
    check_reads(keys, names)
    said = server.wait_page("/healthz", lambda page: "only to read" in page, "that writes are refused")
    assert "o space left" in said, said
    assert "manxdb_redis_writes_refused 1" in server.page("/metrics")
    disk.free()
    server.wait_page("/healthz", lambda page: page == "ok\n", "that writes are possible again")
    server.wait_page("/metrics", lambda page: "manxdb_redis_writes_refused 0" in page, "that Redis writes are")
    assert keys.write(number) is None
    keys.check()
    server.kill()
    server.start()
    keys.connect()
    keys.check()


def read_only(disk, server, content):
    """A disk that turns read-only: writes are refused until a restart, reads are served."""
    keys = Keys(server, content, 2_000)
    assert all(keys.write(number) is None for number in range(50))
    disk.fail()
    # Nobody knows about the write that met it.
    assert keys.write(50) is not None and 50 in keys.unsure
    for number in range(51, 54):
        error = keys.write(number)
        assert error.startswith("MISCONF"), error
    keys.check()
    said = server.wait_page("/healthz", lambda page: "only to read" in page, "that writes are refused")
    assert "Read-only file system" in said, said
    assert server.stop() == 0, "no orderly stop"
    disk.repair()
    server.start()
    keys.connect()
    keys.check()
    assert keys.write(60) is None


def damaged(server, content, damage, largest):
    """A damaged block: commands on keys in it say so, all others are served."""
    keys = Keys(server, content, 50_000)
    assert all(keys.write(number) is None for number in range(40))
    assert server.stop() == 0, "no orderly stop"
    server.start()
    keys.connect()
    assert all(keys.write(number) is None for number in range(40, 100))
    assert server.stop() == 0, "no orderly stop"
    table = largest(server.tables())
    damage(table, os.stat(table).st_size // 2)
    server.start()
    keys.connect()
    served, failed = 0, []
    for number in sorted(keys.acknowledged):
        found = keys.read(number)
        if isinstance(found, ReplyError):
            assert found.startswith("ERR a key of this command cannot be read") and table.name in found, found
            failed.append(number)
        else:
            assert found == content(number, 50_000), f"key {number} is {found!r:.80}"
            served += 1
    assert 1 <= len(failed) <= 20, f"{len(failed)} keys failed"
    # What has to know all names says so; a short answer would be a lie.
    for words in (("KEYS", "*"), ("DBSIZE",), ("SCAN", "0")):
        reply = keys.link.call(*words)
        assert isinstance(reply, ReplyError) and "names of keys cannot be read" in reply, f"{words}: {reply!r:.80}"
    assert keys.write(1_000) is None
    keys.acknowledged = {1_000}
    keys.check(is_complete=False)
