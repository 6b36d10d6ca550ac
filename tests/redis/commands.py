"""Random commands of every family, in the words of both servers."""

# Arguments by kind: k a key of the family, o another one, m member or field, n small number, f float, v value;
# e an ID that an entry may have, E one above all before, G a group, C a consumer; i a bit, w an element to be counted;
# q, r and u a longitude, a latitude and a distance.
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
    "x": """XADD k E m v|XADD k E m v m v|XADD k E-* m v|XADD k e m v|XADD k NOMKSTREAM E m v|XADD k MAXLEN 9 E m v|XADD k MAXLEN = 5 E m v
        XADD k MAXLEN ~ 5 E m v|XADD k MINID e E m v|XADD k MINID ~ e LIMIT 10 E m v|XADD k MAXLEN 3 LIMIT 2 E m v|XADD k E m
        XADD k 0-0 m v|XADD k m m v|XADD k E m v|XADD k E m v|XTRIM k MAXLEN 6|XTRIM k MINID e|XTRIM k MAXLEN ~ 2|XTRIM k LIMIT 3
        XTRIM k MAXLEN n|XRANGE k - +|XRANGE k e +|XRANGE k (e + COUNT 2|XRANGE k e e|XRANGE k - + COUNT n|XRANGE k m +|XREVRANGE k + -
        XREVRANGE k + e COUNT 2|XREVRANGE k (e -|XLEN k|XDEL k e|XDEL k e e e|XDEL k m|XREAD STREAMS k e|XREAD COUNT 2 STREAMS k o e 0
        XREAD STREAMS k $|XREAD STREAMS k >|XREAD BLOCK 5 STREAMS k o $ $|XREAD BLOCK 5 COUNT 1 STREAMS k e|XREAD COUNT 2 FOO k e
        XREAD BLOCK -1 STREAMS k 0|XREAD BLOCK x STREAMS k 0|XREAD GROUP G C STREAMS k e|XSETID k E|XSETID k e|XSETID k E ENTRIESADDED 40
        XSETID k E ENTRIESADDED 3 MAXDELETEDID e|XSETID k 1|XINFO STREAM k|XINFO STREAM k FULL|XINFO STREAM k FULL COUNT 2|XINFO GROUPS k
        XINFO CONSUMERS k G|XINFO NOPE k|XINFO STREAM k m|XINFO STREAM k|XINFO GROUPS k
        XGROUP CREATE k G 0|XGROUP CREATE k G $ MKSTREAM|XGROUP CREATE k G e ENTRIESREAD 3|XGROUP CREATE k G m|XGROUP CREATE k G
        XGROUP SETID k G e|XGROUP SETID k G $|XGROUP SETID k G 0 ENTRIESREAD n|XGROUP DESTROY k G|XGROUP CREATECONSUMER k G C
        XGROUP DELCONSUMER k G C|XGROUP NOPE|XREADGROUP GROUP G C STREAMS k >|XREADGROUP GROUP G C COUNT 2 STREAMS k >
        XREADGROUP GROUP G C COUNT 1 NOACK STREAMS k >|XREADGROUP GROUP G C STREAMS k 0|XREADGROUP GROUP G C COUNT 2 STREAMS k e
        XREADGROUP GROUP G C COUNT 2 STREAMS k o > >|XREADGROUP GROUP G C BLOCK 5 STREAMS k >|XREADGROUP GROUP G C STREAMS k $
        XREADGROUP GROUP G C COUNT 1 STREAMS k >|XREADGROUP GROUP G C COUNT 3 STREAMS k >|XACK k G e|XACK k G e e e|XACK k G m
        XPENDING k G|XPENDING k G - + 10|XPENDING k G e + 2 C|XPENDING k G IDLE 0 - + 9|XPENDING k G (e + 3|XPENDING k G - +
        XPENDING k G - + m|XCLAIM k G C 0 e|XCLAIM k G C 0 e e FORCE|XCLAIM k G C 0 e JUSTID|XCLAIM k G C 0 e RETRYCOUNT 7 FORCE
        XCLAIM k G C 900000 e e|XCLAIM k G C 0 e FORCE IDLE 5000 LASTID e|XCLAIM k G C x e|XCLAIM k G C 0 e FOO
        XCLAIM k G C 0 e TIME 1000|XAUTOCLAIM k G C 0 0|XAUTOCLAIM k G C 0 e COUNT 2|XAUTOCLAIM k G C 0 - COUNT 1 JUSTID
        XAUTOCLAIM k G C 900000 0|XAUTOCLAIM k G C 0 m|XAUTOCLAIM k G C 0 0 COUNT 0|TYPE k|OBJECT ENCODING k|DEL k|COPY k o|RENAME k o
        SET k v|GET k""",
    "b": """SETBIT k i 1|SETBIT k i 0|SETBIT k i 1|SETBIT k -1 1|SETBIT k i 2|GETBIT k i|GETBIT k x|SET k v|BITCOUNT k|BITCOUNT k n n
        BITCOUNT k n n BIT|BITCOUNT k i i BIT|BITCOUNT k 0 -1 BYTE|BITPOS k 1|BITPOS k 0|BITPOS k 1 n|BITPOS k 0 n|BITPOS k 0 n n
        BITPOS k 1 n n BIT|BITPOS k 0 i i BIT|BITPOS k 2|BITPOS k x|BITOP AND k o o|BITOP OR k o k|BITOP XOR o k o|BITOP NOT k o
        BITOP NOT k o o|BITOP FOO k o|BITFIELD k GET u8 i|BITFIELD k GET i5 #n GET u63 i|BITFIELD k SET u4 i n|BITFIELD k SET i9 i i
        BITFIELD k INCRBY u2 i 1|BITFIELD k INCRBY i64 i 9223372036854775807|BITFIELD k OVERFLOW SAT INCRBY i5 i 9 OVERFLOW FAIL INCRBY u3 i 5
        BITFIELD k OVERFLOW FAIL SET u2 i 9 GET u2 i|BITFIELD k GET u64 0|BITFIELD k FOO|BITFIELD k SET u8 0 x|BITFIELD k OVERFLOW foo
        BITFIELD_RO k GET u7 i GET i64 0|BITFIELD_RO k SET u8 0 1|BITFIELD k|GET k|DEL k|STRLEN k|TYPE k|SETBIT k 1|APPEND k v|GET k""",
    "p": """PFADD k w|PFADD k w w w w|PFADD k|PFADD k m|PFADD k w w w w w w w w w w w w w w w w|PFCOUNT k|PFCOUNT k o|PFCOUNT k|PFMERGE k o
        PFMERGE k|PFMERGE o k o|GET k|GET o|GET k|DEL k|SET k v|GETRANGE k 0 3|STRLEN k|APPEND k m|SETRANGE k 15 x""",
    "g": """GEOADD k q r m|GEOADD k q r m q r m|GEOADD k NX q r m|GEOADD k XX CH q r m|GEOADD k 200 0 m|GEOADD k x 2 m|GEOADD k 1 2
        GEOADD k NX XX 1 2 m|GEOPOS k m m|GEODIST k m m|GEODIST k m m km|GEODIST k m m parsec|GEOHASH k m m|GEOPOS k|ZREM k m|ZCARD k
        GEOSEARCH k FROMLONLAT q r BYRADIUS u km ASC|GEOSEARCH k FROMMEMBER m BYRADIUS u km WITHDIST|GEOSEARCH k FROMLONLAT q r BYBOX u u km
        GEOSEARCH k FROMMEMBER m BYBOX u u mi WITHCOORD WITHHASH WITHDIST DESC|GEOSEARCH k FROMLONLAT q r BYRADIUS u km COUNT 2
        GEOSEARCH k FROMLONLAT q r BYRADIUS -1 m|GEOSEARCH k BYRADIUS u km ASC COUNT 2|GEOSEARCH k FROMLONLAT q r ASC COUNT 1
        GEOSEARCH k FROMLONLAT q r BYRADIUS 1 q|GEOSEARCH k FROMLONLAT q r BYRADIUS u km ANY|GEOSEARCH k FROMLONLAT q r BYRADIUS u km COUNT 0
        GEOSEARCHSTORE k o FROMLONLAT q r BYRADIUS u km|GEOSEARCHSTORE k o FROMMEMBER m BYBOX u u km STOREDIST
        GEOSEARCHSTORE k o FROMLONLAT q r BYRADIUS u km WITHCOORD|GEORADIUS k q r u km ASC|GEORADIUS k q r u ft WITHDIST DESC COUNT 1
        GEORADIUS k q r u km STORE o|GEORADIUS k q r u km STOREDIST o|GEORADIUS k q r u km STORE o WITHDIST|GEORADIUS k q r -1 km
        GEORADIUS_RO k q r u km|GEORADIUS_RO k q r u km STORE o|GEORADIUSBYMEMBER k m u km WITHCOORD|GEORADIUSBYMEMBER k m u mi STORE o
        GEORADIUSBYMEMBER_RO k m u km|GEORADIUS k x r u km|ZRANGE k 0 -1""",
    "S": """RPUSH k n n n|RPUSH k m m|RPUSH k f n|LPOP k|DEL k|DEL k|SADD k n n n|ZADD k n m n n|SET w_m n|SET w_n f|SET w_m v|HSET h_m a n b m|HSET h_n a f
        DEL w_m|SORT k|SORT k DESC|SORT k ALPHA|SORT k ALPHA DESC LIMIT 1 2|SORT k LIMIT n n|SORT k BY w_* GET #|SORT k BY w_* GET w_*
        SORT k BY h_*->a GET # GET h_*->b|SORT k BY nosort GET #|SORT k BY h_*->a DESC|SORT k STORE o|SORT k ALPHA STORE o
        SORT k BY w_* GET # GET nothing STORE o|SORT k GET w_* GET nothing ALPHA|SORT_RO k|SORT_RO k ALPHA DESC|SORT_RO k STORE o|SORT k LIMIT x 1
        SORT k FOO|SORT k BY|LRANGE o 0 -1|TYPE k|SORT k BY w_*""",
    # Members of one score: of others a range of members means nothing.
    "y": """ZADD k 0 m 0 m|ZREM k m|ZLEXCOUNT k - +|ZLEXCOUNT k [b (d|ZRANGE k - + BYLEX|ZRANGE k + - BYLEX REV LIMIT 1 2|ZRANGEBYLEX k - [c
        ZREVRANGEBYLEX k + -|ZREMRANGEBYLEX k [a (c|ZRANGEBYLEX k (a [e LIMIT 1 -1""",
    "": """DEL k|UNLINK k o|EXISTS k o|TOUCH k|TYPE k|TTL k|PERSIST k|EXPIRE k 100|EXPIRE k 50 GT|PEXPIRE k 100000|EXPIREAT k 9999999999
        PEXPIREAT k 9999999999000|EXPIRETIME k|PEXPIRETIME k|RENAME k o|RENAMENX k o|COPY k o|COPY k o REPLACE|MOVE k 3|OBJECT REFCOUNT k
        KEYS *|SCAN 0 COUNT 1000|DBSIZE|ECHO v|PING|PING v|SELECT 0|WATCH k|UNWATCH|MULTI|EXEC|DISCARD|PUBLISH m v|PUBSUB NUMPAT
        PUBSUB NUMSUB m|GET k|LPUSH k v|SADD k m|ZADD k 1 m|HSET k m v|NOPE k|GET|SET k|SET k v EX 0|SET k v BAD|EXPIRE k v|ROLE x
        DUMP k|RESTORE k 0 v|RESTORE k -1 v REPLACE|RESTORE k 0 v NOPE|MEMORY USAGE k""",
    # Scripts without blanks: words are what is between them.
    "L": """EVAL return(redis.call('set',KEYS[1],ARGV[1])) 1 k v|EVAL return(redis.call('get',KEYS[1])) 1 k|EVAL return{KEYS[1],ARGV[1],#ARGV} 1 k v
        EVAL return(redis.pcall('lpush',KEYS[1],ARGV[1])) 1 k v|EVAL return(redis.call('lpush',KEYS[1],ARGV[1])) 1 k v|EVAL return(nope) 0
        EVAL return(cjson.encode({KEYS[1],1.5,{a='b/'}})) 1 k|EVAL return(cjson.decode(ARGV[1])) 0 v|EVAL return(error(ARGV[1])) 0 v|EVAL x=1 0
        EVAL return{1,{2,'x'},false,3} 0|EVAL return{1,nil,3} 0|EVAL return(redis.sha1hex(ARGV[1])) 0 v|EVAL return(bit.band(ARGV[1],255)) 0 n
        EVAL return(struct.pack('>I2i4',5,-2)) 0|EVAL return(cmsgpack.pack({1,-2,'x',{a=1.5}})) 0|EVAL return{cmsgpack.unpack(cmsgpack.pack(ARGV[1]))} 0 v
        EVAL return(redis.error_reply(ARGV[1])) 0 v|EVAL return(redis.status_reply('GOOD')) 0|EVAL return 0|EVAL return(1) x|EVAL return(1) 5 k
        EVAL return(1) -1|EVAL_RO return(redis.call('set',KEYS[1],'x')) 1 k|EVALSHA nosuch 0|SCRIPT EXISTS m|SCRIPT LOAD return(KEYS[1])
        EVALSHA c25612b82607a58c0a27b966f5ea53f2556fcb4e 1 k|EVALSHA_RO c25612b82607a58c0a27b966f5ea53f2556fcb4e 1 k|SCRIPT EXISTS c25612b82607a58c0a27b966f5ea53f2556fcb4e|SCRIPT KILL|SCRIPT FLUSH
        EVAL return(tostring(ARGV[1]+0.5)) 0 n|EVAL return(redis.call('incrby',KEYS[1],ARGV[1])) 1 k n|EVAL return{pcall(redis.call,'nope')} 0
        EVAL return(redis.call('blpop',KEYS[1],0)) 1 k|EVAL return(redis.call('get')) 0|EVAL return(redis.call()) 0|EVAL return(-3.9) 0|EVAL return) 0
        EVAL return(redis.call('zrange',KEYS[1],0,-1,'withscores')) 1 k|EVAL return(redis.call('ping')) 0|EVAL return(redis.call('select',9)) 0
        EVAL redis.setresp(3)return(redis.call('get',KEYS[1])) 1 k|EVAL return(redis.setresp(4)) 0|DEL k|GET k|TYPE k|EVAL return(string.rep('x',3)) 0""",
    # CODE is a library of functions.
    "F": """FUNCTION LOAD CODE|FUNCTION LOAD REPLACE CODE|FUNCTION LOAD REPLACE CODE|FUNCTION LOAD FOO CODE|FUNCTION LIST
        FUNCTION LIST WITHCODE|FUNCTION LIST LIBRARYNAME one*|FUNCTION LIST FOO|FUNCTION LIST LIBRARYNAME|FUNCTION DELETE one|FUNCTION DELETE none
        FUNCTION STATS|FUNCTION KILL|FUNCTION DUMP|FUNCTION RESTORE v|FUNCTION FLUSH|FUNCTION FLUSH FOO
        FCALL get 1 k|FCALL set 1 k v|FCALL set 1 k v|FCALL_RO get 1 k|FCALL_RO set 1 k v|FCALL get -1|FCALL get 3 k|FCALL none 0|FCALL get
        FCALL wrong 0|FCALL globals 1 k|FCALL told 2 k o m n|FCALL error 0|FCALL nil 0|EVAL return(redis.call('fcall','get',0)) 0|GET k|DEL k""",
    "flush": "FLUSHDB|FLUSHALL ASYNC|RANDOMKEY",
}


