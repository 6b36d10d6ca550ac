"""What operators ask of a server, and what clients are told without asking: beside redis-server."""

import random
import re
import select

import commands
from resp import Link, Push, info

# A step is a connection and a command; @b is the number of connection b. Replies are compared; and after each step of a connection in small
# letters, what those in capitals were told without asking.
SEQUENCES = """a ACL SETUSER u on >p ~a* &ch* -@all +get|a ACL GETUSER u|a ACL SETUSER u +auth +multi +exec +discard +publish +ping|a ACL DRYRUN u get abc|a ACL DRYRUN u get x
a ACL DRYRUN u set abc 1|a ACL DRYRUN nobody get x|a ACL DRYRUN u nope|a ACL DRYRUN u get|a ACL DRYRUN u publish chan x|a ACL DRYRUN u publish other x
a ACL SETUSER v on nopass allkeys allcommands|a ACL GETUSER v|a ACL SETUSER v resetkeys -@all|a ACL GETUSER v|a ACL SETUSER v #zz|a ACL SETUSER v +nope|a ACL SETUSER v +@nope
a ACL SETUSER w +@all -set|a ACL GETUSER w|a ACL SETUSER w +config|get allchannels -@all +acl|whoami|a ACL GETUSER w|a ACL GETUSER nobody
a ACL SETUSER w on >one >two <one|a ACL GETUSER w|a ACL SETUSER w <three|a ACL SETUSER w resetpass|a ACL GETUSER w|a ACL LIST|a ACL USERS|a ACL DELUSER v w|a ACL USERS
a ACL GENPASS 0|a ACL GENPASS 5000|a ACL GENPASS x|a ACL LOG RESET|b AUTH u p|b SET a 1|b SET a 1|b GET x|b GET abc|b PUBLISH other m|b PUBLISH chan m|b MULTI|b GET x|b DISCARD|b AUTH u q|a ACL LOG|a ACL LOG 1|a ACL LOG RESET|a ACL LOG|a ACL LOG x
a ACL SETUSER s on nopass ~a* +get (~b* +set) (%R~c* %W~d +@hash)|a ACL LIST|a ACL GETUSER s|a ACL SETUSER s (+get|a ACL SETUSER s (+get ~x|a ACL SETUSER s (+get ~x )|a ACL SETUSER s (+nope)|a ACL SETUSER s (on)|a ACL SETUSER s ()|a ACL LIST
a ACL SETUSER s %~a|a ACL SETUSER s %X~a|a ACL SETUSER s %RW~ab %R~zz %W~zz|a ACL SETUSER s %R~*|a ACL SETUSER s allkeys ~x|a ACL SETUSER s allchannels &x|a ACL LIST|a ACL DRYRUN s GET a|a ACL DRYRUN s SET a 1|a ACL DRYRUN s SET b 1
a ACL DRYRUN s HSET c f v|a ACL DRYRUN s HGET c f|a ACL DRYRUN s HLEN d|a ACL DRYRUN s HSET d f v|a ACL DRYRUN s PUBLISH x y|b AUTH s x|b GET a|b SET a 1|b SET b 1|b HGET d f|b MGET a b|a ACL SETUSER s clearselectors|a ACL LIST|b SET b 1
a ACL SETUSER r on nopass resetkeys %R~r %W~w +@all|a ACL DRYRUN r COPY r w|a ACL DRYRUN r COPY w r|a ACL DRYRUN r SET w 1 GET|a ACL DRYRUN r SET w 1|a ACL DRYRUN r GETSET w 1|a ACL DRYRUN r EXISTS nothing|a ACL DRYRUN r STRLEN r|a ACL DRYRUN r STRLEN w
a ACL DRYRUN r RENAME r w|a ACL DRYRUN r SUNIONSTORE w r r|a ACL DRYRUN r MSET w 1 r 2|a ACL DRYRUN r BITFIELD r GET u8 0|a ACL DRYRUN r BITFIELD r SET u8 0 1|a ACL DRYRUN r SORT r STORE w|a ACL DRYRUN r LMOVE r w LEFT LEFT|a ACL DELUSER r s
a ACL SETUSER u +client +info|b AUTH u p|a ACL DELUSER u|b GET a
a ACL|a ACL NOPE|a ACL GETUSER|a CLIENT NOPE|a CLIENT ID x|a CONFIG NOPE|a CONFIG GET|a LATENCY NOPE|a LATENCY HISTORY|a MEMORY NOPE|a MEMORY USAGE|a PUBSUB NOPE|a SLOWLOG NOPE|a SCRIPT NOPE|a SCRIPT LOAD|a FUNCTION NOPE|a COMMAND NOPE
a CLIENT NO-EVICT on|a CLIENT NO-EVICT x|a CLIENT KILL LADDR 1.1.1.1:1|a CLIENT KILL FOO bar|a CLIENT KILL ID x|a CLIENT KILL ID 0|a CLIENT KILL TYPE nope|a CLIENT KILL USER nobody|a CLIENT KILL SKIPME x|a CLIENT KILL ID 1 LADDR
b PING|a CLIENT KILL ID @b|b PING|c SUBSCRIBE x|a CLIENT KILL TYPE pubsub LADDR 1.1.1.1:1|a CLIENT KILL TYPE pubsub|c PING
a CLIENT PAUSE x|a CLIENT PAUSE -1|a CLIENT PAUSE 1 FOO|a CLIENT UNPAUSE|a CLIENT PAUSE|a CLIENT UNPAUSE x"""

