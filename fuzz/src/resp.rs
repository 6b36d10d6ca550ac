//! What a Redis client sends, and what a store's rows hold.

use manxdb_redis::keyspace::rows;
use manxdb_redis::resp::{Decoder, Limits, Protocol};
use manxdb_redis::{Command, Effects, Keyspace, Reply, Stamp, execute};

/// Commands run from one input.
const COMMANDS_MAX: usize = 64;

/// A client's bytes as commands, each run on a keyspace, its reply encoded and its rows read again.
///
/// # Panics
/// When a command cannot be run, or wrote a row that cannot be read.
pub fn resp(data: &[u8]) {
    for limits in [Limits::REDIS, Limits::UNAUTHENTICATED] {
        let mut decoder = Decoder::default();
        let mut keyspace = Keyspace::new();
        let mut command = Command::default();
        let mut rest = data;
        for number in 0..COMMANDS_MAX as u64 {
            let Ok((taken, is_whole)) = decoder.decode(rest, &limits, &mut command) else {
                break;
            };
            assert!(taken <= rest.len(), "more bytes were taken than there are");
            rest = &rest[taken..];
            if !is_whole {
                break;
            }
            if is_bounded(&command) {
                let (reply, effects) = execute(
                    &mut keyspace,
                    0,
                    &command,
                    Stamp::new(1000 + number, number),
                );
                check(&reply, &effects);
            }
            command.clear();
        }
        assert_eq!(
            keyspace.memory(),
            keyspace.recounted_memory(),
            "memory is counted as it is taken"
        );
    }
    // Bytes as a row of the store, too.
    let _ = rows::decode_meta(data);
    let _ = rows::split_meta(data);
    let _ = rows::garbage_of(data);
}

/// Whether a command takes no more memory than a machine that fuzzes has: one of few bytes may ask
/// for a string of 512 MiB, or for a thousand million random members.
fn is_bounded(command: &Command) -> bool {
    let is_grown_by_a_number = [
        "SETRANGE",
        "SETBIT",
        "BITFIELD",
        "SRANDMEMBER",
        "HRANDFIELD",
        "ZRANDMEMBER",
    ];
    let longest = command.args_from(1).map(<[u8]>::len).max().unwrap_or(0);
    let has_large_number = command.args_from(1).any(|word| {
        let digits = word.iter().filter(|byte| byte.is_ascii_digit()).count();
        digits > 4
    });
    let named = |name: &&str| command.name().eq_ignore_ascii_case(name.as_bytes());
    longest < 1 << 16 && !(has_large_number && is_grown_by_a_number.iter().any(named))
}

fn check(reply: &Reply, effects: &Effects) {
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut out = Vec::new();
        reply.encode(protocol, &mut out);
        assert!(
            *reply == Reply::Later || out.ends_with(b"\r\n"),
            "a reply ends its line"
        );
    }
    for row in &effects.rows {
        if rows::split_meta(&row.key).is_some()
            && let Some(value) = &row.value
        {
            assert!(
                rows::decode_meta(value).is_some(),
                "a row that was written is read"
            );
        }
    }
}