# Libraries, right and wrong ones.
LIBRARIES = [
    """#!lua name=one
local function get(keys) return redis.call('get', keys[1]) end
redis.register_function{function_name='get', callback=get, flags={'no-writes'}, description='reads'}
redis.register_function('set', function(keys, args) return redis.call('set', keys[1], args[1]) end)
redis.register_function('wrong', function() return redis.call('nonsense') end)
redis.register_function('globals', function() return KEYS[1] end)""",
    """#!lua name=two
redis.register_function('told', function(keys, args) return {keys[1], args[1], #keys, #args} end)
redis.register_function('error', function() return redis.error_reply('MY error') end)
redis.register_function('nil', function() local x = nil + 1 end)""",
    "#!lua name=three\nredis.register_function('get', function() return 3 end)",
    "return 1", "#!lua\nreturn 1", "#!lua name=bad-name\nreturn 1", "#!lua name=x\nreturn 1", "#!js name=x\nreturn 1", "#!lua name=x foo=1\nreturn 1",
    "#!lua name=x name=y\nreturn 1", "#!lua name=x", "#!lua name=x\nsyntax error here", "#!lua name=x\na=1", "#!lua name=x\nlocal t={} t.x.y=1",
    "#!lua name=x\nreturn KEYS[1]", "#!lua name=x\nredis.register_function()", "#!lua name=x\nredis.register_function('g')",
    "#!lua name=x\nredis.register_function('g', 1)", "#!lua name=x\nredis.register_function({}, function() end)",
    "#!lua name=x\nredis.register_function('g g', function() end)", "#!lua name=x\nredis.register_function{foo=1}",
    "#!lua name=x\nredis.register_function{function_name='g'}", "#!lua name=x\nredis.register_function{callback=function() end}",
    "#!lua name=x\nredis.register_function{function_name='g', callback=1}", "#!lua name=x\nredis.register_function{function_name='g', callback=function() end, flags=1}",
    "#!lua name=x\nredis.register_function{function_name='g', callback=function() end, flags={'foo'}}",
    "#!lua name=x\nredis.register_function('g', function() end) redis.register_function('g', function() end)",
]