# What clients are told that keep values. A polled connection is one in capitals.
TRACKING = """R HELLO 3|R CLIENT TRACKING on|R GET k|w SET k 1|w SET k 2|R GET k|R GET l|R MGET k l m|w MSET k 1 l 2|w DEL m|R SET k own|w PING|R GET k|R SET k own2|w PING|w FLUSHALL|R GET k|w FLUSHDB
R HELLO 3|R CLIENT TRACKING on NOLOOP|R GET k|R SET k own|w SET k 1|R GET k|w SET k 2|R EVAL return(redis.call('get',KEYS[1])) 1 k|w INCR k|R HGETALL h|w HSET h a 1|R CLIENT TRACKING off|R GET k|w SET k 3
R HELLO 3|R CLIENT TRACKING on OPTIN|R GET k|w SET k 1|R CLIENT CACHING yes|R GET k|R GET l|w MSET k 1 l 2|R CLIENT CACHING yes|R MULTI|R GET k|R GET l|R EXEC|w MSET k 1 l 2|R GET k|w SET k 1
R HELLO 3|R CLIENT TRACKING on OPTOUT|R CLIENT CACHING no|R GET k|R GET l|w MSET k 1 l 2|R CLIENT TRACKINGINFO|R CLIENT CACHING no|R CLIENT TRACKINGINFO|R CLIENT GETREDIR
R HELLO 3|R CLIENT TRACKING on BCAST PREFIX user: PREFIX item:|w SET user:1 a|w SET other 1|w MSET item:1 a user:2 b item:2 c|w DEL user:1 item:1|R SET user:9 own|w PING|R CLIENT TRACKINGINFO|w FLUSHALL
R HELLO 3|R CLIENT TRACKING on BCAST NOLOOP|R SET user:9 own|w SET x 1|w SELECT 3|w SET y 1|w PEXPIREAT y 1|w RENAME x z|w SELECT 0|w RENAME x z
A SUBSCRIBE __redis__:invalidate|b CLIENT TRACKING on REDIRECT @A|b GET k|w SET k 1|w SET k 1|b CLIENT TRACKINGINFO|b CLIENT GETREDIR|b GET k|w FLUSHALL|b CLIENT TRACKING off|b GET k|w SET k 1
A HELLO 3|b CLIENT TRACKING on REDIRECT @A BCAST|b GET k|w SET k 1
B HELLO 3|a PING|B CLIENT TRACKING on REDIRECT @a|B GET k|a QUIT|w SET k 1|B CLIENT TRACKINGINFO
b CLIENT TRACKING on|b GET k|w SET k 1|b CLIENT TRACKINGINFO|b RESET|b CLIENT TRACKINGINFO
R HELLO 3|R CLIENT TRACKING on|R LRANGE q 0 -1|v RPUSH q a b|R LRANGE q 0 -1|v LPOP q 5|R GET s|v SET s v EX 100|R GET s|v EXPIRE s 50|R GET s|v PERSIST s|R GET s|v EXPIREAT s 1
a CLIENT TRACKING on redirect 99999999|a CLIENT TRACKING on prefix a|a CLIENT TRACKING on bcast prefix a prefix ab|a CLIENT TRACKING on optin optout|a CLIENT TRACKING on bcast optin|a CLIENT TRACKING foo|a CLIENT CACHING yes|a CLIENT TRACKING on redirect x|a CLIENT TRACKING on redirect @a redirect @a
a CLIENT TRACKING on optin|a CLIENT CACHING no|a CLIENT CACHING foo|a CLIENT CACHING yes|a CLIENT TRACKING on optout|a CLIENT TRACKINGINFO|a CLIENT TRACKING on|a CLIENT TRACKING off|a CLIENT TRACKINGINFO|a CLIENT GETREDIR
a CLIENT TRACKING on bcast prefix foo prefix bar noloop|a CLIENT TRACKINGINFO|a CLIENT TRACKING on|a CLIENT TRACKING on bcast prefix fo|a CLIENT TRACKING on bcast|a CLIENT TRACKINGINFO|a CLIENT TRACKING on optin"""

