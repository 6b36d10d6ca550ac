//! Keys that move between two groups, step by step: each group a master and a backup that only applies.

use manxdb_curp::Execute;
use manxdb_curp::ids::Stamp;
use manxdb_curp::slots::{
    Canceller, Group, Migration, Mover, Piece, PieceLimits, Side, SlotAnswer, SlotOperation,
    SlotRange, SlotRefusal,
};
use manxdb_curp_redis::{RedisMachine, ReplicatedCommand, told};
use manxdb_redis::Command;
use manxdb_redis::resp::Protocol;

const STAMP: Stamp = Stamp {
    micros: 1_700_000_000_000_000,
    seed: 7,
};
/// Few keys a piece, so that there are many.
const LIMITS: PieceLimits = PieceLimits {
    keys: 3,
    bytes: 200,
};

/// A master, and a backup that is made again of its snapshot after each step, and now and then.
struct Replicated {
    master: RedisMachine,
    backup: RedisMachine,
    runs: u32,
}

impl Replicated {
    fn new() -> Self {
        Self {
            master: RedisMachine::empty(),
            backup: RedisMachine::empty(),
            runs: 0,
        }
    }

    fn run(&mut self, command: &[u8]) -> Vec<u8> {
        assert!(RedisMachine::declare(command).is_some());
        let executed = self.master.execute(command, STAMP);
        self.master.apply(&executed.effects);
        self.backup.apply(&executed.effects);
        self.runs += 1;
        if self.runs.is_multiple_of(50) {
            self.compare();
        }
        executed.answer
    }

    fn compare(&mut self) {
        assert_eq!(self.master, self.backup);
        self.backup = RedisMachine::restore(&self.master.snapshot()).unwrap();
        assert_eq!(self.master, self.backup);
    }

    fn words_in(&mut self, db: u8, words: &[&str]) -> String {
        let command = ReplicatedCommand {
            db,
            protocol: Protocol::Resp2,
            is_transaction: false,
            commands: vec![Command::of(words)],
        };
        let answer = self.run(&command.encode());
        String::from_utf8(told(answer, Protocol::Resp2)).unwrap()
    }

    fn words(&mut self, words: &[&str]) -> String {
        self.words_in(0, words)
    }

    fn step(&mut self, operation: &SlotOperation) -> SlotAnswer {
        let answer = self.run(&operation.encode());
        self.compare();
        SlotAnswer::decode(&answer).unwrap()
    }

    /// The backup goes on as master.
    fn fail_over(&mut self) {
        std::mem::swap(&mut self.master, &mut self.backup);
    }
}

fn group(name: &str) -> Group {
    Group::new(name).unwrap()
}

fn slots(text: &str) -> SlotRange {
    text.parse().unwrap()
}

/// A group that owns all slots, and one that owns none.
fn two() -> (Replicated, Replicated) {
    let (source, mut target) = (Replicated::new(), Replicated::new());
    let to = group("10.0.0.1:6379");
    let slots = SlotRange::ALL;
    let disown = SlotOperation::Disown { slots, to };
    assert_eq!(target.step(&disown), SlotAnswer::Done);
    assert_eq!(target.step(&disown), SlotAnswer::Done, "once more");
    (source, target)
}

fn mover(run: &str) -> Mover {
    let (from, to) = (group("10.0.0.1:6379"), group("10.0.0.2:6379"));
    Mover::new(slots(run), from, to, LIMITS)
}

/// Does the next step of a move; what it was.
fn drive(mover: &mut Mover, source: &mut Replicated, target: &mut Replicated) -> SlotOperation {
    let (side, operation) = mover.question().unwrap();
    let answer = match side {
        Side::Source => source.step(&operation),
        Side::Target => target.step(&operation),
    };
    mover.answered(answer);
    operation
}