def templates(family):
    """The commands of a family."""
    return [command.strip() for line in FAMILIES[family].splitlines() for command in line.split("|")]


class Numbers:
    """IDs of entries: each is above all before."""

    last = 0

    @classmethod
    def next(cls):
        """A new one."""
        cls.last += 1
        return str(cls.last)


def made(random, family, template=None):
    """One command, of a template or of any of its family."""
    words = (template or random.choice(templates(family))).split()
    kind = family or random.choice("shltzxbpgS")
    choose = {
        "k": lambda: kind + random.choice("ab"),
        "o": lambda: kind + random.choice("abc"),
        "m": lambda: random.choice("abcdef"),
        "n": lambda: str(random.randint(-3, 6)),
        "f": lambda: str(random.choice([0.5, 1.25, -2, 3, 10, 1e3])),
        "e": lambda: f"{max(1, Numbers.last - random.randint(0, 14))}" + random.choice(["", "", "-0", "-1"]),
        "w": lambda: f"{random.choice('abc')}{random.randint(0, 4000)}",
        "i": lambda: str(random.choice([0, 1, 7, 8, 13, 31, 40, 63, 64, 101])),
        "q": lambda: str(random.choice([13.361389, 15.087269, -122.4, 179.99, -179.99, 0, round(random.uniform(-180, 180), 4)])),
        "r": lambda: str(random.choice([38.115556, 37.502669, 37.7, 84.9, -84.9, 0, round(random.uniform(-85, 85), 4)])),
        "u": lambda: str(random.choice([1, 10, 200, 1000, 5000, 20000])),
        "G": lambda: random.choice(["one", "two"]),
        "C": lambda: random.choice(["ann", "bob"]),
        "v": lambda: random.choice(["x", "10", "some words", "", "aXbXc", "y" * 70]),
    }
    def argument(word):
        if word == "CODE":
            return random.choice(LIBRARIES[:3]) if random.random() < 0.5 else random.choice(LIBRARIES)
        if word in ("E", "E-*"):
            return word.replace("E", Numbers.next())
        if word[:2] in ("w_", "h_") and word[2:] in ("m", "n"):
            return word[:2] + choose[word[2:]]()
        if word == "#n":
            return "#" + str(random.randint(0, 4))
        if word == "(e":
            return "(" + choose["e"]()
        return choose[word]() if word in choose else word

    return [words[0]] + [argument(word) for word in words[1:]]