# Events that random commands seldom make, and the setting.
EVENTS = """L PSUBSCRIBE __key*|a CONFIG SET notify-keyspace-events KEm|a GET nothing|a MGET no none|a EXISTS nothing|a HGET nothing f|a SET k v|a GET k|a CONFIG SET notify-keyspace-events E$|a SET k v|a DEL k|a CONFIG SET notify-keyspace-events Kg|a SET k v|a DEL k
a CONFIG SET notify-keyspace-events KEA|a CONFIG GET notify-keyspace-events|a CONFIG SET notify-keyspace-events Q|a CONFIG SET notify-keyspace-events KExnm|a CONFIG GET notify-keyspace-events
a CONFIG SET notify-keyspace-events KEA|L PSUBSCRIBE __key*|b BRPOPLPUSH q r 0.01|a SELECT 3|a SET k v|a MOVE k 5|a SELECT 5|a COPY k l DB 6|a RENAME k k|a RENAME k m|a MULTI|a SET k 1|a INCR k|a EXEC|a SET k v EX 100|a SET k v KEEPTTL|a SETEX k 9 v|a GETEX k PERSIST|a GETEX k EXAT 1|a FLUSHALL
a CONFIG SET notify-keyspace-events KEA|L PSUBSCRIBE __key*|a XADD s MAXLEN 1 1-1 a b|a XADD s MAXLEN 1 2-1 a b|a XGROUP CREATE s g 0|a XREADGROUP GROUP g c STREAMS s >|a XCLAIM s g d 0 2-1|a XAUTOCLAIM s g e 0 0|a XGROUP DELCONSUMER s g c|a XGROUP DESTROY s g|a XDEL s 2-1|a CONFIG SET notify-keyspace-events none
a CONFIG SET notify-keyspace-events|a CONFIG GET tracking-table-max-keys"""

# Families whose events are compared, and commands that are in no order with others or make no sense between marks.
EVENT_FAMILIES = ["s", "h", "l", "t", "z", "x", "b", "p", "g", "S", "y", "L", ""]
LEFT_OUT = {"MULTI", "EXEC", "DISCARD", "RANDOMKEY", "PUBLISH"}

# Run behind CONFIG RESETSTAT; what INFO tells of them is compared, but times.
COUNTED = """SET k v|SET k|NOPE x|LPUSH k 1|CLIENT NOPE|CLIENT LIST x y z|CLIENT GETNAME|MULTI|GET k|INCR k|EXEC|MULTI|NOPE|EXEC|GET k
EVAL return(redis.call('lpush','k','v')) 0|EVAL return(redis.call('get','k')) 0|AUTH x y|CONFIG GET port|OBJECT ENCODING k|OBJECT NOPE k|BLPOP q 0.01|XINFO STREAM nothing|MGET a b|EXISTS"""


def same(reply):
    """A reply in words that the versions share."""
    if isinstance(reply, list):
        return [same(part) for part in reply]
    if not isinstance(reply, (str, bytes)):
        return reply
    text = reply.decode(errors="replace") if isinstance(reply, bytes) else reply
    text = re.sub(r"^(NOPERM )?(this user|This user|User \S+) has no permissions to (run|access) ", r"\1nobody may \3 ", text)
    text = re.sub(r"^NOPERM (No permissions to access a|nobody may access one of the) (key|channel).*", r"NOPERM \2", text)
    return type(reply)(text) if isinstance(reply, str) else text.encode()


def log_of(entries):
    """What of ACL LOG is the same in both."""
    fields = [dict(zip(entry[::2], entry[1::2])) for entry in entries]
    return [[entry[name] for name in (b"count", b"reason", b"context", b"object", b"username")] for entry in fields]


def polled(link):
    """What a connection was told since it was asked last."""
    link.send("PING")
    told = []
    while True:
        reply = link.read()
        if reply in ("PONG", [b"pong", b""]):
            return told
        told.append(reply)


