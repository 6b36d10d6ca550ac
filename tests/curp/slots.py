"""Slots that move between two clusters while a client writes, and back, with a driver and a master that die."""

import subprocess
import threading
import time

from harness.checks import check, expect
from processes import BINARY, PATIENCE
from redis_cluster import Cluster, near
from resp import Link, ReplyError

KEYS = 64


def answered(links, port, *words):
    """Follows MOVED from cluster to cluster, as a client of Redis Cluster does; the answer, and where from."""
    deadline = time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < deadline, f"{words} has no answer"
        answer = links[port].call(*words)
        text = str(answer)
        if "MOVED " in text:
            port = int(text.split("MOVED ", 1)[1].split()[1].rsplit(":", 1)[1])
        elif "TRYAGAIN " in text:
            time.sleep(0.005)
        else:
            return answer, port


def move(source, target, slots):
    return source.run("move-slots", slots, "--to", str(target.data))


@check
def slots_move_to_another_cluster_and_back_while_clients_write():
    one, other = near(), Cluster("--supervise")
    one.wait_whole()
    try:
        ran = other.run("give-up-slots", "0-16383", "--owner", str(one.data))
        expect(ran.returncode, 0, ran.stdout)
        link = one.proxy()
        for number in range(KEYS):
            link.call("SET", f"moving:count:{number}", 0)
            link.call("RPUSH", f"moving:list:{number}", "a", "b")
        link.call("SET", "foo", "bar", "EX", 1000)
        counts, stop, failed = [0] * KEYS, threading.Event(), []

        def write():
            links = {cluster.redis: Link(cluster.redis) for cluster in (one, other)}
            port, number = one.redis, 0
            try:
                while not stop.is_set():
                    key = number % KEYS
                    answer, port = answered(links, port, "INCR", f"moving:count:{key}")
                    counts[key] += 1
                    expect(answer, counts[key])
                    number += 1
            except BaseException as error:  # told by the check's own thread
                failed.append(error)

        writer = threading.Thread(target=write, daemon=True)
        writer.start()
        # A driver that dies on its way is gone on with by another one, and so is a master.
        command = [BINARY, "cluster", "move-slots", "8192-16383", "--cluster", str(one.data), "--to",
                   str(other.data)]
        asked = Link(one.redis)
        driver = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while not isinstance(asked.call("GET", "foo"), ReplyError):
            assert time.monotonic() < deadline, "the source has not given the slots"
        driver.kill()
        driver.wait(timeout=PATIENCE)
        expect(one.run("kill", "master").returncode, 0)
        ran = move(one, other, "8192-16383")
        expect(ran.returncode, 0, ran.stdout)
        # Slot 12182, as CLUSTER KEYSLOT of Redis says.
        told = str(Link(one.redis).call("GET", "foo"))
        assert f"MOVED 12182 127.0.0.1:{other.redis}" in told, told
        there = Link(other.redis)
        expect(there.call("GET", "foo"), b"bar")
        assert 0 < there.call("TTL", "foo") <= 1000
        shown = one.run("slots").stdout
        assert "0-8191: " in shown and f"8192-16383: 127.0.0.1:{other.redis}" in shown, shown
        ran = one.run("give-up-slots", "0-8191", "--owner", str(other.data))
        assert ran.returncode == 1 and "keys in these slots" in ran.stdout, ran.stdout
        expect(move(one, other, "0-8191").returncode, 0)
        expect(link.call("DBSIZE"), 0)
        ran = move(other, one, "0-16383")
        expect(ran.returncode, 0, ran.stdout)
        stop.set()
        writer.join(timeout=PATIENCE)
        assert not failed, failed
        assert sum(counts) > 0, "nobody wrote"
        for number in range(KEYS):
            expect(int(link.call("GET", f"moving:count:{number}")), counts[number], "each INCR once")
            expect(link.call("LRANGE", f"moving:list:{number}", 0, -1), [b"a", b"b"])
        expect(there.call("DBSIZE"), 0)
    finally:
        other.close()
