//! What scripts see, answer and cannot do. Texts are those of redis-server 7.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use manxdb_redis::keyspace::{Effects, Load, LoadedRow, rows};
use manxdb_redis::resp::Protocol;
use manxdb_redis::server::scripting::{ScriptFate, ScriptHost};
use manxdb_redis::server::{ClientId, Server, Settings};
use manxdb_redis::{Command, Keyspace, Reply, Stamp};

const NOW: u64 = 1_800_000_000_000;

struct One {
    server: Server,
    client: ClientId,
}

impl One {
    fn new() -> Self {
        let mut server = Server::new(Keyspace::new(), Settings::default(), NOW);
        let client = server.connect("test".to_owned(), NOW);
        Self { server, client }
    }

    fn reply(&mut self, words: &[&str]) -> Reply {
        let stamp = Stamp::new(NOW, 7);
        self.server
            .handle(self.client, &Command::of(words), stamp)
            .reply
    }

    fn call(&mut self, words: &[&str]) -> String {
        shown(&self.reply(words))
    }

    fn eval(&mut self, script: &str) -> String {
        let shown = self.call(&["EVAL", script, "0"]);
        // Which script it was is known here.
        match shown.split_once(" script: ") {
            Some((error, place)) => match place.split_once(", ") {
                Some((_, place)) => format!("{error}, {place}"),
                None => error.to_owned(),
            },
            None => shown,
        }
    }
}

fn shown(reply: &Reply) -> String {
    let mut out = Vec::new();
    reply.encode(Protocol::Resp2, &mut out);
    let text = String::from_utf8_lossy(&out).into_owned();
    text.trim_end().replace("\r\n", " ")
}

#[test]
fn scripts_answer_as_in_redis() {
    let mut one = One::new();
    one.call(&["SET", "s", "abc"]);
    one.call(&["HSET", "h", "f", "v"]);
    let place = ", on @user_script:1.";
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    for (script, expected) in [
        ("return 3.99", ":3".to_owned()),
        ("return 'x'", "$1 x".to_owned()),
        ("return true", ":1".to_owned()),
        ("return false", "$-1".to_owned()),
        ("return {1,nil,3}", "*1 :1".to_owned()),
        ("return {1,{'a'},'b'}", "*3 :1 *1 $1 a $1 b".to_owned()),
        ("return redis.status_reply('x')", "+x".to_owned()),
        ("return redis.error_reply('x')", "-ERR x".to_owned()),
        ("return redis.error_reply('MY x')", "-MY x".to_owned()),
        ("return redis.error_reply({})", "-ERR wrong number or type of arguments".to_owned()),
        ("return {err='x y'}", "-x y".to_owned()),
        ("return redis.call('get','s')", "$3 abc".to_owned()),
        ("return redis.call('get','none')", "$-1".to_owned()),
        ("return type(redis.call('get','none'))", "$7 boolean".to_owned()),
        ("return redis.call('set','n',tonumber('1.5')) and redis.call('get','n')", "$3 1.5".to_owned()),
        ("return redis.call('hgetall','h')", "*2 $1 f $1 v".to_owned()),
        ("redis.setresp(3) return redis.call('hgetall','h').map.f", "$1 v".to_owned()),
        ("redis.setresp(3) return {double=1.5}", "$3 1.5".to_owned()),
        ("error('x')", format!("-ERR user_script:1: x{place}")),
        ("error({err='My Err'})", format!("-My Err{place}")),
        ("return redis.call('incr')", format!("-ERR Wrong number of args calling Redis command from script{place}")),
        ("return redis.call('nope')", format!("-ERR Unknown Redis command called from script{place}")),
        ("return redis.call('lpush','s','1')", format!("{wrong_type}{place}")),
        ("return redis.pcall('lpush','s','1')", wrong_type.to_owned()),
        ("return redis.pcall('lpush','s','1')['err']", format!("${} {}", wrong_type.len() - 1, &wrong_type[1..])),
        ("local ok, e = pcall(redis.call, 'lpush','s','1') return {ok, e}", format!("*2 $-1 ${} {}", wrong_type.len() - 1, &wrong_type[1..])),
        ("x=1", format!("-ERR user_script:1: Attempt to modify a readonly table{place}")),
        ("string.x=1", format!("-ERR user_script:1: Attempt to modify a readonly table{place}")),
        ("rawset(_G,'x',1)", format!("-ERR Attempt to modify a readonly table{place}")),
        ("setmetatable(_G,{})", format!("-ERR Attempt to modify a readonly table{place}")),
        ("return y", format!("-ERR user_script:1: Script attempted to access nonexistent global variable 'y'{place}")),
        ("return os", format!("-ERR user_script:1: Script attempted to access nonexistent global variable 'os'{place}")),
        ("return return", "-ERR Error compiling script (new function): user_script:1: unexpected symbol near 'return'".to_owned()),
        ("return redis.call('blpop','l',0)", format!("-ERR This Redis command is not allowed from script{place}")),
        ("return redis.call('eval','return 1',0)", format!("-ERR This Redis command is not allowed from script{place}")),
        ("return redis.call()", format!("-ERR Please specify at least one argument for this redis lib call{place}")),
        ("return redis.call('set','a',{})", format!("-ERR Lua redis lib command arguments must be strings or integers{place}")),
        ("return redis.sha1hex('a')", "$40 86f7e437faa5a7fce15d1ddcb9eaeaea377667b8".to_owned()),
        ("return redis.sha1hex()", format!("-ERR user_script:1: wrong number of arguments{place}")),
        ("local a={} a[1]=a return a", "-ERR reached lua stack limit".to_owned()),
        ("local function f() return 1+f() end return f()", format!("-ERR user_script:1: stack overflow{place}")),
        ("return math.random(1,1)", ":1".to_owned()),
    ] {
        assert_eq!(one.eval(script), expected, "{script}");
    }
}