class Steps:
    """Connections of one sequence."""

    def __init__(self, port):
        self.port, self.links = port, {}

    def link(self, name):
        if name not in self.links:
            self.links[name] = Link(self.port)
            self.links[name].number = self.links[name].call("CLIENT", "ID")
        return self.links[name]

    def run(self, step):
        """The reply to a step, and what others were told."""
        name, *words = step.split()
        words = [str(self.link(word[1:]).number) if re.fullmatch("@[a-zA-Z]", word) else word for word in words]
        before = []
        try:
            link = self.link(name)
            link.send(*words)
            reply = link.read()
            while isinstance(reply, Push):
                before.append(reply)
                reply = link.read()
        except (OSError, EOFError):
            reply = "the connection ended"
        if words[0] == "HELLO":
            reply = "hello"
        if words[:2] == ["ACL", "LOG"] and isinstance(reply, list):
            reply = log_of(reply)
        if words[:2] == ["ACL", "LIST"]:
            reply = [user for user in reply if user.split()[1] not in (b"default", b"u")]
        told = [(other, polled(link)) for other, link in sorted(self.links.items()) if other.isupper()] if name.islower() else []
        numbers = {link.number: other for other, link in self.links.items()}
        if words[0] == "CLIENT" and words[1] in ("TRACKINGINFO", "GETREDIR"):
            reply = known(reply, numbers)
        return [step, same(reply), known(before, numbers), known(told, numbers)]

    def close(self):
        for link in self.links.values():
            link.close()


def known(reply, numbers):
    """A reply with names of connections in place of their numbers."""
    if isinstance(reply, (list, tuple)):
        return [known(part, numbers) for part in reply]
    return numbers.get(reply, reply) if isinstance(reply, int) and reply > 0 else reply


def sequences(ours, theirs, lines):
    """The replies to sequences of steps on two ports."""
    for line in lines.splitlines():
        for port in (ours, theirs):
            Link(port).call("FLUSHALL")
        mine, other = Steps(ours), Steps(theirs)
        # A | inside a word is ACL's, of a part of a command.
        steps = [step.replace("!", "|") for step in re.sub(r"(config|acl)\|(get|whoami)", r"\1!\2", line).split("|")]
        for step in steps:
            found, expected = mine.run(step), other.run(step)
            if found != expected:
                return f"{found}, redis-server says {expected}, in {line}"
        mine.close()
        other.close()
    return None


def counted(ours, theirs):
    """INFO commandstats, errorstats and latencystats of the same commands."""
    sections = []
    for port in (ours, theirs):
        link = Link(port)
        link.call("FLUSHALL")
        link.call("CONFIG", "RESETSTAT")
        for command in COUNTED.replace("\n", "|").split("|"):
            link.call(*command.split())
        lines = link.call("INFO", "commandstats").decode() + link.call("INFO", "errorstats").decode() + link.call("INFO", "latencystats").decode()
        lines = re.sub(r"usec=\d+,usec_per_call=[0-9.]+,|:p50=[0-9.]+,p99=[0-9.]+,p99.9=[0-9.]+", "", lines)
        # INFO itself was asked, by us, as often as it was answered.
        sections.append(sorted(line for line in lines.split("\r\n") if line))
        histogram = link.call("LATENCY", "HISTOGRAM", "get", "client|getname", "nothing")
        sections[-1].append(sorted((name, told[1]) for name, told in zip(histogram[::2], histogram[1::2])))
        link.call("CONFIG", "RESETSTAT")
        left = link.call("INFO", "commandstats").decode().split("\r\n")
        sections[-1].append([line.split(":")[0] for line in left if line])
        link.close()
    differ = [(one, other) for one, other in zip(*sections) if one != other]
    return f"{differ[:4]}, of {sections}" if differ or len(sections[0]) != len(sections[1]) else None


def paused(ours, theirs):
    """Commands that a pause holds run when it ends, in order; others run meanwhile."""
    for port in (ours, theirs):
        operator, writer = Link(port), Link(port)
        operator.call("DEL", "k")
        meanwhile = [writer.call("MULTI"), writer.call("RPUSH", "k", "a")]
        operator.call("CLIENT", "PAUSE", 60000, "WRITE")
        for words in (("EXEC",), ("RPUSH", "k", "b"), ("LRANGE", "k", 0, -1)):
            writer.send(*words)
        for _ in range(20):
            meanwhile.append(operator.call("EXISTS", "k"))
        if meanwhile != ["OK", "QUEUED"] + [0] * 20 or select.select([writer.socket], [], [], 0.05)[0]:
            return f"{port}: {meanwhile} while writes are paused"
        operator.call("CLIENT", "UNPAUSE")
        after = [writer.read() for _ in range(3)]
        if after != [[1], 2, [b"a", b"b"]]:
            return f"{port}: {after} after the pause"
        operator.call("CLIENT", "PAUSE", 30)
        writer.send("PING")
        if writer.read() != "PONG" or operator.call("LLEN", "k") != 2:
            return f"{port}: no answer after a pause of all"
    return None


