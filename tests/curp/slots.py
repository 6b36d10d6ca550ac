"""Slots that move between two clusters while clients write that know nothing of it, a driver and a master that die,
and a move that is cancelled."""

import os
import subprocess
import threading
import time

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from harness.checks import check, expect
from processes import BINARY, PATIENCE, free_ports
from redis_cluster import Cluster, near
from resp import Link, ReplyError

KEYS = 64
# A piece of a move has one of these.
LARGE = 12
MIB = 1 << 20

_pair = {}


def pair():
    """The cluster that all checks have, and one that owns nothing at first."""
    one = near()
    one.wait_whole()
    if "other" not in _pair:
        other = _pair["other"] = Cluster("--supervise")
        ran = other.run("give-up-slots", "0-16383", "--owner", str(one.data))
        expect(ran.returncode, 0, ran.stdout)
    return one, _pair["other"]


def move(source, target, slots):
    """Moves slots; what the command printed."""
    ran = source.run("move-slots", slots, "--to", str(target.data))
    expect(ran.returncode, 0, ran.stdout)
    return ran.stdout


def driver(source, target, slots):
    """A process that moves slots."""
    command = [BINARY, "cluster", "move-slots", slots, "--cluster", str(source.data), "--to", str(target.data)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def wait_given(cluster, key):
    """Until a cluster has given the slot of a key away: its servers say what it owns itself."""
    # A server's own port answers a read, or says after a minute that there is no master.
    asked = Link(cluster.port_of(1), timeout=2 * PATIENCE)
    deadline = time.monotonic() + PATIENCE
    while not str(answer := asked.call("GET", key)).startswith(("MOVED ", "TRYAGAIN ")):
        assert not isinstance(answer, ReplyError), answer
        assert time.monotonic() < deadline, "the source has not given the slots"


def unmodified(port):
    """An unmodified redis-py, which asks for nothing twice."""
    return redis.Redis(port=port, socket_timeout=2 * PATIENCE, retry=Retry(NoBackoff(), 0))


class Proxy:
    """A proxy that the cluster file does not list."""

    def __init__(self, cluster, *more):
        self.port = free_ports(1)
        self.process = subprocess.Popen([BINARY, "proxy", "--cluster", str(cluster.data), "--listen",
                                         f"127.0.0.1:{self.port}", *more], stderr=subprocess.DEVNULL)

    def __enter__(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return Link(self.port, timeout=2 * PATIENCE)
            except OSError:
                assert time.monotonic() < deadline and self.process.poll() is None, "the proxy does not serve"
                time.sleep(0.05)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=PATIENCE)


class Counting(threading.Thread):
    """Counts keys of its own up, several commands at a time, at a proxy; any other reply than the next number ends
    it."""

    def __init__(self, port, keys):
        super().__init__(daemon=True)
        self.client, self.keys = unmodified(port), keys
        self.counts = dict.fromkeys(keys, 0)
        self.stop, self.failed = threading.Event(), None

    def run(self):
        first = 0
        try:
            while not self.stop.is_set():
                names = [self.keys[(first + place) % len(self.keys)] for place in (0, 1, 2, 0)]
                commands = self.client.pipeline(transaction=False)
                for name in names:
                    commands.incr(name)
                answers = commands.execute()
                for name, answer in zip(names, answers, strict=True):
                    self.counts[name] += 1
                    expect(answer, self.counts[name], f"{name}, in the order of commands")
                first += 1
        except BaseException as error:  # told by the check's own thread
            self.failed = error

    def end(self):
        """Ends it; what it has counted."""
        self.stop.set()
        self.join(timeout=2 * PATIENCE)
        assert not self.is_alive(), "a command is never answered"
        assert self.failed is None, repr(self.failed)
        assert sum(self.counts.values()) > 0, "nobody counted"
        return self.counts


def followed(link):
    """How many commands of a proxy other clusters have executed."""
    lines = link.call("INFO", "curp").decode().split("\r\n")
    count, = [line.partition(":")[2] for line in lines if line.startswith("curp_followed:")]
    return int(count)


@check
def slots_move_to_another_cluster_and_back_while_clients_that_know_nothing_of_it_write():
    one, other = pair()
    link, there = one.proxy(timeout=2 * PATIENCE), other.proxy(timeout=2 * PATIENCE)
    link.call("FLUSHALL")
    before = followed(link)
    for number in range(KEYS):
        link.call("RPUSH", f"moving:list:{number}", "a", "b")
    link.call("SET", "foo", "bar", "EX", 1000)
    counting = [Counting(cluster.redis, [f"moving:{cluster.redis}:{number}" for number in range(KEYS // 2)])
                for cluster in (one, other)]
    for thread in counting:
        thread.start()
    # A driver that dies on its way is gone on with by another one, and so is a master.
    dies = driver(one, other, "8192-16383")
    wait_given(one, "foo")
    dies.kill()
    dies.wait(timeout=PATIENCE)
    expect(one.run("kill", "master").returncode, 0)
    move(one, other, "8192-16383")
    # Slot 12182, as CLUSTER KEYSLOT of Redis says.
    moved = f"MOVED 12182 127.0.0.1:{other.redis}"
    with Proxy(one, "--no-follow") as asked:
        assert moved in str(asked.call("GET", "foo")), "its clients follow by themselves"
    for proxy in (link, there):
        expect(proxy.call("GET", "foo"), b"bar")
        assert 0 < proxy.call("TTL", "foo") <= 1000
    ran = subprocess.run(["redis-cli", "-p", str(one.redis)], input="APPEND foo d\nMULTI\nGET foo\nTYPE foo\nEXEC\n",
                         text=True, check=True, capture_output=True, timeout=2 * PATIENCE)
    expect(ran.stdout.split(), ["4", "OK", "QUEUED", "QUEUED", "bard", "string"])
    # Slot 3300 stays: what needs both is refused, in a transaction too.
    for command in (["MSET", "foo", "1", "b", "2"], ["EXEC"]):
        if command == ["EXEC"]:
            for words in (["MULTI"], ["INCR", "b"], ["APPEND", "foo", "x"]):
                link.call(*words)
        assert str(link.call(*command)).startswith("CROSSSLOT "), command
    expect(link.call("GET", "b"), None, "nothing of it was done")
    shown = one.run("slots").stdout
    assert "0-8191: " in shown and f"8192-16383: 127.0.0.1:{other.redis}" in shown, shown
    ran = one.run("give-up-slots", "0-8191", "--owner", str(other.data))
    assert ran.returncode == 1 and "keys in these slots" in ran.stdout, ran.stdout
    move(one, other, "0-8191")
    expect(link.call("DBSIZE"), 0)
    move(other, one, "0-16383")
    for counts in [thread.end() for thread in counting]:
        for name, count in counts.items():
            expect(int(link.call("GET", name)), count, f"{name}: each INCR once")
    for number in range(KEYS):
        expect(link.call("LRANGE", f"moving:list:{number}", 0, -1), [b"a", b"b"])
    expect(there.call("DBSIZE"), 0)
    assert followed(link) > before and followed(there) > 0, "nobody was sent on"


@check
def a_move_whose_target_is_gone_is_cancelled_and_its_target_forgets_it():
    one, other = pair()
    link = one.proxy(timeout=2 * PATIENCE)
    link.call("FLUSHALL")
    for number in range(LARGE):
        expect(link.call("SET", f"large:{number}", os.urandom(MIB)), "OK")
    link.call("SET", "foo", "bar")
    counting = Counting(one.redis, [f"moving:{number}" for number in range(KEYS)])
    counting.start()
    cancel = ["cancel-move", "0-16383"]
    for _ in range(5):
        dies = driver(one, other, "0-16383")
        wait_given(one, "foo")
        dies.kill()
        dies.wait(timeout=PATIENCE)
        other.stop_in_order()
        ran = one.run(*cancel)
        if ran.returncode == 0:
            break
        # This process was so slow that the target had all pieces, or that the move was over.
        assert "too late" in ran.stdout or "does not own all of these slots" in ran.stdout, ran.stdout
        other.start()
        move(one, other, "0-16383")
        move(other, one, "0-16383")
    else:
        raise AssertionError("each move was over at once")
    assert "as before" in ran.stdout and "--to" in ran.stdout, ran.stdout
    # What was under way to the other cluster waits for it; what begins now is executed here.
    expect(link.call("APPEND", "foo", "d"), 4)
    other.start()
    ran = one.run(*cancel, "--to", str(other.data))
    expect(ran.returncode, 0, ran.stdout)
    assert "has nothing of them" in ran.stdout, ran.stdout
    expect(other.proxy().call("DBSIZE"), 0)
    ran = one.run(*cancel, "--to", str(other.data))
    assert ran.returncode == 0 and "no move of them is under way" in ran.stdout, ran.stdout
    for name, count in counting.end().items():
        expect(int(link.call("GET", name)), count, f"{name}: each INCR once")
    expect([len(link.call("GET", f"large:{number}")) for number in range(LARGE)], [MIB] * LARGE)
    link.call("FLUSHALL")