#[test]
fn libraries_do_what_redis_ones_do() {
    let mut one = One::new();
    for (script, expected) in [
        ("return cjson.encode({a={}, b=nil})", "$8 {\"a\":{}}"),
        (
            "return cjson.encode({'/x', 1.5, true, cjson.null, 'q\"\\n'})",
            "$33 [\"\\/x\",1.5,true,null,\"q\\\"\\n\"]",
        ),
        ("return cjson.encode({[1]=1,[3]=3})", "$10 [1,null,3]"),
        (
            "local v = cjson.decode('{\"a\":[1,2,{\"b\":null}],\"c\":\"\\\\u00e9\"}') return {v.a[2], v.c, tostring(v.a[3].b == cjson.null)}",
            "*3 :2 $2 \u{e9} $4 true",
        ),
        (
            "return cjson.decode('{')",
            "-ERR user_script:1: Expected object key string but found T_END at character 2, on @user_script:1.",
        ),
        (
            "return cjson.decode('[1,]')",
            "-ERR user_script:1: Expected value but found T_ARR_END at character 4, on @user_script:1.",
        ),
        (
            "return cjson.decode('[1] x')",
            "-ERR user_script:1: Expected the end but found invalid token at character 5, on @user_script:1.",
        ),
        (
            "local ok, e = pcall(cjson.decode, '') return {ok, e}",
            "*2 $-1 $49 Expected value but found T_END at character 1",
        ),
        (
            "return cjson.encode(print)",
            "-ERR user_script:1: Script attempted to access nonexistent global variable 'print', on @user_script:1.",
        ),
        (
            "local v = cmsgpack.unpack(cmsgpack.pack({1,-7,300,-70000,1.5,'x',true,{a='b'}})) return {v[2],v[3],v[4],v[5]*2,v[6],v[7],v[8].a}",
            "*7 :-7 :300 :-70000 :3 $1 x :1 $1 b",
        ),
        (
            "return {cmsgpack.unpack(cmsgpack.pack(1,'a'))}",
            "*2 :1 $1 a",
        ),
        (
            "return {cmsgpack.unpack_limit(cmsgpack.pack(1,'a',3), 1, 1)}",
            "*2 :3 $1 a",
        ),
        (
            "return cmsgpack.unpack('\\217')",
            "-ERR user_script:1: Missing bytes in input., on @user_script:1.",
        ),
        (
            "return {struct.unpack('>I2hsc2', struct.pack('>I2hsc2', 513, -2, 'ab', 'xyz'))}",
            "*5 :513 :-2 $2 ab $2 xy :10",
        ),
        ("return struct.size('!4bi')", ":8"),
        (
            "return {bit.band(0xff, 0x0f), bit.bor(1, 2), bit.bxor(3, 1), bit.bnot(0), bit.lshift(1, 31), bit.rshift(-1, 28), bit.arshift(-16, 2)}",
            "*7 :15 :3 :2 :-1 :-2147483648 :15 :-4",
        ),
        (
            "return {bit.tohex(255), bit.tohex(255, -4), bit.bswap(1), bit.rol(1, 33), bit.tobit(4294967295)}",
            "*5 $8 000000ff $4 00FF :16777216 :2 :-1",
        ),
        (
            "return {table.concat({'a','b'}, '-'), ('x'):rep(3), string.format('%05.1f', 2.25)}",
            "*3 $3 a-b $3 xxx $5 002.2",
        ),
        (
            "local c = coroutine.wrap(function(a) local b = coroutine.yield(a + 1) return b * 2 end) return {c(1), c(5)}",
            "*2 :2 :10",
        ),
        ("return loadstring('return 1 + 1')()", ":2"),
        (
            "local t = {} for k in pairs(bit) do t[#t + 1] = k end return #t",
            ":12",
        ),
    ] {
        let expected = match expected {
            // The length is that of the text behind it.
            text if text.starts_with("*2 $-1 $49") => text.replace("$49", "$44"),
            text => text.to_owned(),
        };
        let found = one.eval(script);
        let without_lengths = |text: &str| -> String {
            text.split(' ')
                .filter(|word| !word.starts_with('$'))
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            without_lengths(&found),
            without_lengths(&expected),
            "{script}"
        );
    }
}

