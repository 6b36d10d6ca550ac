//! The same questions to a carrier and to the table in memory that is the measure of all: the same answers.

use manxdb_curp::mutants::Mutant;
use manxdb_curp::wire::{Datagram, GcEntry, Op, Status};
use manxdb_curp::{MemoryCarrier, WitnessCarrier as _};
use manxdb_witness::layout::{SETS, WAYS};

use crate::bench::{Bench, TOKENS, VIEW, collection, entry, question, record, rpc};
use crate::hostile::Numbers;
use crate::on_every_carrier;

on_every_carrier!(differential, answers_as_the_table_in_memory);

const QUESTIONS: usize = 1_500;

/// Few keys in few sets, so that they conflict and sets are full.
fn hash(numbers: &mut Numbers) -> u64 {
    numbers.below(7) * u64::from(SETS) + numbers.below(5)
}

fn any_question(numbers: &mut Numbers, known: &mut Vec<(Vec<u64>, u64)>) -> Datagram {
    match numbers.below(10) {
        0..=5 => {
            let again = !known.is_empty() && numbers.below(3) == 0;
            let (hashes, seq) = if again {
                known[numbers.below(known.len() as u64) as usize].clone()
            } else {
                let mut hashes: Vec<u64> = (0..=numbers.below(4)).map(|_| hash(numbers)).collect();
                hashes.sort_unstable();
                if numbers.below(20) > 0 {
                    hashes.dedup();
                }
                let seq = known.len() as u64 + 1;
                known.push((hashes.clone(), seq));
                (hashes, seq)
            };
            record(&hashes, rpc(1, seq), &seq.to_le_bytes())
        }
        6..=8 if !known.is_empty() => {
            let mut entries: Vec<GcEntry> = Vec::new();
            for _ in 0..=numbers.below(12) {
                let (hashes, seq) = &known[numbers.below(known.len() as u64) as usize];
                entries.extend(hashes.iter().map(|hash| entry(*hash, rpc(1, *seq))));
            }
            collection(&entries)
        }
        _ => question(Op::Probe, &[hash(numbers), hash(numbers)], rpc(2, 1)),
    }
}

fn in_memory() -> MemoryCarrier {
    MemoryCarrier::new((SETS as usize, WAYS))
}

fn answers_as_the_table_in_memory(bench: &mut Bench) {
    answers_as(in_memory(), bench);
}

#[test]
#[should_panic(expected = "left == right")]
fn a_table_that_accepts_what_conflicts_is_found() {
    let mutant = Some(Mutant::WitnessIgnoresConflict);
    answers_as(in_memory().with_mutant(mutant), &mut Bench::user());
}

#[test]
#[should_panic(expected = "left == right")]
fn a_table_that_keeps_names_of_what_it_gave_up_is_found() {
    let mutant = Some(Mutant::TombstoneOfAborted);
    answers_as(in_memory().with_mutant(mutant), &mut Bench::user());
}

fn answers_as(mut model: MemoryCarrier, bench: &mut Bench) {
    assert!(model.serve(VIEW, TOKENS));
    let mut numbers = Numbers(1);
    let mut known = Vec::new();
    let mut seen = std::collections::BTreeMap::new();
    for round in 0..QUESTIONS {
        // Operations that were named long ago are forgotten, or nothing new would be recorded.
        if known.len() > 400 {
            known.drain(..200);
            known.shrink_to_fit();
        }
        let mut asked = any_question(&mut numbers, &mut known);
        asked.rpc.seq += if asked.op == Op::Record {
            0
        } else {
            round as u64
        };
        let expected = model.answer(&asked).unwrap();
        let answer = bench.ask(&asked);
        assert_eq!(answer.status, expected.status, "round {round}: {asked:?}");
        // Reports may come one collection later, but never of what is not in the way.
        for report in &answer.entries {
            assert!(
                model.find(VIEW, report).is_some(),
                "round {round}: {report:?}"
            );
        }
        *seen.entry(answer.status as u8).or_insert(0) += 1;
    }
    for status in [
        Status::Accepted,
        Status::Conflict,
        Status::Full,
        Status::Bad,
        Status::GcOk,
        Status::Clean,
        Status::Dirty,
    ] {
        assert!(seen.contains_key(&(status as u8)), "{status:?} of {seen:?}");
    }
    assert_eq!(bench.carrier.check(), Ok(()));
    assert_eq!(bench.carrier.freeze(VIEW), model.freeze(VIEW));
}
