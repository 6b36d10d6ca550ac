//! What is written is read, torn copies are found.

use super::*;
use crate::version::ThreadId;

const LAYOUT: Layout = match Layout::keyed(3, 20, 10) {
    Ok(layout) => layout,
    Err(_) => panic!("a layout"),
};

fn stamp(sequence: u64) -> Stamp {
    Stamp {
        thread: ThreadId::new(5).unwrap(),
        sequence,
    }
}

fn byte(number: u64) -> u8 {
    u8::try_from(number).unwrap()
}

fn bytes(head: Head, block: &Block) -> Vec<u8> {
    let mut bytes = head.word().to_le_bytes().to_vec();
    bytes.extend(block.clone().into_body());
    bytes
}

fn written(count: u64) -> Block {
    let block = Block::keyed(LAYOUT, 9, b"a key");
    (1..=count).fold(block, |block, number| {
        block.with(stamp(number), Some(&[byte(number); 13]))
    })
}

#[test]
fn a_front_says_all_but_the_oldest_value() {
    let block = written(5);
    let mut copy = bytes(Head::Free(block.newest()), &block);
    copy.truncate(LAYOUT.front());
    let (_, front) = Block::parse(LAYOUT, copy).unwrap();
    assert!(front.is_front() && !block.is_front());
    for sequence in [5, 4] {
        let admits = |one: Stamp| one.sequence <= sequence;
        assert_eq!(front.visible(admits), block.visible(admits));
    }
    assert_eq!(front.visible(|one| one.sequence <= 3), Err(Torn));
    assert_eq!(front.oldest(), Err(Torn));
    assert_eq!(front.visible(|one| one.sequence <= 2), Ok(None));
    // Who writes it on writes the same.
    let next = |block: &Block| block.with(stamp(6), Some(&[6]));
    assert_eq!(next(&front), next(&block));
}

#[test]
fn who_holds_nothing_of_a_place_writes_the_same() {
    for layout in [LAYOUT, Layout::new(2, 20).unwrap().with_overflow()] {
        let (unwritten, empty) = (Block::unwritten(layout), Block::empty(layout, 0));
        assert_eq!(unwritten.newest(), empty.newest());
        let first = |block: &Block| block.with(stamp(1), Some(&[7; 13]));
        assert_eq!(first(&unwritten), first(&empty));
    }
    assert_eq!(sum_of(&[]), SUM_OF_NOTHING);
}

#[test]
fn what_is_written_is_read() {
    for count in 0..5 {
        let block = written(count);
        let head = Head::Free(block.newest());
        let copy = bytes(head, &block);
        assert_eq!(copy.len(), LAYOUT.bytes());
        assert_eq!(Block::parse(LAYOUT, copy), Ok((head, block)));
    }
}

#[test]
fn fresh_memory_becomes_what_any_other_does_by_less() {
    let at = Address {
        server: manxdb_fabric::ServerId(0),
        offset: 0,
    };
    for value in [None, Some(&[7; 13][..]), Some(&[0; 20]), Some(&[])] {
        let block = Block::keyed(LAYOUT, 9, b"a key").with(stamp(1), value);
        let whole = bytes(Head::Free(stamp(1)), &block);
        let Operation::WriteThenSet { bytes, word, .. } = block.install_fresh(at) else {
            panic!("a block and its head");
        };
        // Nothing behind the first slot.
        assert!(bytes.len() + WORD_LENGTH <= LAYOUT.bytes() - 2 * LAYOUT.slot());
        let mut memory = vec![0; LAYOUT.bytes()];
        memory[WORD_LENGTH..WORD_LENGTH + bytes.len()].copy_from_slice(&bytes);
        memory[..WORD_LENGTH].copy_from_slice(&word.to_le_bytes());
        assert_eq!(memory, whole);
    }
}

#[test]
fn a_snapshot_gets_the_newest_version_that_it_admits() {
    let block = written(5);
    let seen = |up_to: u64| {
        let version = block.visible(|stamp| stamp.sequence <= up_to).unwrap();
        version.map(|version| (version.stamp.sequence, version.value.map(<[u8]>::to_vec)))
    };
    assert_eq!(seen(9), Some((5, Some(vec![5; 13]))));
    assert_eq!(seen(4), Some((4, Some(vec![4; 13]))));
    assert_eq!(seen(3), Some((3, Some(vec![3; 13]))));
    assert_eq!(seen(2), None, "it is not there any more");
    let deleted = written(5).with(stamp(6), None);
    assert_eq!(deleted.visible(|_| true).unwrap().unwrap().value, None);
}