def is_otherwise(words, event):
    """Whether an event is told otherwise: 7.2 makes the consumer of a claim that gets nothing, GETEX tells that nothing persists, and LTRIM
    not that it removed nothing."""
    told = b" ".join(event)
    if words[0] == "LTRIM":
        return b"ltrim" in told
    return words[0] in ("XCLAIM", "XAUTOCLAIM", "XREADGROUP") and b"createconsumer" in told or words[:1] + words[2:] == ["GETEX", "PERSIST"] and b"persist" in told


def events(ours, theirs, seed):
    """Events of random commands."""
    source, listeners, links, problems = random.Random(seed), [], [], []
    for port in (ours, theirs):
        links.append(Link(port))
        links[-1].call("FLUSHALL")
        links[-1].call("CONFIG", "SET", "notify-keyspace-events", "KEAn")
        listeners.append(Link(port))
        for pattern in ("__key*", "mark"):
            listeners[-1].call("PSUBSCRIBE", pattern)
    chosen = [(family, template) for family in EVENT_FAMILIES for template in commands.templates(family) for _ in range(2)]
    made = [words for words in (commands.made(source, *one) for one in chosen) if words[0] not in LEFT_OUT]
    for begin in range(0, len(made), 40):
        batch, told = made[begin : begin + 40], []
        for link, listener in zip(links, listeners):
            for number, words in enumerate(batch):
                link.send(*words)
                link.send("PUBLISH", "mark", number)
            for _ in range(2 * len(batch)):
                link.read()
            heard, mine = polled(listener), [[] for _ in range(len(batch) + 1)]
            number = 0
            for message in heard:
                if message[2] == b"mark":
                    number += 1
                else:
                    mine[number].append((message[2], message[3]))
            told.append(mine)
        for words, *both in zip(batch, *told):
            found, expected = ([event for event in events if not is_otherwise(words, event)] for events in both)
            if found != expected:
                problems.append(f"{words}: {found}, redis-server says {expected}")
    for link in links:
        link.call("CONFIG", "SET", "notify-keyspace-events", "")
    return "; ".join(problems[:8]) or None


def expired(ours, theirs):
    """A key whose time is over is told as such once."""
    heard = []
    for port in (ours, theirs):
        link, listener = Link(port), Link(port)
        link.call("CONFIG", "SET", "notify-keyspace-events", "Ex")
        listener.call("PSUBSCRIBE", "__key*")
        link.call("SET", "brief", "v", "PX", 1)
        while link.call("GET", "brief") is not None:
            pass
        heard.append(polled(listener))
        link.call("CONFIG", "SET", "notify-keyspace-events", "")
    return None if heard[0] == heard[1] and len(heard[0]) == 1 else f"{heard}"


def bounded(port):
    """Keys that are remembered are as many as may be; those forgotten are told as changed."""
    link, other = Link(port), Link(port)
    link.call("HELLO", 3)
    link.call("CLIENT", "TRACKING", "on")
    other.call("CONFIG", "SET", "tracking-table-max-keys", 10)
    for number in range(50):
        link.send("GET", f"key{number}")
    link.send("PING")
    pushes, reply = 0, None
    while reply != "PONG":
        reply = link.read()
        pushes += isinstance(reply, Push)
    pushes += len(polled(link))
    told = info(other, "stats")
    other.call("CONFIG", "SET", "tracking-table-max-keys", 1000000)
    kept = (told["tracking_total_keys"], told["tracking_total_items"])
    return None if pushes == 40 and kept == ("10", "10") else f"{pushes} told of 40, {kept} kept"


def keys_told(ours, theirs, seed):
    """COMMAND GETKEYSANDFLAGS of a command of every template."""
    source, mine, other = random.Random(seed), Link(ours), Link(theirs)
    for family in EVENT_FAMILIES:
        for template in commands.templates(family):
            words = commands.made(source, family, template)
            found, expected = (link.call("COMMAND", "GETKEYSANDFLAGS", *words) for link in (mine, other))
            # A command that has no keys is answered with an error here, where Redis has an empty array for EVAL and the like.
            # MEMORY USAGE declares no key.
            if found != expected and not isinstance(expected, str) and expected and words[0] != "MEMORY":
                return f"{words}: {found}, redis-server says {expected}"
    return None