#[test]
fn keys_args_names_and_numbers_of_keys() {
    let mut one = One::new();
    assert_eq!(
        one.call(&[
            "EVAL",
            "return {KEYS[1],KEYS[2],ARGV[1]}",
            "2",
            "a",
            "b",
            "c"
        ]),
        "*3 $1 a $1 b $1 c"
    );
    for (number, error) in [
        ("x", "-ERR value is not an integer or out of range"),
        (
            "3",
            "-ERR Number of keys can't be greater than number of args",
        ),
        ("-1", "-ERR Number of keys can't be negative"),
    ] {
        assert_eq!(one.call(&["EVAL", "return 1", number, "a"]), error);
    }
    let name = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db";
    let none = "-NOSCRIPT No matching script. Please use EVAL.";
    assert_eq!(one.call(&["EVALSHA", name, "0"]), none);
    assert_eq!(
        one.call(&["SCRIPT", "LOAD", "return 1"]),
        format!("$40 {name}")
    );
    assert_eq!(one.call(&["EVALSHA", &name.to_uppercase(), "0"]), ":1");
    assert_eq!(one.call(&["SCRIPT", "EXISTS", name, "x"]), "*2 :1 :0");
    assert_eq!(one.call(&["SCRIPT", "FLUSH"]), "+OK");
    assert_eq!(one.call(&["EVALSHA", name, "0"]), none);
    assert_eq!(
        one.call(&["SCRIPT", "KILL"]),
        "-NOTBUSY No scripts in execution right now."
    );
    let refused = one.call(&["EVAL_RO", "return redis.call('set','a','b')", "0"]);
    assert!(
        refused.starts_with("-ERR Write commands are not allowed from read-only scripts."),
        "{refused}"
    );
    assert_eq!(
        one.call(&["EVAL", "return redis.call('select', 3)", "0"]),
        "+OK"
    );
    one.call(&["SET", "here", "1"]);
    assert_eq!(
        one.server.keyspace.len(0),
        1,
        "SELECT of a script is its own"
    );
}

#[test]
fn nothing_of_a_script_is_seen_by_the_next() {
    let mut one = One::new();
    for script in [
        "getmetatable('').__index = nil",
        "table.insert(redis, 'x')",
        "table.sort(_G)",
        "KEYS = 1",
        "redis.call = nil",
        "getmetatable(_G).__index = nil",
        "rawset(string, 'rep', nil)",
        "collectgarbage('stop') local f = _G.redis f.x = 1",
        "loadstring('string.rep = nil')()",
    ] {
        one.eval(script);
        assert_eq!(
            one.eval("return {('a'):rep(2), type(redis.call), #KEYS, redis[1]}"),
            "*3 $2 aa $8 function :0",
            "{script}"
        );
    }
    for name in [
        "io", "os", "debug", "require", "package", "dofile", "loadfile", "print", "getfenv",
        "setfenv", "newproxy", "module",
    ] {
        assert!(
            one.eval(&format!("return {name}"))
                .contains("nonexistent global variable"),
            "{name}"
        );
    }
    assert_eq!(one.eval("return string.dump"), "$-1");
    assert_eq!(
        one.eval("local made, why = loadstring('\\27Lua') return why"),
        "$22 bytecode is not loaded"
    );
}