#[test]
fn a_lock_on_a_record_that_nobody_has_written_hides_nothing() {
    let lock = Head::Locked(stamp(7));
    let mut copy = vec![0; LAYOUT.bytes()];
    copy[..WORD_LENGTH].copy_from_slice(&lock.word().to_le_bytes());
    let (head, block) = Block::parse(LAYOUT, copy.clone()).unwrap();
    assert_eq!((head, block.newest()), (lock, Stamp::NOTHING));
    let version = block.visible(|stamp| stamp.sequence < 7).unwrap().unwrap();
    assert_eq!(version.value, None);
    copy[WORD_LENGTH + 8] = 1; // it has begun to write
    assert_eq!(Block::parse(LAYOUT, copy), Err(Torn));
}

#[test]
fn no_mixture_of_two_times_hides_or_makes_up_a_version() {
    let (before, after) = (written(4), written(5));
    let lock = Head::Locked(after.newest());
    let (old, new) = (bytes(lock, &before), bytes(lock, &after));
    let words = old.len() / WORD_LENGTH;
    // Which words are of after: all choices of the labels, none or all of each value.
    let labels = LAYOUT.words();
    for choice in 0_u32..1 << (labels + 3) {
        let mut mixed = old.clone();
        for word in 0..words {
            let bit = match word.checked_sub(labels) {
                None => word,
                Some(beyond) => labels + beyond / 3,
            };
            if choice >> bit & 1 == 1 {
                let span = word * WORD_LENGTH..(word + 1) * WORD_LENGTH;
                mixed[span.clone()].copy_from_slice(&new[span]);
            }
        }
        let Ok((_, block)) = Block::parse(LAYOUT, mixed) else {
            continue;
        };
        for up_to in 4..=5 {
            if let Ok(Some(version)) = block.visible(|stamp| stamp.sequence <= up_to) {
                let sequence = version.stamp.sequence;
                assert!(sequence == up_to || block.newest().sequence == 4);
                assert_eq!(version.value, Some(&[byte(sequence); 13][..]));
            }
        }
    }
}

#[test]
fn no_version_is_taken_for_one_that_its_writer_has_overwritten() {
    let (before, after) = (written(4), written(5));
    let lock = Head::Locked(after.newest());
    let (old, new) = (bytes(lock, &before), bytes(lock, &after));
    let labels = LAYOUT.words() * WORD_LENGTH;
    let values = |copy: &[u8]| copy[labels..].to_vec();
    let mut left = [0; 3];
    // The labels are of either time, and so is each word of the values.
    for front in [&old, &new] {
        for choice in 0_u32..1 << (3 * LAYOUT.slot() / WORD_LENGTH) {
            let mut copy = front[..labels].to_vec();
            let words = values(&old).into_iter().zip(values(&new)).enumerate();
            let is_new = |byte: usize| choice >> (byte / WORD_LENGTH) & 1 == 1;
            copy.extend(words.map(|(byte, (old, new))| if is_new(byte) { new } else { old }));
            let (_, block) = Block::parse(LAYOUT, copy).unwrap();
            let again = block
                .before(after.newest())
                .with(after.newest(), Some(&[5; 13]));
            assert_eq!(again.newest(), after.newest());
            for up_to in 2..=4 {
                let version = again.visible(|stamp| stamp.sequence <= up_to).unwrap();
                let Some(version) = version else {
                    continue; // it is too old
                };
                assert_eq!(version.stamp, stamp(up_to));
                assert_eq!(version.value, Some(&[byte(up_to); 13][..]));
                left[usize::try_from(up_to - 2).unwrap()] += 1;
            }
        }
    }
    assert!(left[0] == 0 && left[1] > 0 && left[2] > left[1], "{left:?}");
}

#[test]
fn a_head_that_belongs_to_another_version_is_torn() {
    let block = written(3);
    let torn = bytes(Head::Free(stamp(4)), &block);
    assert_eq!(Block::parse(LAYOUT, torn.clone()), Err(Torn));
    assert_eq!(Block::parse(LAYOUT, &torn[8..]), Err(Torn));
    assert_eq!(Block::parse(LAYOUT, []), Err(Torn));
    let (head, block) = Block::parse(LAYOUT, vec![0; LAYOUT.bytes()]).unwrap();
    assert_eq!(
        (head, block.newest()),
        (Head::Free(Stamp::NOTHING), Stamp::NOTHING)
    );
}

#[test]
fn no_bit_of_labels_or_of_the_chosen_value_flips_unseen() {
    let block = written(3);
    let whole = bytes(Head::Free(block.newest()), &block);
    for bit in 0..whole.len() * 8 {
        let mut damaged = whole.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let Ok((head, found)) = Block::parse(LAYOUT, damaged) else {
            continue;
        };
        if let Ok(Some(version)) = found.visible(|_| true) {
            assert_eq!(version.value, Some(&[3; 13][..]), "bit {bit} {head:?}");
        }
    }
}

#[test]
fn a_layout_that_cannot_be_says_what_can() {
    let said = Layout::new(1, 0).unwrap_err().to_string();
    assert!(
        said.contains("2 to 16 versions of 1 to 32768 bytes under keys of at most 4096 bytes, not 1 of 0 under 0"),
        "{said}"
    );
}