STREAMS = {
    "one": ["XADD k 1-1 a b"],
    "same fields": [f"XADD k {number}-1 a {number} b x" for number in range(1, 351)],
    "other fields": [f"XADD k {number}-{number} f{number % 3} {-70000 * number} {number} {'y' * (number * 40)}" for number in range(1, 120)],
    "long": [f"XADD k 5-1 a {'z' * 70000} {'n' * 300} 9223372036854775807", "XADD k 5-2 a -9223372036854775808"],
    "of large IDs": ["XADD k 5-9223372036854775807 a b", "XADD k 18446744073709551615-3 a b"],
    "trimmed": [f"XADD k {number}-1 a b" for number in range(1, 30)] + ["XDEL k 3-1 7-1 29-1", "XTRIM k MAXLEN 20"],
    "empty": ["XADD k 7-1 a b", "XDEL k 7-1"],
    "of groups": [f"XADD k {number}-1 a b" for number in range(1, 20)] + [
        "XGROUP CREATE k g 0", "XGROUP CREATE k h $ ENTRIESREAD 3", "XREADGROUP GROUP g c COUNT 5 STREAMS k >", "XREADGROUP GROUP g d COUNT 3 STREAMS k >",
        "XACK k g 2-1", "XCLAIM k g d 0 3-1", "XGROUP CREATECONSUMER k h lazy", "XDEL k 1-1 6-1", "XADD k 30-1 a b"],
}


def streams_of(link):
    """What is known of a stream but times."""
    groups = link.call("XINFO", "GROUPS", "k")
    known = [link.call("XRANGE", "k", "-", "+"), link.call("XINFO", "STREAM", "k")[:2], groups]
    # 7.2 tells more of a stream and of consumers.
    info = link.call("XINFO", "STREAM", "k")
    known.append([info[info.index(name) + 1] for name in (b"last-generated-id", b"max-deleted-entry-id", b"entries-added")])
    for group in groups:
        known.append([entry[:2] + entry[3:] for entry in link.call("XPENDING", "k", group[1], "-", "+", 100)])
        known.append([consumer[:4] for consumer in link.call("XINFO", "CONSUMERS", "k", group[1])])
    return known


def streams(ours, theirs):
    """Streams that one dumps the other restores, and what it dumps again is restored."""
    links = Link(ours), Link(theirs)
    for one, other in (links, links[::-1]):
        for name, made in STREAMS.items():
            for link in links:
                link.call("DEL", "k")
            for command in made:
                one.send(*command.split())
            for command in made:
                reply = one.read()
                if isinstance(reply, str) and reply.startswith("ERR"):
                    return f"{name}: {command[:50]}: {reply}"
            expected = streams_of(one)
            restored = other.call("RESTORE", "k", 0, one.call("DUMP", "k"))
            if restored != "OK" or streams_of(other) != expected:
                return f"{name}: {restored}, {str(streams_of(other))[:300]} instead of {str(expected)[:300]}"
            again = one.call("RESTORE", "k", 0, other.call("DUMP", "k"), "REPLACE")
            if again != "OK" or streams_of(one) != expected:
                return f"{name}, back: {again}"
            damaged = bytearray(other.call("DUMP", "k"))
            damaged[len(damaged) // 2] ^= 1
            if "checksum" not in str(one.call("RESTORE", "k", 0, bytes(damaged), "REPLACE")):
                return f"{name}: a damaged payload was restored"
    return None


def all_of(ours, theirs, seed):
    """Everything here: a name and what is wrong, if anything is."""
    return [
        ("INFO commandstats, errorstats and latencystats", counted(ours, theirs)),
        ("ACL and CLIENT", sequences(ours, theirs, SEQUENCES)),
        ("CLIENT PAUSE", paused(ours, theirs)),
        ("keyspace events", sequences(ours, theirs, EVENTS) or expired(ours, theirs) or events(ours, theirs, seed)),
        ("CLIENT TRACKING", sequences(ours, theirs, TRACKING) or bounded(ours)),
        ("keys and what commands do to them", keys_told(ours, theirs, seed)),
        ("streams that one dumps the other restores", streams(ours, theirs)),
    ]
