//! Datagrams to a witness.

use manxdb_curp::ids::{Epoch, View, Wlv};
use manxdb_curp::wire::Datagram;
use manxdb_curp::{MemoryCarrier, ViewTokens, WitnessCarrier as _};
use manxdb_witness::Counts;
use manxdb_witness::user::answer_bytes;

/// Datagrams of one input.
const DATAGRAMS_MAX: usize = 64;
/// Sets and slots: few, so that they are full.
const TABLE: (usize, usize) = (4, 2);

/// The view that samples are of, and its tokens.
pub(crate) const VIEW: View = View {
    epoch: Epoch(1),
    wlv: Wlv(1),
};
pub(crate) const TOKENS: ViewTokens = ViewTokens { record: 1, gc: 2 };

/// Datagrams in a row: each as it is, and with a checksum that fits.
///
/// # Panics
/// When one breaks the table, is counted twice, or is answered with what is no answer.
pub fn witness(data: &[u8]) {
    let mut carrier = MemoryCarrier::new(TABLE);
    assert!(carrier.serve(VIEW, TOKENS), "there is room for a view");
    let mut counts = Counts::default();
    let mut rest = data;
    let mut sent = 0;
    while let [low, high, bytes @ ..] = rest {
        if sent >= DATAGRAMS_MAX as u64 * 2 {
            break;
        }
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(bytes.len());
        let (datagram, more) = bytes.split_at(length);
        rest = more;
        for bytes in [datagram.to_vec(), sealed(datagram)] {
            one(&mut carrier, &mut counts, &bytes);
            sent += 1;
        }
        let counted: u64 = counts.0.iter().sum();
        assert_eq!(counted, sent, "each is counted once");
    }
    assert!(carrier.freeze(VIEW).is_some(), "a view is frozen whole");
    assert_eq!(carrier.check(), Ok(()));
}

fn one(carrier: &mut MemoryCarrier, counts: &mut Counts, bytes: &[u8]) {
    let answered = counts.answered();
    let answer = answer_bytes(carrier, counts, bytes);
    assert_eq!(answer.is_some(), counts.answered() > answered);
    if let Some(answer) = answer {
        let read = Datagram::decode(&answer);
        assert!(read.is_ok_and(|read| !read.asks && read.token == 0));
    }
    assert_eq!(carrier.check(), Ok(()));
}

/// With a checksum that fits in the place of the last four bytes.
pub(crate) fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes[..bytes.len().saturating_sub(4)].to_vec();
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes);
    let sum = u32::try_from(sum).unwrap_or_default();
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes
}