# Replies in no order.
UNORDERED = {"SMEMBERS", "SINTER", "SUNION", "SDIFF", "SPOP", "SRANDMEMBER", "KEYS", "HKEYS", "HVALS", "HGETALL", "HRANDFIELD",
             "ZRANDMEMBER", "SSCAN", "SCAN", "HSCAN", "ZSCAN", "GEORADIUS_RO", "GEORADIUSBYMEMBER_RO", "GEOSEARCH", "GEORADIUS", "GEORADIUSBYMEMBER"}


# Replies that depend on the millisecond at which a server ran an earlier command.
CLOCKS = {"TTL", "EXPIRETIME", "PEXPIRETIME"}


# What XINFO tells that depends on clocks, or that Redis 7.2 does otherwise than 7.0: a consumer is made by any attempt to read.
UNTOLD = {b"idle", b"inactive", b"seen-time", b"active-time", b"radix-tree-keys", b"radix-tree-nodes"}


def told(reply):
    """What XINFO tells, apart from that."""
    if isinstance(reply, int) and reply > 10**11:
        return "a time"
    if not isinstance(reply, list):
        return reply
    names = reply[::2]
    if len(reply) % 2 or not reply or not all(isinstance(name, bytes) for name in names):
        shown = [told(part) for part in reply]
        return [part for part in shown if not (isinstance(part, dict) and part.get(b"idle-consumer"))]
    pairs = {name: told(value) for name, value in zip(names, reply[1::2]) if name not in UNTOLD}
    if b"name" in pairs and b"last-delivered-id" not in pairs and 0 in (pairs.get(b"pending"), pairs.get(b"pel-count")):
        return {b"idle-consumer": True}
    if b"last-delivered-id" in pairs and not isinstance(pairs.get(b"consumers"), list):
        pairs.pop(b"consumers", None)
    return pairs


