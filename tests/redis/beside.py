"""The same commands sent to a server of this tree and to redis-server: their replies are compared."""

import random
import socket
import time

import commands
from resp import Link, ReplyError, info

# Differences that are told.
PROBLEMS_MAX = 12


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
