"""The Redis server beside redis-server, under kill -9, and under bytes that make no sense.

    run.py [--commands 9000] [--cycles 20] [--seed 1]

MANXDB_REDIS_CYCLES=300 is the same as --cycles 300.
"""

import argparse
import os
import random
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import commands
import fields
import operators
import users
from beside import all_of_the_table, corners, differential, exchange
from resp import Link, ReplyError, info
from servers import Ours, check, free_port, wait_for

# What a transaction writes, as one script.
BOOKED = """redis.call('set', KEYS[1], ARGV[1]) redis.call('rpush', KEYS[2], ARGV[2]) redis.call('sadd', KEYS[3], ARGV[1]) return {1}"""


def cycles(data, seed, count, durability):
    """kill -9 under writers with a ledger of what was acknowledged. What is with the operating system outlives the process: the ledger
    of `async` is the same."""
    source = random.Random(seed)
    ledger, uncertain, lock = {}, {}, threading.Lock()

    def write(port, worker):
        try:
            link = Link(port)
            while True:
                key = f"w{worker}"
                number = ledger.get(key, 0) + 1
                uncertain[key] = number
                # A counter, and a large list and a set that must agree with it; a script does it every other time.
                words = (key, f"list{worker}", f"set{worker}", number, f"element {number} " + "x" * 40)
                if number % 2:
                    link.send("EVAL", BOOKED, 3, *words)
                    replies = [link.read()]
                else:
                    link.send("MULTI")
                    link.send("SET", key, number)
                    link.send("RPUSH", words[1], words[4])
                    link.send("SADD", words[2], number)
                    link.send("EXEC")
                    replies = [link.read() for _ in range(5)]
                if not isinstance(replies[-1], list):
                    raise ValueError(replies)
                with lock:
                    ledger[key] = number
        except (OSError, EOFError):
            pass

    def audit(link):
        for key, acknowledged in list(ledger.items()):
            number, worker = int(link.call("GET", key) or 0), key[1:]
            length, members = link.call("LLEN", f"list{worker}"), link.call("SCARD", f"set{worker}")
            if number not in (acknowledged, uncertain[key]) or length != number or members != number:
                return f"{key} is {number}, its list {length}, its set {members}; acknowledged {acknowledged}"
            ledger[key] = number
        return None

    ours = Ours(data, durability)
    for cycle in range(count + 1):
        link = ours.start()
        problem = audit(link)
        name = f"cycle{cycle - 1}"
        if cycle and not problem and link.call("FCALL", name, 0) != cycle - 1:
            problem = f"function {name} is not there: {link.call('FUNCTION', 'LIST')}"
        link.call("FUNCTION", "LOAD", "REPLACE", f"#!lua name=cycles\nredis.register_function('cycle{cycle}', function() return {cycle} end)")
        link.close()
        if problem or cycle == count:
            ours.kill()
            problem = problem or check(data)
            break
        workers = [threading.Thread(target=write, args=(ours.port, worker)) for worker in range(6)]
        for worker in workers:
            worker.start()
        time.sleep(source.uniform(0.1, 0.5))
        ours.kill()
        for worker in workers:
            worker.join()
    if not problem and sum(ledger.values()) < 10 * count:
        return f"only {sum(ledger.values())} writes"
    return problem


