//! Memory of servers that clients die over.

use super::*;

const SERVER: ServerId = ServerId(1);

fn memory(seed: u64, options: MemoryOptions) -> Memory {
    let mut memory = Memory::new(seed, options);
    memory.register(SERVER, 4096);
    memory
}

fn at(offset: u64) -> Address {
    let server = SERVER;
    Address { server, offset }
}

fn ordered(byte: u8) -> Operation {
    Operation::WriteThenSet {
        at: at(64),
        bytes: vec![byte; 512],
        word_at: 0,
        word: u64::from(byte),
    }
}

/// Runs until nothing is under way; what completed, in order.
fn run(memory: &mut Memory) -> Vec<(ClientId, Completion)> {
    let mut done = Vec::new();
    while let Some(happened) = memory.step() {
        if let Happened::Completed(client, completion) = happened {
            done.push((client, completion));
        }
    }
    done
}

#[test]
fn reads_that_meet_a_write_are_torn_for_some_seed_and_its_word_comes_last() {
    let mut torn = 0;
    let mut early = 0;
    for seed in 0..200 {
        for keeps_order in [true, false] {
            let options = MemoryOptions {
                keeps_order,
                ..MemoryOptions::default()
            };
            let mut memory = memory(seed, options);
            memory
                .post(1, BatchId(1), vec![ordered(7)], Nanos(0))
                .unwrap();
            let read = Operation::Read {
                at: at(64),
                bytes: 512,
            };
            memory.post(2, BatchId(1), vec![read], Nanos(0)).unwrap();
            while let Some(happened) = memory.step() {
                let is_set = memory.look(at(0), 8)[0] == 7;
                let is_whole = memory.look(at(64), 512) == [7; 512];
                early += u32::from(is_set && !is_whole && !keeps_order);
                assert!(!keeps_order || !is_set || is_whole, "seed {seed}");
                if let Happened::Completed(2, completion) = happened {
                    let [OperationOutcome::Read(copy)] = completion.outcomes.as_slice() else {
                        panic!("{completion:?}");
                    };
                    torn += u32::from(copy.contains(&0) && copy.contains(&7));
                }
            }
        }
    }
    assert!(torn > 100, "{torn} torn reads");
    assert!(early > 100, "{early} early words");
}

#[test]
fn equal_seeds_give_equal_runs_and_atomic_operations_lose_nothing() {
    let runs = [1, 1, 2].map(|seed| {
        let mut memory = memory(seed, MemoryOptions::default());
        for client in 0..20 {
            let add = Operation::FetchAdd {
                at: at(8),
                delta: 1,
            };
            memory
                .post(client, BatchId(1), vec![add], Nanos(0))
                .unwrap();
        }
        let done = run(&mut memory);
        assert_eq!(memory.look(at(8), 8)[0], 20);
        done
    });
    assert_eq!(runs[0], runs[1]);
    assert_ne!(runs[0], runs[2]);
}

/// Memory to which client 1 is writing sevens, some of which have arrived.
fn under_way(seed: u64) -> Memory {
    let mut memory = memory(seed, MemoryOptions::default());
    memory
        .post(1, BatchId(1), vec![ordered(7)], Nanos(0))
        .unwrap();
    for _ in 0..seed % 8 {
        memory.step();
    }
    memory
}

#[test]
fn what_a_dead_client_had_under_way_arrives_in_part_and_is_heard_of_by_nobody() {
    let mut parts = 0;
    for seed in 0..50 {
        let mut memory = under_way(seed);
        memory.kill(1);
        assert_eq!(run(&mut memory), []);
        let found = memory.look(at(64), 512);
        assert!(
            memory.look(at(0), 8)[0] == 0 || !found.contains(&0),
            "seed {seed}"
        );
        parts += u32::from(found.contains(&0) && found.contains(&7));
    }
    assert!(parts > 25, "{parts} of 50 writes arrived in part");
}

#[test]
fn a_client_that_is_shut_out_hears_so_and_writes_nothing_more() {
    let mut parts = 0;
    for seed in 0..50 {
        let mut memory = under_way(seed);
        memory.fence(1);
        let found = memory.look(at(0), 1024);
        memory
            .post(1, BatchId(2), vec![ordered(9)], Nanos(0))
            .unwrap();
        let fenced = [OperationOutcome::Failed(Fault::Fenced(SERVER))];
        for (client, completion) in run(&mut memory) {
            assert_eq!((client, completion.outcomes.as_slice()), (1, &fenced[..]));
        }
        assert_eq!(memory.look(at(0), 1024), found, "seed {seed}");
        parts += u32::from(found.contains(&7));
        memory
            .post(2, BatchId(1), vec![ordered(8)], Nanos(0))
            .unwrap();
        run(&mut memory);
        assert_eq!(memory.look(at(64), 512), [8; 512]);
    }
    assert!(parts > 25, "{parts} of 50 writes had arrived in part");
}

#[test]
fn a_lost_server_answers_nothing() {
    let mut memory = memory(1, MemoryOptions::default());
    memory.lose(SERVER);
    memory
        .post(1, BatchId(1), vec![ordered(7)], Nanos(0))
        .unwrap();
    let done = run(&mut memory);
    assert_eq!(
        done[0].1.outcomes,
        [OperationOutcome::Failed(Fault::Gone(SERVER))]
    );
}
