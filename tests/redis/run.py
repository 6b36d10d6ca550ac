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
import operators
from resp import Link, ReplyError, info


# What a transaction writes, as one script.
BOOKED = """redis.call('set', KEYS[1], ARGV[1]) redis.call('rpush', KEYS[2], ARGV[2]) redis.call('sadd', KEYS[3], ARGV[1]) return {1}"""
# Differences that are told.
PROBLEMS_MAX = 12


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    """Until it answers."""
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            link = Link(port)
            if link.call("PING") == "PONG":
                return link
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError("the server does not answer")


class Ours:
    """A server of this tree."""

    def __init__(self, data, durability="sync", flags=()):
        self.data, self.durability, self.flags, self.port, self.admin = data, durability, flags, free_port(), free_port()

    def start(self):
        binary = os.environ.get("MANXDB_TEST_BINARY", "target/debug/manxdb")
        command = [binary, "serve", "--data", self.data, "--mysql-listen", f"127.0.0.1:{free_port()}", "--admin-listen",
                   f"127.0.0.1:{self.admin}", "--redis-listen", f"127.0.0.1:{self.port}", "--insecure",
                   "--durability", self.durability, "--max-connections", "6000", "--log", "warn", *self.flags]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        return wait_for(self.port, self.process)

    def kill(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        return self.process.wait()


def differential(ours, theirs, seed, count):
    """Random commands, replies compared; the names of those that were run."""
    source, seen = random.Random(seed), set()
    mine, other, problems = ours, theirs, []
    families = [family for family in commands.FAMILIES if family != "flush"]
    family = families[0]
    # Every template once, so that no command is left out by chance; then any.
    every = [(family, template) for family in families for template in commands.templates(family)]
    for number in range(max(count, len(every))):
        if number < len(every):
            words = commands.made(source, *every[number])
        else:
            if number % 20 == 0:
                family = source.choice(families)
            words = commands.made(source, "flush" if source.random() < 0.002 else family)
        if words[0] == "RANDOMKEY":
            continue
        found, expected = mine.call(*words), other.call(*words)
        seen.add(words[0].lower())
        name = words[0]
        if name == "EXEC":
            found = None if found is None else repr(sorted(map(repr, found))) if isinstance(found, list) else found
            expected = None if expected is None else repr(sorted(map(repr, expected))) if isinstance(expected, list) else expected
            if isinstance(found, str) and found.startswith("["):
                # Replies in no order are among them.
                found, expected = len(found), len(expected)
        found, expected = commands.comparable(words, found), commands.comparable(words, expected)
        if found != expected:
            problems.append(f"{number} {words}: {found!r}, redis-server says {expected!r}")
            for link in (mine, other):
                link.call("DISCARD")
                link.call("FLUSHALL")
    return "; ".join(problems[:PROBLEMS_MAX]) or None, seen


def exchange(ours, theirs):
    """What one server dumps the other restores, of every type and every form that it has."""
    many, long = [str(number) for number in range(600)], "x" * 100
    paired = [word for number in many for word in (number, f"v{number}")]
    values = {
        "bytes": ["SET", "some bytes"], "number": ["SET", -70000], "compressed": ["SET", "abc" * 500], "empty": ["SET", ""],
        "binary": ["SET", bytes(range(256))], "list": ["RPUSH", "a", 1, -5000, long], "long list": ["RPUSH", *many, "y" * 20000, long],
        "numbers": ["SADD", 1, 2, -70000, 1 << 40], "set": ["SADD", "a", 1, long], "large set": ["SADD", *many, "a"],
        "hash": ["HSET", "a", 1, "b", "c"], "large hash": ["HSET", *paired], "hash of long": ["HSET", "f", long],
        "zset": ["ZADD", 1, "a", "-2.5", "b", "inf", "c", 3, 77], "large zset": ["ZADD", *paired],
        "counter": ["PFADD", *many],
    }
    reads = {"SET": ["GET"], "PFADD": ["PFCOUNT"], "RPUSH": ["LRANGE", 0, -1], "SADD": ["SMEMBERS"], "HSET": ["HGETALL"], "ZADD": ["ZRANGE", 0, -1, "WITHSCORES"]}
    for one, other in ((theirs, ours), (ours, theirs)):
        for name, (write, *words) in values.items():
            read, *rest = reads[write]
            for link in (one, other):
                link.call("DEL", "d")
            one.call(write, "d", *words)
            dumped = one.call("DUMP", "d")
            restored = other.call("RESTORE", "d", 0, dumped)
            expected, found = one.call(read, "d", *rest), other.call(read, "d", *rest)
            if read in ("SMEMBERS", "HGETALL"):
                expected, found = sorted(expected), sorted(found) if isinstance(found, list) else found
            if restored != "OK" or found != expected:
                return f"{name}: {restored}, {str(found)[:80]} instead of {str(expected)[:80]}"
    for one, other in ((theirs, ours), (ours, theirs)):
        one.call("FUNCTION", "FLUSH")
        one.call("FUNCTION", "LOAD", commands.LIBRARIES[0])
        one.call("FUNCTION", "LOAD", commands.LIBRARIES[1])
        restored = other.call("FUNCTION", "RESTORE", one.call("FUNCTION", "DUMP"), "FLUSH")
        again = other.call("FUNCTION", "RESTORE", one.call("FUNCTION", "DUMP"))
        told = other.call("FCALL", "told", 1, "k", "a")
        if restored != "OK" or told != [b"k", b"a", 1, 1] or "already exists" not in str(again):
            return f"libraries: {restored}, then {again}; a function of one says {told}"
    short = [link.call("DUMP", "d") for link in (ours, theirs) if link.call("SET", "d", "short") == "OK"]
    return None if short[0] == short[1] else f"a short string is dumped as {short}"


# Sequences that random commands seldom make, each on keys of its own. Another connection sends what stands behind !, and waits with what
# stands behind > until <.
CORNERS = """SET k v|WATCH k|FLUSHALL|MULTI|PING|EXEC
WATCH k|FLUSHALL|MULTI|PING|EXEC
SET k v|WATCH k|FLUSHDB|MULTI|PING|EXEC
SET k v|WATCH k|SELECT 3|FLUSHDB|SELECT 0|MULTI|PING|EXEC
SET k v|WATCH k|!FLUSHALL|MULTI|PING|EXEC
SADD k x|SADD o x|WATCH o|!SMOVE k o x|MULTI|PING|EXEC
SADD k x|SADD o y|WATCH o|!SMOVE k o x|MULTI|PING|EXEC
SET k 1e-19|INCRBYFLOAT k 0|GET k|INCRBYFLOAT k 0.5|INCRBYFLOAT k -0.5|SET k 3.0e3|INCRBYFLOAT k 200|INCRBYFLOAT k -3200
XADD k 1-1 a b|XADD k 2-1 a b|XGROUP CREATE k g $|XGROUP SETID k g -|XREADGROUP GROUP g c STREAMS k >|XGROUP CREATE k h +|XINFO GROUPS k
CONFIG SET hash-max-ziplist-value 64|CONFIG SET list-compress-depth 1|CONFIG GET list-compress-depth|CONFIG SET list-compress-depth 0
CONFIG SET lazyfree-lazy-user-del no|CONFIG SET lazyfree-lazy-user-del maybe|CONFIG SET hash-max-listpack-entries x|CONFIG SET lazyfree-lazy-user-del yes
ZADD k 1 a 2 b 3 c|ZADD k 6 b 3 d|ZADD k 0 c|ZREM k a|ZSCANNED k 0|HSET h a 1 b 2 c 3|HDEL h a|HSET h a 4|HSCANNED h 0
XADD k 1-1 a b|XADD k 2-1 a b|XGROUP CREATE k g 0|XREADGROUP GROUP g c STREAMS k >|XTRIM k MAXLEN ~ 0|XLEN k|XREADGROUP GROUP g c STREAMS k 0
XADD k 1-1 a b|XADD k 2-1 a b|XTRIM k MINID ~ 2-1|XTRIM k MINID ~ 3|XLEN k|XADD k MAXLEN ~ 0 5-1 a b|XLEN k
CLIENT LIST TYPE nothing|CLIENT LIST ID x|CLIENT LIST ID 999999999|CLIENT LIST NOPE|CLIENT LIST TYPE master|CLIENT LIST TYPE pubsub|CLIENT GETREDIR|CLIENT TRACKINGINFO
SET k v|MULTI|SET k w|GET k|!CONFIG SET maxmemory 1|EXEC|GET k|MULTI|GET k|EXEC|MULTI|SET k w|EXEC|CONFIG SET maxmemory 0|GET k
SET o v|>BRPOPLPUSH k o 0|RPUSH k a|<|LRANGE k 0 -1|>BLMOVE l o LEFT RIGHT 0|SADD l x|DEL l|RPUSH l b|<|LLEN l
HSET k a 1|HRANDFIELD k 5 WITHVALUES|HRANDFIELD k -3 WITHVALUES
FUNCTION FLUSH|FUNCTION LOAD TOLD|FCALL TOLD 1 k a|FCALL ToLd 0|FUNCTION LOAD TOLD"""


def corners(ours, theirs):
    """The replies of CORNERS, and to bytes that are no command, are those of redis-server."""
    mine, other = [(server, Link(server.port_of_server)) for server in (ours, theirs)], []
    for line in CORNERS.splitlines():
        for server, beside in mine:
            server.call("FLUSHALL")
            replies = []
            for command in line.split("|"):
                words = [commands.LIBRARIES[1] if word == "TOLD" and command.startswith("FUNCTION") else word for word in command.lstrip("!").split()]
                if command == "<":
                    replies.append(beside.read())
                    continue
                if command.startswith(">"):
                    # It waits before the next one runs.
                    beside.send(words[0][1:], *words[1:])
                    deadline = time.monotonic() + 20
                    while info(server, "clients")["blocked_clients"] != "1":
                        if time.monotonic() > deadline:
                            return f"{line}: {command} does not wait"
                        time.sleep(0.01)
                    continue
                ordered = words[0].endswith("SCANNED")
                words[0] = words[0].removesuffix("NED")
                reply = (beside if command.startswith("!") else server).call(*words)
                # Why a value is refused is said in other words.
                replies.append("refused" if words[0] == "CONFIG" and isinstance(reply, ReplyError) else reply if ordered else commands.comparable(words, reply))
            other.append(replies)
        if other[-1] != other[-2]:
            return f"{line}: {other[-2]}, redis-server says {other[-1]}"
    for text in (b"*1\r\nfoo\r\n", b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n", b"*1\r\n$-10\r\n", b"*-10\r\nPING\r\n", b"*3000000000\r\n"):
        said = []
        for server, _ in mine:
            with socket.create_connection(("127.0.0.1", server.port_of_server), timeout=20) as raw:
                raw.sendall(text)
                said.append(raw.recv(1000))
        if said[0] != said[1]:
            return f"{text}: {said[0]}, redis-server says {said[1]}"
    return None


def all_of_the_table(link, seen):
    """Every row of the command table was run."""
    table = {name.decode() for name in link.call("COMMAND", "LIST")}
    for words in ("PTTL k|HELLO 2|AUTH x|CLIENT ID|CLIENT LIST|SUBSCRIBE c|UNSUBSCRIBE c|PSUBSCRIBE c*|PUNSUBSCRIBE c*|INFO|CONFIG GET *|"
                  "COMMAND DOCS get|ACL WHOAMI|SAVE|BGSAVE|BGREWRITEAOF|LASTSAVE|ROLE|WAIT 0 0|MEMORY USAGE k|SLOWLOG LEN|LATENCY LATEST|"
                  "DEBUG JMAP|LOLWUT|SHUTDOWN|TIME|RANDOMKEY|FLUSHALL|FLUSHDB|RESET|QUIT").split("|"):
        other = Link(link.port_of_server)
        reply = other.call(*words.split())
        other.close()
        if isinstance(reply, ReplyError) and "unknown" in reply:
            return f"{words}: {reply}"
        seen.add(words.split()[0].lower())
    left = table - seen
    return f"{len(left)} of {len(table)} commands were not run: {sorted(left)}" if left else None


def check(data):
    """What `manxdb redis check` says against the rows of a data directory."""
    binary = os.environ.get("MANXDB_TEST_BINARY", "target/debug/manxdb")
    done = subprocess.run([binary, "redis", "check", "--data", data], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"manxdb redis check: {done.stdout[-600:]}{done.stderr[-300:]}"


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
        failed += report("redis: values of four times the memory", larger_than_memory(os.path.join(scratch, "large"), options.seed))
        for durability in ("sync", "async"):
            data = os.path.join(scratch, durability)
            problem = cycles(data, options.seed, options.cycles // 2, durability)
            failed += report(f"redis: kill -9 under writers, {durability}", problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