#[test]
fn keys_of_all_types_move_with_their_expiry_while_each_step_may_be_another_process_and_master() {
    let (mut source, mut target) = two();
    for number in 0..40 {
        let number = number.to_string();
        source.words(&["SET", &format!("string{number}"), &number]);
        source.words_in(9, &["RPUSH", &format!("list{number}"), "a", "b", &number]);
    }
    source.words(&["SET", "expires", "soon", "EX", "100"]);
    for number in 0..300 {
        let number = number.to_string();
        source.words(&["HSET", "hash", &number, "value"]);
        source.words(&["ZADD", "zset", &number, &number]);
    }
    source.words(&["XADD", "stream", "1-1", "field", "value"]);
    let rows = source.master.inside().rows();
    let mut steps = 0;
    loop {
        // Whoever goes on knows nothing but the groups.
        let mut mover = mover("0-16383");
        let mut last = None;
        while mover.question().is_some() {
            last = Some(drive(&mut mover, &mut source, &mut target));
            steps += 1;
            let moves = matches!(
                last,
                Some(SlotOperation::Put { .. } | SlotOperation::Remove { .. })
            );
            if moves && steps % 7 == 0 {
                source.fail_over();
                target.fail_over();
                break;
            }
        }
        if mover.question().is_none() {
            assert_eq!(mover.outcome(), Some(&Ok(())), "after {last:?}");
            break;
        }
    }
    assert!(steps > 60, "a piece has three keys: {steps} steps");
    assert_eq!(target.words(&["GET", "string7"]), "$1\r\n7\r\n");
    assert_eq!(
        target.words_in(9, &["LINDEX", "list39", "-1"]),
        "$2\r\n39\r\n"
    );
    assert_eq!(target.words(&["TTL", "expires"]), ":100\r\n");
    assert_eq!(target.words(&["HLEN", "hash"]), ":300\r\n");
    assert_eq!(target.words(&["ZRANK", "zset", "299"]), ":299\r\n");
    assert_eq!(target.words(&["XLEN", "stream"]), ":1\r\n");
    assert!(
        source.master.inside().rows() < rows.min(4),
        "the source has removed them"
    );
    assert_eq!(source.words(&["DBSIZE"]), ":0\r\n");
    // MOVED, as Redis Cluster says it: CLUSTER KEYSLOT foo is 12182.
    assert_eq!(
        source.words(&["GET", "foo"]),
        "-MOVED 12182 10.0.0.2:6379\r\n"
    );
    assert_eq!(
        source.words(&["SET", "foo", "1"]),
        "-MOVED 12182 10.0.0.2:6379\r\n"
    );
    assert_eq!(
        source.words(&["SPOP", "foo"]),
        "-MOVED 12182 10.0.0.2:6379\r\n"
    );
}

#[test]
fn a_key_on_its_way_is_nowhere_and_what_needs_two_groups_is_refused() {
    let (mut source, mut target) = two();
    // Slots 15495 and 12182, in that order.
    for key in ["a", "foo"] {
        source.words(&["SET", key, "1"]);
    }
    let mut mover = mover("12000-13000");
    let mut before = Vec::new();
    while !matches!(before.last(), Some(SlotOperation::Give(_))) {
        before.push(drive(&mut mover, &mut source, &mut target));
    }
    let moved = "-MOVED 12182 10.0.0.2:6379\r\n";
    assert_eq!(source.words(&["INCR", "foo"]), moved);
    assert_eq!(source.words(&["INCR", "a"]), ":2\r\n");
    assert!(target.words(&["INCR", "foo"]).starts_with("-TRYAGAIN "));
    assert_eq!(
        target.words(&["INCR", "a"]),
        "-MOVED 15495 10.0.0.1:6379\r\n"
    );
    for replicated in [&mut source, &mut target] {
        assert!(
            replicated
                .words(&["MSET", "a", "1", "foo", "2"])
                .starts_with("-CROSSSLOT ")
        );
        for all in [
            &["DBSIZE"][..],
            &["KEYS", "*"],
            &["SCAN", "0"],
            &["FLUSHALL"],
        ] {
            assert!(replicated.words(all).starts_with("-TRYAGAIN "), "{all:?}");
        }
    }
    let Some(SlotOperation::Give(migration)) = before.pop() else {
        panic!("slots were given");
    };
    let behind_no_key = SlotOperation::Read {
        migration,
        after: Some(vec![0xFF]),
        limits: PieceLimits { keys: 1, bytes: 1 },
    };
    let unreadable = SlotAnswer::Refused(SlotRefusal::Unreadable);
    assert_eq!(source.step(&behind_no_key), unreadable);
    while mover.question().is_some() {
        drive(&mut mover, &mut source, &mut target);
    }
    assert_eq!(mover.outcome(), Some(&Ok(())));
    assert_eq!(target.words(&["INCR", "foo"]), ":2\r\n");
    assert_eq!(source.words(&["MSET", "a", "1", "b{a}", "2"]), "+OK\r\n");
    assert_eq!(
        source.words(&["KEYS", "*"]),
        "*2\r\n$1\r\na\r\n$4\r\nb{a}\r\n"
    );
    let sorted = ["SORT", "a", "BY", "weight_*"];
    assert!(
        source.words(&sorted).starts_with("-CROSSSLOT "),
        "elements name keys"
    );
}

