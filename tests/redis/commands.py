"""Random commands of every family, in the words of both servers."""

# Arguments by kind: k a key of the family, o another one, m member or field, n small number, f float, v value.
FAMILIES = {
    "s": """GET k|SET k v|SET k n|SET k v NX|SET k v XX GET|SET k v KEEPTTL|SET k v EX 100|SETNX k v|SETEX k 100 v|PSETEX k 100000 v
        GETSET k v|GETDEL k|GETEX k PERSIST|MGET k o|MSET k v o n|MSETNX k v o v|APPEND k v|STRLEN k|GETRANGE k n n
        SUBSTR k n n|SETRANGE k 2 v|INCR k|DECR k|INCRBY k n|DECRBY k n|INCRBYFLOAT k f|LCS k o|LCS k o LEN|LCS k o IDX""",
    "h": """HSET k m v|HSET k m n m v|HMSET k m v|HSETNX k m v|HGET k m|HMGET k m m|HGETALL k|HKEYS k|HVALS k|HLEN k
        HSTRLEN k m|HEXISTS k m|HDEL k m m|HINCRBY k m n|HINCRBYFLOAT k m f|HRANDFIELD k 100|HSCAN k 0""",
    "l": """LPUSH k v|RPUSH k m m m|LPUSHX k v|RPUSHX k v|LPOP k|RPOP k|LPOP k 2|LLEN k|LINDEX k n|LRANGE k n n|LRANGE k 0 -1
        LSET k n v|LTRIM k n n|LREM k n m|LINSERT k BEFORE m v|LINSERT k AFTER m v|LPOS k m|LPOS k m COUNT 0|LPOS k m RANK -1
        LMOVE k o LEFT RIGHT|RPOPLPUSH k o|LMPOP 2 k o LEFT COUNT 2|BLPOP k 0.01|BRPOP k o 0.01|BLMOVE k o RIGHT LEFT 0.01
        BRPOPLPUSH k o 0.01|BLMPOP 0.01 2 k o RIGHT""",
    "t": """SADD k m m|SREM k m|SCARD k|SISMEMBER k m|SMISMEMBER k m m|SMEMBERS k|SMOVE k o m|SPOP k 100|SRANDMEMBER k 100
        SSCAN k 0|SINTER k o|SUNION k o|SDIFF k o|SINTERSTORE k k o|SUNIONSTORE k k o|SDIFFSTORE k k o|SINTERCARD 2 k o LIMIT 2""",
    "z": """ZADD k n m n m|ZADD k NX n m|ZADD k XX CH n m|ZADD k GT CH f m|ZADD k LT n m|ZADD k INCR f m|ZINCRBY k f m|ZREM k m
        ZCARD k|ZSCORE k m|ZMSCORE k m m|ZRANK k m|ZREVRANK k m|ZPOPMIN k|ZPOPMAX k 2|ZMPOP 2 k o MAX COUNT 2|ZRANDMEMBER k 100
        ZSCAN k 0|ZCOUNT k n +inf|ZRANGE k n n|ZRANGE k 0 -1 WITHSCORES|ZRANGE k ( 1 BYSCORE|ZRANGE k n 9 BYSCORE LIMIT 0 2
        ZRANGE k 9 n BYSCORE REV|ZRANGESTORE k o 0 3|ZREVRANGE k 0 n WITHSCORES|ZRANGEBYSCORE k n +inf WITHSCORES
        ZREVRANGEBYSCORE k +inf n|ZREMRANGEBYRANK k n n|ZREMRANGEBYSCORE k n n
        ZUNION 2 k o WITHSCORES|ZINTER 2 k o WEIGHTS n 2 AGGREGATE MAX|ZDIFF 2 k o|ZUNIONSTORE k 2 k o
        ZINTERSTORE k 2 k o AGGREGATE MIN|ZDIFFSTORE k 2 k o|ZINTERCARD 2 k o|BZPOPMIN k 0.01|BZPOPMAX k 0.01|BZMPOP 0.01 1 k MIN""",
    # Members of one score: of others a range of members means nothing.
    "y": """ZADD k 0 m 0 m|ZREM k m|ZLEXCOUNT k - +|ZLEXCOUNT k [b (d|ZRANGE k - + BYLEX|ZRANGE k + - BYLEX REV LIMIT 1 2|ZRANGEBYLEX k - [c
        ZREVRANGEBYLEX k + -|ZREMRANGEBYLEX k [a (c|ZRANGEBYLEX k (a [e LIMIT 1 -1""",
    "": """DEL k|UNLINK k o|EXISTS k o|TOUCH k|TYPE k|TTL k|PERSIST k|EXPIRE k 100|EXPIRE k 50 GT|PEXPIRE k 100000|EXPIREAT k 9999999999
        PEXPIREAT k 9999999999000|EXPIRETIME k|PEXPIRETIME k|RENAME k o|RENAMENX k o|COPY k o|COPY k o REPLACE|MOVE k 3|OBJECT REFCOUNT k
        KEYS *|SCAN 0 COUNT 1000|DBSIZE|ECHO v|PING|PING v|SELECT 0|WATCH k|UNWATCH|MULTI|EXEC|DISCARD|PUBLISH m v|PUBSUB NUMPAT
        PUBSUB NUMSUB m|GET k|LPUSH k v|SADD k m|ZADD k 1 m|HSET k m v|NOPE k|GET|SET k|SET k v EX 0|SET k v BAD|EXPIRE k v|ROLE x""",
    "flush": "FLUSHDB|FLUSHALL ASYNC|RANDOMKEY",
}


def templates(family):
    """The commands of a family."""
    return [command.strip() for line in FAMILIES[family].splitlines() for command in line.split("|")]


def made(random, family):
    """One command."""
    words = random.choice(templates(family)).split()
    kind = family or random.choice("shltz")
    choose = {
        "k": lambda: kind + random.choice("ab"),
        "o": lambda: kind + random.choice("abc"),
        "m": lambda: random.choice("abcdef"),
        "n": lambda: str(random.randint(-3, 6)),
        "f": lambda: str(random.choice([0.5, 1.25, -2, 3, 10, 1e3])),
        "v": lambda: random.choice(["x", "10", "some words", "", "aXbXc", "y" * 70]),
    }
    return [words[0]] + [choose[word]() if word in choose else word for word in words[1:]]


# Replies in no order.
UNORDERED = {"SMEMBERS", "SINTER", "SUNION", "SDIFF", "SPOP", "SRANDMEMBER", "KEYS", "HKEYS", "HVALS", "HGETALL", "HRANDFIELD",
             "ZRANDMEMBER", "SSCAN", "SCAN", "HSCAN", "ZSCAN"}


# Replies that depend on the millisecond at which a server ran an earlier command.
CLOCKS = {"TTL", "EXPIRETIME", "PEXPIRETIME"}


def comparable(name, reply):
    """A reply as it is to be compared."""
    if name in CLOCKS and isinstance(reply, int) and reply > 0:
        return "a time that each server's clock decided"
    if name in ("SSCAN", "SCAN", "HSCAN", "ZSCAN") and isinstance(reply, list) and len(reply) == 2:
        return sorted(reply[1])
    if name in UNORDERED and isinstance(reply, list):
        return sorted(reply, key=repr)
    return reply
