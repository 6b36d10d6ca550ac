"""What operators ask of a server, and what clients are told without asking: beside redis-server."""

import re
import select

from resp import Link, Push

# A step is a connection and a command; @b is the number of connection b. Replies are compared; and after each step of a connection in small
# letters, what those in capitals were told without asking.
SEQUENCES = """a ACL SETUSER u on >p ~a* &ch* +get +auth +multi +exec +discard +publish +ping|a ACL GETUSER u|a ACL DRYRUN u get abc|a ACL DRYRUN u get x
a ACL DRYRUN u set abc 1|a ACL DRYRUN nobody get x|a ACL DRYRUN u nope|a ACL DRYRUN u get|a ACL DRYRUN u publish chan x|a ACL DRYRUN u publish other x
a ACL SETUSER v on nopass allkeys allcommands|a ACL GETUSER v|a ACL SETUSER v resetkeys -@all|a ACL GETUSER v|a ACL SETUSER v #zz|a ACL SETUSER v +nope|a ACL SETUSER v +@nope
a ACL SETUSER w +@all -set +get -@list|a ACL GETUSER w|a ACL SETUSER w +config|get allchannels -@all +acl|whoami|a ACL GETUSER w|a ACL GETUSER nobody
a ACL SETUSER w on >one >two <one|a ACL GETUSER w|a ACL SETUSER w <three|a ACL SETUSER w resetpass|a ACL GETUSER w|a ACL LIST|a ACL USERS|a ACL DELUSER v w|a ACL USERS
a ACL GENPASS 0|a ACL GENPASS 5000|a ACL GENPASS x|a ACL LOG RESET|b AUTH u p|b SET a 1|b SET a 1|b GET x|b GET abc|b PUBLISH other m|b PUBLISH chan m|b MULTI|b GET x|b DISCARD|b AUTH u q|a ACL LOG|a ACL LOG 1|a ACL LOG RESET|a ACL LOG|a ACL LOG x
a ACL SETUSER u +client +info|b AUTH u p|a ACL DELUSER u|b GET a
a ACL|a ACL NOPE|a ACL GETUSER|a CLIENT NOPE|a CLIENT ID x|a CONFIG NOPE|a CONFIG GET|a LATENCY NOPE|a LATENCY HISTORY|a MEMORY NOPE|a MEMORY USAGE|a PUBSUB NOPE|a SLOWLOG NOPE|a SCRIPT NOPE|a SCRIPT LOAD|a FUNCTION NOPE|a COMMAND NOPE
a CLIENT NO-EVICT on|a CLIENT NO-EVICT x|a CLIENT KILL LADDR 1.1.1.1:1|a CLIENT KILL FOO bar|a CLIENT KILL ID x|a CLIENT KILL ID 0|a CLIENT KILL TYPE nope|a CLIENT KILL USER nobody|a CLIENT KILL SKIPME x|a CLIENT KILL ID 1 LADDR
b PING|a CLIENT KILL ID @b|b PING|c SUBSCRIBE x|a CLIENT KILL TYPE pubsub LADDR 1.1.1.1:1|a CLIENT KILL TYPE pubsub|c PING
a CLIENT PAUSE x|a CLIENT PAUSE -1|a CLIENT PAUSE 1 FOO|a CLIENT UNPAUSE|a CLIENT PAUSE|a CLIENT UNPAUSE x"""

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
        if words[:2] == ["ACL", "LOG"] and isinstance(reply, list):
            reply = log_of(reply)
        if words[:2] == ["ACL", "LIST"]:
            reply = [user for user in reply if b"default" not in user]
        told = [(other, polled(link)) for other, link in sorted(self.links.items()) if other.isupper()] if name.islower() else []
        numbers = {link.number: other for other, link in self.links.items()}
        return [step, known(same(reply), numbers), known(before, numbers), known(told, numbers)]

    def close(self):
        for link in self.links.values():
            link.close()


def known(reply, numbers):
    """A reply with names of connections in place of their numbers."""
    if isinstance(reply, (list, tuple)):
        return [known(part, numbers) for part in reply]
    return numbers.get(reply, reply) if type(reply) is int and reply > 2 else reply


def sequences(ours, theirs, lines):
    """The replies to sequences of steps on two ports."""
    for line in lines.splitlines():
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
        for command in COUNTED.split("|"):
            link.call(*command.split())
        lines = link.call("INFO", "commandstats").decode() + link.call("INFO", "errorstats").decode() + link.call("INFO", "latencystats").decode()
        lines = re.sub(r"usec=\d+,usec_per_call=[0-9.]+,|:p50=[0-9.]+,p99=[0-9.]+,p99.9=[0-9.]+", "", lines)
        # INFO itself was asked, by us, as often as it was answered.
        sections.append(sorted(line for line in lines.split("\r\n") if line))
        histogram = link.call("LATENCY", "HISTOGRAM", "get", "client|getname", "nothing")
        sections[-1].append([histogram[0], histogram[1][:2], histogram[2], histogram[3][:2]] if len(histogram) == 4 else histogram)
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