#[test]
fn a_step_of_a_move_that_is_over_or_not_begun_does_nothing() {
    let (mut source, mut target) = two();
    source.words(&["SET", "foo", "1"]);
    let mut moves = mover("12000-13000");
    let mut steps = Vec::new();
    while moves.question().is_some() {
        steps.push(drive(&mut moves, &mut source, &mut target));
    }
    let (from, to) = (group("10.0.0.2:6379"), group("10.0.0.1:6379"));
    let mut back = Mover::new(slots("12000-13000"), from, to, LIMITS);
    while back.question().is_some() {
        drive(&mut back, &mut target, &mut source);
    }
    assert_eq!(back.outcome(), Some(&Ok(())));
    assert_eq!(source.words(&["GET", "foo"]), "$1\r\n1\r\n");
    // Steps of the first move arrive once more, at both.
    for step in &steps {
        for replicated in [&mut source, &mut target] {
            let before = replicated.master.snapshot();
            replicated.step(step);
            assert_eq!(replicated.master.snapshot(), before, "{step:?}");
        }
    }
    let number = source.master.ownership().last_number();
    let next = Migration {
        number: number + 1,
        slots: slots("12000-13000"),
        from: group("10.0.0.1:6379"),
        to: group("10.0.0.2:6379"),
    };
    let early = SlotAnswer::Refused(SlotRefusal::NotAtStep);
    let put = SlotOperation::Put {
        migration: next.clone(),
        after: None,
        piece: Piece {
            bytes: Vec::new(),
            next: None,
        },
    };
    assert_eq!(target.step(&put), early);
    assert_eq!(target.step(&SlotOperation::Own(next.clone())), early);
    target.step(&SlotOperation::Take(next.clone()));
    let unreadable = SlotAnswer::Refused(SlotRefusal::Unreadable);
    assert_eq!(target.step(&put), unreadable, "no piece has no bytes");
    let incomplete = SlotAnswer::Refused(SlotRefusal::Incomplete);
    assert_eq!(target.step(&SlotOperation::Own(next)), incomplete);
}

/// Cancels the move of all slots, each step by another process; whether there was one, or why it is refused.
fn cancel(source: &mut Replicated, target: &mut Replicated) -> Result<bool, SlotRefusal> {
    let mut was_there = false;
    loop {
        let (from, to) = (group("10.0.0.1:6379"), group("10.0.0.2:6379"));
        let mut canceller = Canceller::new(SlotRange::ALL, from, Some(to), LIMITS);
        loop {
            let Some((side, operation)) = canceller.question() else {
                let outcome = canceller.outcome().unwrap().clone();
                return outcome.map(|()| was_there || canceller.has_cancelled());
            };
            let answer = match side {
                Side::Source => source.step(&operation),
                Side::Target => target.step(&operation),
            };
            canceller.answered(answer);
            was_there |= canceller.has_cancelled();
            if operation != SlotOperation::Show && canceller.question().is_some() {
                break;
            }
        }
    }
}

#[test]
fn a_move_can_be_cancelled_at_each_step_before_its_source_has_released_the_slots() {
    let (mut cancelled, mut stop) = (0, 0);
    let too_late = loop {
        let (mut source, mut target) = two();
        for number in 0..9 {
            let number = number.to_string();
            source.words(&["SET", &format!("string{number}"), &number]);
            source.words(&["RPUSH", &format!("list{number}"), "a", &number]);
        }
        let (mut moves, mut steps) = (mover("0-16383"), Vec::new());
        while steps.len() < stop {
            steps.push(drive(&mut moves, &mut source, &mut target));
        }
        stop += 1;
        match cancel(&mut source, &mut target) {
            Err(why) => {
                assert!(matches!(steps.last(), Some(SlotOperation::Release(_))));
                break why;
            }
            Ok(was_there) => {
                let takes = |step: &SlotOperation| matches!(step, SlotOperation::Take(_));
                assert_eq!(was_there, steps.iter().any(takes), "{steps:?}");
                cancelled += usize::from(was_there);
            }
        }
        assert_eq!(source.words(&["DBSIZE"]), ":18\r\n");
        assert_eq!(source.words(&["RPUSH", "list7", "b"]), ":3\r\n");
        assert_eq!(target.words(&["DBSIZE"]), ":0\r\n");
        let moved = target.words(&["GET", "foo"]);
        assert_eq!(moved, "-MOVED 12182 10.0.0.1:6379\r\n");
        // Its steps come late, at both, and so does cancelling it.
        for step in steps.iter().filter(|_| cancelled > 0) {
            for replicated in [&mut source, &mut target] {
                let before = replicated.master.snapshot();
                replicated.step(step);
                assert_eq!(replicated.master.snapshot(), before, "{step:?}");
            }
        }
        assert_eq!(cancel(&mut source, &mut target), Ok(false));
        let mut again = mover("0-16383");
        while again.question().is_some() {
            drive(&mut again, &mut source, &mut target);
        }
        assert_eq!(again.outcome(), Some(&Ok(())));
        assert_eq!(
            target.words(&["LRANGE", "list7", "-1", "-1"]),
            "*1\r\n$1\r\nb\r\n"
        );
        assert_eq!(target.words(&["DBSIZE"]), ":18\r\n");
        let refused = cancel(&mut source, &mut target);
        assert_eq!(refused, Err(SlotRefusal::Released));
    };
    assert_eq!(too_late, SlotRefusal::Released);
    assert!(cancelled > 10, "a piece has three keys: {cancelled} steps");
}

