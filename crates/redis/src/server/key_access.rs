//! What a command does to each of its keys: COMMAND GETKEYSANDFLAGS, and users who may only read or write keys.
//!
//! RO: the value is read; RW: changed, and what was there counts; OW: replaced, whatever was there; RM:
//! removed. Then what of the value's content it does: access, insert, update, delete; none: only what is known
//! of the value, such as its length.

use crate::command::Command;
use crate::spec::{CommandSpec, Flags};

pub(super) type Access = &'static [&'static str];

const LOOKS: Access = &["RO"];
const READS: Access = &["RO", "access"];
const REPLACES: Access = &["OW", "update"];
const MAKES: Access = &["OW", "insert"];
const REMOVES: Access = &["RM", "delete"];
const TAKES: Access = &["RW", "access", "delete"];
const CHANGES: Access = &["RW", "access", "update"];
const INSERTS: Access = &["RW", "insert"];
const UPDATES: Access = &["RW", "update"];
const DELETES: Access = &["RW", "delete"];

/// Whether an access reads and whether it changes what is under a key. One that looks whether there is a key, or
/// how much is under it, does neither.
pub(super) fn reads_and_writes(access: Access) -> (bool, bool) {
    let is_write = |what: &&str| matches!(*what, "insert" | "update" | "delete");
    (access.contains(&"access"), access.iter().any(is_write))
}

/// What `command`, whose full name is `name`, does to the key at a place of the list of its keys.
pub(super) fn access(spec: &CommandSpec, name: &str, command: &Command, key: usize) -> Access {
    let has = |word: &str| (3..command.len()).any(|place| command.is_word(place, word));
    match (name, key) {
        (
            "exists" | "hexists" | "hlen" | "hstrlen" | "llen" | "scard" | "sismember" | "strlen"
            | "touch" | "type" | "watch" | "xlen" | "zcard" | "object|encoding" | "object|freq"
            | "object|idletime" | "object|refcount",
            _,
        ) => LOOKS,
        ("setnx" | "msetnx", _) => MAKES,
        ("mset" | "setex" | "psetex" | "restore", _) => REPLACES,
        ("set", _) if has("GET") => CHANGES,
        ("set", _) => REPLACES,
        (
            "bitop" | "geosearchstore" | "sdiffstore" | "sunionstore" | "zdiffstore"
            | "zinterstore" | "zrangestore" | "zunionstore",
            0,
        ) => REPLACES,
        (
            "bitop" | "geosearchstore" | "sdiffstore" | "sunionstore" | "zdiffstore"
            | "zinterstore" | "zrangestore" | "zunionstore",
            _,
        ) => READS,
        ("sinterstore", 0) => UPDATES,
        ("pfmerge", 0) => &["RW", "access", "insert"],
        ("copy" | "sort" | "georadius" | "georadiusbymember", 1..) => REPLACES,
        ("sinterstore" | "pfmerge" | "copy" | "sort" | "georadius" | "georadiusbymember", _) => {
            READS
        }
        ("del" | "unlink", _) => REMOVES,
        ("pfcount", _) => &["RW", "access"],
        ("bitfield", _) if only_gets(command) => READS,
        ("rename", 1) => REPLACES,
        ("renamenx", 1) => MAKES,
        ("lmove" | "blmove" | "rpoplpush" | "brpoplpush" | "smove", 1) => INSERTS,
        (
            "rename" | "renamenx" | "lmove" | "blmove" | "rpoplpush" | "brpoplpush" | "smove"
            | "lpop" | "rpop" | "lmpop" | "blpop" | "brpop" | "blmpop" | "spop" | "getdel"
            | "hgetdel" | "zpopmin" | "zpopmax" | "zmpop" | "bzpopmin" | "bzpopmax" | "bzmpop",
            _,
        ) => TAKES,
        (
            "hdel" | "lrem" | "ltrim" | "srem" | "zrem" | "xdel" | "xtrim" | "xautoclaim"
            | "zremrangebylex" | "zremrangebyrank" | "zremrangebyscore" | "xgroup|delconsumer"
            | "xgroup|destroy",
            _,
        ) => DELETES,
        (
            "append"
            | "hsetnx"
            | "linsert"
            | "lpush"
            | "lpushx"
            | "rpush"
            | "rpushx"
            | "pfadd"
            | "sadd"
            | "xgroup|create"
            | "xgroup|createconsumer",
            _,
        ) => INSERTS,
        (
            "expire" | "expireat" | "pexpire" | "pexpireat" | "persist" | "lset" | "hset" | "hmset"
            | "hexpire" | "hexpireat" | "hpexpire" | "hpexpireat" | "hpersist" | "hsetex"
            | "geoadd" | "zadd" | "setrange" | "xack" | "xadd" | "xclaim" | "xsetid"
            | "xgroup|setid",
            _,
        ) => UPDATES,
        ("xreadgroup", _) => READS,
        ("eval" | "evalsha" | "fcall", _) => CHANGES,
        _ if spec.flags.has(Flags::WRITE) => CHANGES,
        _ => READS,
    }
}

/// Whether all operations of BITFIELD are GET, as far as Redis looks at them.
fn only_gets(command: &Command) -> bool {
    let mut place = 2;
    while place < command.len() {
        let behind = command.len() - place - 1;
        place += match () {
            () if command.is_word(place, "GET") && behind >= 2 => 3,
            () if command.is_word(place, "OVERFLOW") && behind >= 1 => 2,
            () => return false,
        };
    }
    true
}
