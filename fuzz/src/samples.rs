//! Good inputs to begin with, and inputs that once broke something.

use std::fs;
use std::path::Path;

use manxdb_curp::ids::{ClientId, RpcId};
use manxdb_curp::wire::{Datagram, GcEntry, Op, RecordedRequest, Status};

use crate::sample_record;
use crate::witness::{TOKENS, VIEW};

/// Statements of every kind, one a line.
const STATEMENTS: &str = include_str!("../samples/statements.sql");
/// Those that the parser's own test has.
const ACCEPTED: &str = include_str!("../../crates/sql/src/parser/accepted.sql");

/// What `target` begins with; nothing for a name that is no target.
#[must_use]
pub fn samples(target: &str) -> Vec<Vec<u8>> {
    match target {
        "packets" => vec![login(), framed(&login()), execute()],
        "resp" => commands().collect(),
        "records" => vec![sample_record()],
        "sql_text" | "template" => statements().map(|text| text.as_bytes().to_vec()).collect(),
        "witness" => vec![datagrams()],
        "log" => vec![histories(), forgeries()],
        _ => Vec::new(),
    }
}

/// Redis commands of every family, all of a line in one input.
const COMMANDS: [&str; 9] = [
    "SET s abc EX 9|APPEND s def|GETRANGE s 0 3|SETRANGE s 2 x|INCRBY n 4|LCS s n IDX|EXPIRE s 5 GT|COPY s t|SORT l BY w_* GET #",
    "HSET h a 1 b 2|HINCRBYFLOAT h a 1.5|HSCAN h 0 MATCH a*|HRANDFIELD h 2 WITHVALUES|HDEL h a",
    "RPUSH l a b c a|LREM l -1 a|LINSERT l BEFORE b x|LPOS l a RANK -1 COUNT 0|LMPOP 1 l LEFT COUNT 2|LTRIM l 0 1|BLPOP l 1",
    "SADD t 1 2 3|SINTERCARD 2 t t LIMIT 1|SPOP t 2|SRANDMEMBER t -3|SDIFFSTORE u t t",
    "ZADD z NX 1 a 2 b|ZRANGE z (1 +inf BYSCORE LIMIT 0 1|ZUNION 2 z z WEIGHTS 1 2 WITHSCORES|ZRANGEBYLEX z [a (c|ZPOPMIN z 1",
    "XADD x NOMKSTREAM MAXLEN ~ 5 * f v|XADD x 1-* f v|XGROUP CREATE x g 0 MKSTREAM|XREADGROUP GROUP g c STREAMS x >|XCLAIM x g d 0 1-0 FORCE|XAUTOCLAIM x g c 0 0|XPENDING x g IDLE 0 - + 9|XDEL x 1-0|XTRIM x MINID 9|XINFO STREAM x FULL|XSETID x 99|XREAD BLOCK 0 STREAMS x $",
    "SETBIT b 9 1|BITCOUNT b 0 -1 BIT|BITPOS b 1 0 1|BITOP NOT c b|BITFIELD b OVERFLOW SAT INCRBY i5 #1 99 GET u8 0",
    "PFADD p a b c|PFCOUNT p|PFMERGE q p|SETRANGE p 16 zz|PFADD p d|PFCOUNT p q",
    "GEOADD g 13.3 38.1 a 15 37 b|GEOSEARCH g FROMMEMBER a BYBOX 400 400 km ASC WITHDIST|GEORADIUS g 179.9 80 9999 mi STORE k|GEOHASH g a",
];

fn commands() -> impl Iterator<Item = Vec<u8>> {
    COMMANDS.iter().map(|line| {
        let mut out = Vec::new();
        for command in line.split('|') {
            let words: Vec<&str> = command.split(' ').collect();
            out.extend(format!("*{}\r\n", words.len()).into_bytes());
            for word in words {
                out.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
            }
        }
        out
    })
}