#[test]
fn what_a_script_writes_is_one_piece_and_the_same_each_time() {
    let run = || {
        let mut one = One::new();
        let script = "redis.call('sadd', KEYS[1], 'a', 'b', 'c', 'd') local one = redis.call('spop', KEYS[1]) \
                      redis.call('set', 'at', redis.call('time')[1]) return {one, math.random(1000000), math.random(1000000)}";
        let command = Command::of(&["EVAL", script, "1", "set"]);
        let handled = one.server.handle(one.client, &command, Stamp::new(NOW, 99));
        (shown(&handled.reply), handled.effects)
    };
    let (reply, effects) = run();
    assert!(effects.rows.len() >= 3, "{effects:?}");
    assert_eq!((reply.clone(), effects), run());
    assert!(reply.starts_with("*3 $1 "), "{reply}");
}

/// Another client ends the script after some looks at the clock.
struct Killer {
    looks: u32,
    other: ClientId,
    answers: Vec<String>,
}

impl ScriptHost for Killer {
    fn load(&mut self, _load: Load) -> Option<LoadedRow> {
        None
    }

    fn load_names(&mut self, _keyspace: &mut Keyspace) -> bool {
        false
    }

    fn interrupt(&mut self, server: &mut Server) -> ScriptFate {
        self.looks += 1;
        let mut ask = |words: &[&str]| {
            let reply =
                server.handle_while_busy(self.other, &Command::of(words), Stamp::new(NOW, 1));
            self.answers.push(shown(&reply));
        };
        match self.looks {
            1 => ask(&["GET", "a"]),
            2 => ask(&["SCRIPT", "KILL"]),
            1000.. => return ScriptFate::IsAbandoned,
            _ => {}
        }
        ScriptFate::GoesOn
    }
}

fn killed(script: &str) -> (String, Vec<String>, One) {
    let mut one = One::new();
    let other = one.server.connect("other".to_owned(), NOW);
    let mut host = Killer {
        looks: 0,
        other,
        answers: Vec::new(),
    };
    let command = Command::of(&["EVAL", script, "0"]);
    let handled = one
        .server
        .handle_in(one.client, &command, Stamp::new(NOW, 1), &mut host);
    (shown(&handled.reply), host.answers, one)
}

#[test]
fn an_endless_script_is_killed_wherever_it_is() {
    for script in [
        "while true do end",
        "while true do pcall(function() while true do end end) end",
        "while true do pcall(pcall, pcall, function() while true do end end) end",
        "while true do xpcall(function() while true do end end, function() while true do end end) end",
        "while true do local c = coroutine.create(function() while true do end end) coroutine.resume(c) end",
        "while true do local c = coroutine.wrap(function() while true do end end) pcall(c) end",
        "local c = coroutine.create(function() while true do pcall(function() while true do end end) end end) \
         while true do coroutine.resume(c) end",
        "while true do redis.pcall('ping') end",
        "local t = setmetatable({}, {__index = function() while true do end end}) return t.x",
        "while true do pcall(error, setmetatable({}, {__tostring = function() while true do end end})) end",
    ] {
        let (reply, answers, mut one) = killed(script);
        assert!(
            reply.starts_with("-ERR Script killed by user with SCRIPT KILL..."),
            "{script}: {reply}"
        );
        assert!(
            answers[0].starts_with("-BUSY Redis is busy running a script."),
            "{answers:?}"
        );
        assert_eq!(answers[1], "+OK");
        assert_eq!(one.eval("return 1"), ":1", "{script}");
    }
}

#[test]
fn a_script_that_wrote_is_not_killed() {
    let (_, answers, _) = killed("redis.call('set', 'a', 'b') while true do end");
    assert!(
        answers[1].starts_with("-UNKILLABLE Sorry the script already executed write commands"),
        "{answers:?}"
    );
}

#[test]
fn memory_of_scripts_is_limited() {
    let mut one = One::new();
    for script in [
        "local t = {} while true do t[#t + 1] = string.rep('x', 1000000) .. #t end",
        "local s = 'x' while true do s = s .. s end",
        "local t = {} pcall(function() while true do t[#t + 1] = string.rep('x', 1000000) .. #t end end) return #t > 10000",
        "return string.rep('x', 300000000)",
    ] {
        let reply = one.eval(script);
        assert!(
            reply.contains("not enough memory") || reply == "$-1",
            "{script}: {reply}"
        );
        assert_eq!(
            one.eval("return {('x'):rep(3), 1}"),
            "*2 $3 xxx :1",
            "{script}"
        );
    }
    let wide = "local a = {} for i = 1, 100 do a[i] = a end return pcall(cmsgpack.pack, a)";
    assert_eq!(one.eval(wide), "$-1");
}