#[test]
fn a_source_goes_back_without_its_target_which_forgets_later() {
    let (mut source, mut target) = two();
    source.words(&["SET", "foo", "1"]);
    let mut moves = mover("0-16383");
    while !matches!(
        drive(&mut moves, &mut source, &mut target),
        SlotOperation::Put { .. }
    ) {}
    let mut alone = Canceller::new(SlotRange::ALL, group("10.0.0.1:6379"), None, LIMITS);
    while let Some((side, operation)) = alone.question() {
        assert_eq!(side, Side::Source, "the target is gone");
        alone.answered(source.step(&operation));
    }
    assert!(alone.has_cancelled());
    assert_eq!(source.words(&["INCR", "foo"]), ":2\r\n");
    assert!(target.words(&["GET", "foo"]).starts_with("-TRYAGAIN "));
    // A driver that knows nothing of it learns it, and another move of its source is in nobody's way.
    while moves.question().is_some() {
        drive(&mut moves, &mut source, &mut target);
    }
    assert_eq!(moves.outcome(), Some(&Err(SlotRefusal::Cancelled)));
    let mut again = mover("0-16383");
    while again.question().is_some() {
        drive(&mut again, &mut source, &mut target);
    }
    assert_eq!(again.outcome(), Some(&Err(SlotRefusal::Cancelled)));
    assert_eq!(cancel(&mut source, &mut target), Ok(true));
    assert_eq!(
        target.words(&["GET", "foo"]),
        "-MOVED 12182 10.0.0.1:6379\r\n"
    );
}

#[test]
fn a_group_with_keys_keeps_its_slots_and_one_with_all_slots_takes_none() {
    let (mut one, mut other) = (Replicated::new(), Replicated::new());
    one.words(&["SET", "foo", "1"]);
    let disown = |run: &str| SlotOperation::Disown {
        slots: slots(run),
        to: group("10.0.0.9:6379"),
    };
    let refused = SlotAnswer::Refused(SlotRefusal::HasKeys(1));
    assert_eq!(one.step(&disown("12000-13000")), refused);
    assert_eq!(one.step(&disown("0-100")), SlotAnswer::Done);
    let mut mover = mover("12000-13000");
    while mover.question().is_some() {
        drive(&mut mover, &mut one, &mut other);
    }
    assert_eq!(mover.outcome(), Some(&Err(SlotRefusal::NotAway)));
    assert_eq!(one.words(&["GET", "foo"]), "$1\r\n1\r\n");
}

#[test]
fn bytes_that_are_no_step_change_nothing() {
    let mut machine = RedisMachine::empty();
    let step = SlotOperation::Show.encode();
    for wrong in [&step[..11], &[&step[..], b"x"].concat(), &[0xFF; 40]] {
        assert_eq!(RedisMachine::declare(wrong), None);
        assert!(machine.execute(wrong, STAMP).effects.is_empty());
        machine.apply(wrong);
        assert!(machine.ownership().is_whole());
        assert_eq!(RedisMachine::restore(wrong), None);
    }
}

#[test]
fn effects_that_do_not_follow_what_is_owned_change_nothing() {
    let mut machine = RedisMachine::empty();
    let give_up = |run: &str| {
        let (slots, to) = (slots(run), group("10.0.0.1:6379"));
        SlotOperation::Disown { slots, to }.encode()
    };
    let effects = machine.execute(&give_up("0-100"), STAMP).effects;
    machine.apply(&effects);
    let once = machine.clone();
    machine.apply(&effects);
    assert_eq!(machine, once, "applied twice");
    let number = u64::MAX;
    let (from, to) = (group("10.0.0.1:6379"), group("10.0.0.2:6379"));
    let last = Migration {
        number,
        slots: slots("0-100"),
        from,
        to,
    };
    let taken = machine.execute(&SlotOperation::Take(last).encode(), STAMP);
    assert!(taken.effects.is_empty(), "no migration could follow it");
}