/// The lines of both that are no comments.
fn statements() -> impl Iterator<Item = &'static str> {
    let lines = STATEMENTS.lines().chain(ACCEPTED.lines());
    lines.filter(|line| !line.is_empty() && !line.starts_with("-- "))
}

/// Puts the samples of `target` where `cargo fuzz` looks for inputs.
///
/// # Panics
/// When they cannot be written.
pub fn write_samples(target: &str) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target);
    let write = || {
        fs::create_dir_all(&corpus)?;
        samples(target)
            .iter()
            .enumerate()
            .try_for_each(|(at, sample)| fs::write(corpus.join(format!("sample-{at}")), sample))
    };
    write().unwrap_or_else(|error: std::io::Error| panic!("{}: {error}", corpus.display()));
}

/// The first packet of a client, without its header.
fn login() -> Vec<u8> {
    let mut login = vec![0x8D, 0xA6, 0x0F, 0x00, 0, 0, 0, 1, 45];
    login.extend([0; 23]);
    login.extend(b"root\0\x14abcdefghijklmnopqrstdb\0caching_sha2_password\0\x07\x03key\x03val");
    login
}

fn framed(payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(0).to_le_bytes();
    let mut framed = vec![length[0], length[1], length[2], 1];
    framed.extend_from_slice(payload);
    framed
}

/// Parameters of COM_STMT_EXECUTE: BIGINT, text and TIME.
fn execute() -> Vec<u8> {
    let mut bytes = vec![0b0000_0000, 1, 8, 0, 253, 0, 7, 0];
    bytes.extend([1, 2, 3, 4, 5, 6, 7, 8, 3, b'a', b'b', b'c', 4, 1, 2, 3, 4]);
    bytes
}

/// A record of two keys, its copy, a collection, and a probe, each behind its length.
fn datagrams() -> Vec<u8> {
    let rpc = RpcId {
        client: ClientId(7),
        seq: 1,
    };
    let record = Datagram {
        op: Op::Record,
        status: Status::None,
        view: VIEW,
        asks: true,
        token: TOKENS.record,
        rpc,
        hashes: vec![1, 5],
        entries: Vec::new(),
        request: Some(RecordedRequest {
            command: b"SET k v".to_vec(),
            ..RecordedRequest::default()
        }),
    };
    let probe = Datagram {
        op: Op::Probe,
        request: None,
        ..record.clone()
    };
    let gc = Datagram {
        op: Op::Gc,
        token: TOKENS.gc,
        hashes: Vec::new(),
        entries: [1, 5].map(|hash| GcEntry { hash, rpc }).to_vec(),
        ..probe.clone()
    };
    let all = [&record, &record, &gc, &probe, &record];
    let mut out = Vec::new();
    for bytes in all.iter().filter_map(|datagram| datagram.encode()) {
        let length = u16::try_from(bytes.len()).unwrap_or(0);
        out.extend(length.to_le_bytes());
        out.extend(bytes);
    }
    out
}

/// A log that is written, damaged and opened in turn; see `log.rs`.
fn histories() -> Vec<u8> {
    let write = b"\x00\x00\x00\x03\x00key\x01\x00\x05\x00value\x20\x00\x00";
    let mut script = vec![0];
    for round in 0..12 {
        script.extend(write);
        match round {
            4 => script.extend([5]),
            6 => script.extend([4, 2, 0]),
            10 => script.extend([7, 0, 0, 0xF0, 0, 3, 1]),
            _ => {}
        }
    }
    script
}

/// Two forged segments with a record each; see `log.rs`.
fn forgeries() -> Vec<u8> {
    let payload = b"\x01\0\0\0\0\0\0\0\x01\0\0\0\x01\0\0\0kv";
    let mut script = vec![1, 1, 0];
    for _ in 0..2 {
        script.extend([1, 1, 1, 1, 0, 18, 0]);
        script.extend(payload);
        script.extend([1, 64, 0]);
    }
    script.extend([1]);
    script
}