def comparable(words, reply):
    """A reply as it is to be compared."""
    name = words[0]
    if name == "DUMP" or words[:2] in (["MEMORY", "USAGE"], ["FUNCTION", "DUMP"]):
        # Bytes that each server chooses; see `exchange` in run.py.
        return reply is not None
    if words[:2] == ["FUNCTION", "LIST"] and isinstance(reply, list):
        # Functions and libraries come in no order.
        return sorted(([sorted(part, key=repr) if isinstance(part, list) else part for part in library] for library in reply), key=repr)
    if "nosort" in words and isinstance(reply, list):
        return sorted(reply, key=repr)
    if name == "XINFO":
        return told(reply)
    if words[:2] == ["XGROUP", "CREATECONSUMER"] and isinstance(reply, int):
        return "whether there was such a consumer"
    if name == "XPENDING" and isinstance(reply, list) and all(isinstance(part, list) and len(part) == 4 for part in reply):
        return [part[:2] + part[3:] for part in reply]
    if name in CLOCKS and isinstance(reply, int) and reply > 0:
        return "a time that each server's clock decided"
    if name in ("SSCAN", "SCAN", "HSCAN", "ZSCAN") and isinstance(reply, list) and len(reply) == 2:
        return sorted(reply[1])
    if name in UNORDERED and isinstance(reply, list):
        return sorted(reply, key=repr)
    return reply