#[test]
fn deep_recursion_is_an_error() {
    // As much stack as the loop of a server has.
    let thread = std::thread::Builder::new().stack_size(16 << 20);
    thread.spawn(recurse_deeply).unwrap().join().unwrap();
}

fn recurse_deeply() {
    let mut one = One::new();
    for script in [
        "local function f() return (f()) end return f()",
        "local function f() return pcall(f) end return f()",
        "local function f() return (string.gsub('x', 'x', f)) end return f()",
        "local t = setmetatable({}, {}) getmetatable(t).__index = function(t, k) return t[k + 1] end return t[1]",
        "local t = {} for i = 1, 5000 do t = {t} end return cjson.encode(t)",
        "return cjson.decode(string.rep('[', 100000))",
        "return cmsgpack.unpack(string.rep('\\145', 100000))",
        "return loadstring(string.rep('(', 100000))",
        "local t = {} for i = 1, 100000 do t = {t} end return t",
    ] {
        one.eval(script);
        assert_eq!(one.eval("return 1"), ":1", "{script}");
    }
}

/// Rows, and a host that reads them.
#[derive(Default)]
struct Store {
    rows: BTreeMap<Vec<u8>, Vec<u8>>,
    loads: usize,
}

impl Store {
    fn apply(&mut self, effects: &Effects) {
        for row in &effects.rows {
            match &row.value {
                Some(value) => self.rows.insert(row.key.clone(), value.clone()),
                None => self.rows.remove(&row.key),
            };
        }
    }

    fn beginning(&self, prefix: &[u8]) -> Vec<(Vec<u8>, Vec<u8>)> {
        let found = self
            .rows
            .range(prefix.to_vec()..)
            .take_while(|(key, _)| key.starts_with(prefix));
        found
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

impl ScriptHost for Store {
    fn load(&mut self, load: Load) -> Option<LoadedRow> {
        self.loads += 1;
        let meta = self.rows.get(&load.row).cloned();
        let prefix = meta
            .as_ref()
            .and_then(|meta| Keyspace::elements_of(&load.row, meta));
        let elements = prefix.map_or_else(Vec::new, |prefix| {
            let found = self.beginning(&prefix).into_iter();
            found
                .map(|(key, value)| (key[prefix.len()..].to_vec(), value))
                .collect()
        });
        Some(LoadedRow {
            row: load.row,
            meta,
            elements,
        })
    }

    fn load_names(&mut self, keyspace: &mut Keyspace) -> bool {
        keyspace
            .take_page(&self.beginning(&rows::meta_prefix()))
            .unwrap();
        keyspace.complete();
        true
    }

    fn interrupt(&mut self, _server: &mut Server) -> ScriptFate {
        ScriptFate::GoesOn
    }
}

#[test]
fn keys_that_nobody_named_come_from_the_store() {
    let mut store = Store::default();
    let mut before = One::new();
    for number in 0..300 {
        let command = Command::of(&["RPUSH", "list", &format!("element {number}")]);
        let handled = before
            .server
            .handle(before.client, &command, Stamp::new(NOW, number));
        store.apply(&handled.effects);
    }
    for words in [["SET", "word", "abc"], ["INCRBY", "count", "41"]] {
        let handled = before
            .server
            .handle(before.client, &Command::of(&words), Stamp::new(NOW, 1));
        store.apply(&handled.effects);
    }
    let epoch = |db| store.rows.get(&rows::epoch_key(db)).cloned();
    let reserved = store.rows.get(&rows::reserved_key()).cloned();
    // Not even names are known.
    let keyspace = Keyspace::over_store(epoch, reserved.as_deref());
    let mut server = Server::new(keyspace, Settings::default(), NOW);
    let client = server.connect("test".to_owned(), NOW);
    let script = "local out = {redis.call('get', 'word'), redis.call('incr', 'count'), redis.call('lrange', 'list', 298, -1), \
                  redis.call('get', 'none'), redis.call('dbsize')} return out";
    let command = Command::of(&["EVAL", script, "0"]);
    let handled = server.handle_in(client, &command, Stamp::new(NOW, 1), &mut store);
    assert_eq!(
        shown(&handled.reply),
        "*5 $3 abc :42 *2 $11 element 298 $11 element 299 $-1 :3"
    );
    assert_eq!(store.loads, 4);
    store.apply(&handled.effects);
    let command = Command::of(&[
        "EVAL",
        "return #redis.call('keys', '*') + redis.call('incr', 'count')",
        "0",
    ]);
    let handled = server.handle_in(client, &command, Stamp::new(NOW, 1), &mut store);
    assert_eq!(shown(&handled.reply), ":46");
}
