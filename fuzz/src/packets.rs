//! What a client sends.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use manxdb_gateway::mysql::codec::PayloadReader;
use manxdb_gateway::mysql::framing::Channel;
use manxdb_gateway::mysql::handshake::{
    parse_change_user, parse_first_packet, server_capabilities,
};
use manxdb_gateway::mysql::params::read_params;
use manxdb_gateway::mysql::query_text::query_text;

/// Largest packet the fuzzed channel takes, bytes.
const PACKET_MAX: usize = 1 << 16;
/// Packets read from one input.
const PACKETS_MAX: usize = 64;

/// A client's bytes, in the framing and in each parser behind it.
pub fn packets(data: &[u8]) {
    let mut channel = Channel::new(Wire { input: data });
    let mut payload = Vec::new();
    for _ in 0..PACKETS_MAX {
        if channel.read_packet(&mut payload, PACKET_MAX).is_err() {
            break;
        }
        payloads(&payload);
    }
    payloads(data);
}

fn payloads(payload: &[u8]) {
    for tls in [false, true] {
        let capabilities = server_capabilities(tls);
        let _ = parse_first_packet(payload, capabilities);
        let _ = parse_change_user(payload, capabilities, 45);
    }
    let mut types = Vec::new();
    let long_data = BTreeMap::from([(0, b"long".to_vec())]);
    for count in [0, 1, 3, 9, 70] {
        let _ = read_params(
            &mut PayloadReader::new(payload),
            count,
            &mut types,
            &long_data,
        );
    }
    let _ = query_text(payload, false);
    let _ = query_text(payload, true);
}

/// Bytes as a socket: reads them, then the end; takes every write.
struct Wire<'a> {
    input: &'a [u8],
}

impl Read for Wire<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.input.read(out)
    }
}

impl Write for Wire<'_> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