def larger_than_memory(data, seed):
    """64 MB of values of several types where 16 MB are allowed: no error, and what left memory is read as it was written."""
    source, ours, clients = random.Random(seed), Ours(data, "async", ("--redis-memory-mb", "16")), 8
    ours.start().close()
    try:
        links, half, problems = [Link(ours.port) for _ in range(clients)], "x" * 8000, []
        numbers = range(4000)

        def sent(link, words):
            for one in words:
                link.send(*one)
            return [link.read() for _ in words]

        def writes(worker):
            for number in numbers[worker::clients]:
                value = f"{number} {half}{half}"
                words = [["SET", f"s{number}", value], ["HSET", f"h{number}", "a", f"{number} {half}", "b", half],
                         ["RPUSH", f"l{number}", f"{number} {half}", half], ["ZADD", f"z{number}", number, value]][number % 4]
                reply = sent(links[worker], [words])[0]
                if isinstance(reply, ReplyError):
                    problems.append(f"{words[:2]}: {reply}")

        def reads(worker):
            mine = list(numbers)
            random.Random(seed + worker).shuffle(mine)
            for number in mine[:400]:
                first, text = f"{number} {half}".encode(), f"{number} {half}{half}".encode()
                words, expected = [(["GET", f"s{number}"], text), (["HGET", f"h{number}", "a"], first), (["LINDEX", f"l{number}", 0], first),
                                   (["ZRANGE", f"z{number}", 0, -1], [text])][number % 4]
                # A write behind each read, in one pipeline: neither is refused for the other's memory.
                found, written = sent(links[worker], [words, ["SET", f"w{worker}", half]])
                if found != expected or written != "OK":
                    problems.append(f"{words}: {str(found)[:80]}, then {written}")
            # Several values at once, more than a client waits for at a time.
            several = [4 * number for number in source.sample(range(1000), 40)]
            found = links[worker].call("MGET", *(f"s{number}" for number in several))
            if found != [f"{number} {half}{half}".encode() for number in several]:
                problems.append(f"MGET: {str(found)[:80]}")

        for run in (writes, reads):
            workers = [threading.Thread(target=run, args=(worker,)) for worker in range(clients)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            if problems:
                return f"{len(problems)} in {run.__name__}: {problems[0]}"
        # What replaces a value that left memory does not read it, but where it gives it back.
        before = info(links[0])
        replaced = [["SET", f"s{number}", half] for number in range(0, 4000, 8)] + [["SET", f"h{number}", half, "KEEPTTL"] for number in range(1, 4000, 8)]
        if set(sent(links[0], replaced)) != {"OK"}:
            return "a SET of what left memory was refused"
        after = info(links[0])
        loaded, cold = int(after["values_loaded"]) - int(before["values_loaded"]), int(before["keys_not_in_memory"])
        if loaded or cold < 2500:
            return f"{len(replaced)} SETs read {loaded} values, of {cold} that left memory"
        if int(after["used_memory"]) > 20 << 20 or int(after["keys_not_in_memory"]) < 2500 or int(after["values_loaded"]) < 1000:
            return {name: after[name] for name in ("used_memory", "keys_not_in_memory", "values_loaded", "values_evicted")}
        return None if after["total_error_replies"] == "0" else f"{after['total_error_replies']} errors"
    finally:
        ours.kill()


def endless(port):
    """A script that does not end: others are told so within its limit, and end it."""
    first, other = Link(port), Link(port)
    other.call("CONFIG", "SET", "lua-time-limit", "50")
    for script in ("while true do end", "while true do pcall(function() while true do end end) end"):
        first.send("EVAL", script, 0)
        said, deadline = set(), time.monotonic() + 20
        while time.monotonic() < deadline:
            late = Link(port)
            reply = late.call("PING")
            late.close()
            said.add(str(reply).split()[0])
            if str(reply).startswith("BUSY"):
                break
        if "BUSY" not in said:
            return f"nobody was told BUSY: {said}"
        if other.call("SCRIPT", "KILL") != "OK":
            return "SCRIPT KILL did not"
        reply = first.read()
        if not str(reply).startswith("ERR Script killed by user"):
            return f"the script answered {reply!r}"
        if other.call("PING") != "PONG":
            return "no answer after the script"
    return None


def crowd(port, count):
    """Idle connections, and one that never reads: others are answered."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    link = Link(port)
    link.call("SET", "large", "x" * 1_000_000)
    idle, deaf = [], Link(port)
    try:
        for _ in range(min(count, hard - 500)):
            idle.append(socket.create_connection(("127.0.0.1", port), timeout=20))
        for _ in range(500):
            deaf.send("GET", "large")
        times = []
        for _ in range(300):
            began = time.monotonic()
            if link.call("PING") != "PONG":
                return "PING was not answered"
            times.append(time.monotonic() - began)
        slow = sorted(times)[int(len(times) * 0.99)]
        connected = int(info(link, "clients")["connected_clients"])
        if connected < len(idle):
            return f"{connected} of {len(idle)} connections are there"
        print(f"note redis: PING beside {len(idle)} idle connections and one that does not read: p99 {slow * 1e3:.2f} ms", flush=True)
        return None if slow < 5 else f"PING took {slow:.1f} s"
    finally:
        for connection in idle:
            connection.close()
        deaf.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def hostile(port, seed):
    """Bytes that make no sense end their connection at most."""
    source = random.Random(seed)
    pieces = [b"*", b"$", b"\r\n", b"1", b"-1", b"536870913", b"99999999999999999999", b"GET", b"*1048577\r\n", b"*3\r\n$3\r\nSET\r\n",
              b"\x00", b'"', b"'", b"*1\r\n*1\r\n", b"x" * 70000]
    for _ in range(200):
        with socket.create_connection(("127.0.0.1", port), timeout=5) as link:
            try:
                link.sendall(b"".join(source.choice(pieces) for _ in range(source.randint(1, 12))))
            except OSError:
                pass
    link = Link(port)
    return None if link.call("PING") == "PONG" else "no answer after hostile bytes"


def numbers(link, admin):
    """INFO and /metrics tell the same, and the page and SLOWLOG what was slow."""
    link.call("CONFIG", "SET", "slowlog-log-slower-than", "0")
    link.call("SET", "slow", "1")
    link.call("CONFIG", "SET", "slowlog-log-slower-than", "10000")
    time.sleep(0.3)
    said = info(link)
    # What INFO itself changes is told at the end of its round, which may be behind its reply.
    for _ in range(100):
        metrics = urllib.request.urlopen(f"http://127.0.0.1:{admin}/metrics").read().decode()
        told = dict(line.removeprefix("manxdb_redis_").split() for line in metrics.splitlines() if line.startswith("manxdb_redis_"))
        differ = [f"{name}: INFO {said.get(name)}, /metrics {value}" for name, value in told.items() if float(said.get(name, "nan")) != float(value)]
        if not differ:
            break
        time.sleep(0.05)
    if differ or len(told) < 30:
        return f"/metrics has {len(told)} numbers of Redis; {differ[:3]}"
    slow = [entry for entry in link.call("SLOWLOG", "GET", "-1") if entry[3][0] == b"SET"]
    split = [entry for entry in link.call("SLOWLOG", "SPLIT", "-1") if slow and entry[1] == slow[0][0]]
    if len(split) != 1 or not split[0][-1]:
        return f"SLOWLOG has {slow} and {split}: a write with sync waits for the disk"
    page = urllib.request.urlopen(f"http://127.0.0.1:{admin}/redis").read().decode()
    return None if "<code>SET slow 1</code>" in page and "keys_zset" in page else f"the page is {page[-600:]}"


def encrypted(port, certificate, seed):
    """TLS on the same port: small and large both ways, byte by byte, and bytes that are no TLS."""
    source, link = random.Random(seed), Link(port, certificate=certificate)
    values = {f"tls{number}": source.randbytes(source.choice([0, 1, 16_384, 16_385, 70_000, 3_000_000])) for number in range(20)}
    for key, value in values.items():
        link.send("SET", key, value)
    if {link.read() for _ in values} != {"OK"}:
        return "SET was not answered with OK"
    for key in values:
        link.send("GET", key)
    for key, value in values.items():
        if link.read() != value:
            return f"{key} of {len(value)} bytes is another"
    for byte in b"*1\r\n$4\r\nPING\r\n":
        link.socket.sendall(bytes([byte]))
    if link.read() != "PONG":
        return "no answer to a command that came byte by byte"
    plain = Link(port)
    if plain.call("GET", "tls0") != values["tls0"]:
        return "a client without TLS sees another value"
    for _ in range(50):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as wrong:
            wrong.sendall(b"\x16\x03\x01" + source.randbytes(source.randint(1, 3000)))
            wrong.settimeout(0.01)
            try:
                wrong.recv(100)
            except OSError:
                pass
    link.send("QUIT")
    return None if link.read() == "OK" and link.file.read() == b"" and plain.call("PING") == "PONG" else "no orderly end"


def report(name, problem):
    print(f"FAIL {name}: {problem}" if problem else f"PASS {name}", flush=True)
    return bool(problem)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", type=int, default=9000)
    parser.add_argument("--cycles", type=int, default=int(os.environ.get("MANXDB_REDIS_CYCLES", "20")), help="kills, half of each durability")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        ours = Ours(os.path.join(scratch, "one"))
        port = free_port()
        theirs = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir", scratch], stdout=subprocess.DEVNULL)
        try:
            link = ours.start()
            link.port_of_server = ours.port
            problem, seen = differential(link, wait_for(port, theirs), options.seed, options.commands)
            failed += report("redis: replies as redis-server's", problem)
            failed += report("redis: what one dumps the other restores", exchange(link, Link(port)))
            other = Link(port)
            other.port_of_server = port
            failed += report("redis: sequences that random commands seldom make", corners(link, other))
            for name, problem in operators.all_of(ours.port, port, options.seed):
                failed += report(f"redis: {name}", problem)
            failed += report("redis: fields of hashes that expire", fields.fields(ours.port, options.seed, seen))
            fresh = Link(ours.port)
            fresh.port_of_server = ours.port
            failed += report("redis: every command of the table", all_of_the_table(fresh, seen))
            failed += report("redis: INFO, /metrics and SLOWLOG", numbers(link, ours.admin))
            failed += report("redis: TLS", encrypted(ours.port, os.path.join(ours.data, "server-cert.pem"), options.seed))
            failed += report("redis: hostile bytes", hostile(ours.port, options.seed))
            failed += report("redis: endless scripts", endless(ours.port))
            failed += report("redis: idle connections, and one that never reads", crowd(ours.port, 5000))
            code = ours.kill(signal.SIGTERM)
            failed += report("redis: ends in order", None if code == 0 else f"exit code {code}")
        finally:
            theirs.kill()
            theirs.wait()
            if ours.process.poll() is None:
                ours.kill()
        failed += report("redis: a file of users", users.users(scratch))
        failed += report("redis: values of four times the memory", larger_than_memory(os.path.join(scratch, "large"), options.seed))
        for durability in ("sync", "async"):
            data = os.path.join(scratch, durability)
            problem = cycles(data, options.seed, options.cycles // 2, durability)
            failed += report(f"redis: kill -9 under writers, {durability}", problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
