//! Procedures on the local path: pieces that wait for each other's values, shards that keep to
//! themselves, and the intent as a procedure.
#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use manxdb_fixtures::local::Fixture;
use manxdb_storage::{Direction, Durability, KeyRange};
use manxdb_txn::IsolationLevel::Serializable;
use manxdb_txn::procedure::{
    APPLY_INTENT, ApplyIntent, Call, OneShard, Placement, Procedure, ProcedureError,
    ProcedurePiece, RowView, ShardId, Slot, Values, encode_intent, is_applied,
};
use manxdb_txn::run_procedure::run_whole;
use manxdb_txn::testing::BlockingWaiter;
use manxdb_txn::waiter::resolve;
use manxdb_txn::{CommitPath, Intent, ReadMode, ReadSet, TxnError, TxnId, Waiter};

/// A payment by a customer who is known by last name only, after TPC-C §2.5: which customer's row
/// changes is known only after the index of names was read.
struct Payment;

const WAREHOUSE: ShardId = ShardId(0);
const NAMES: ShardId = ShardId(1);
const CUSTOMERS: ShardId = ShardId(2);
const CUSTOMER: Slot = Slot(1);
const BALANCE: Slot = Slot(2);

/// First letter of the key: `w`arehouse, `n`ame, `c`ustomer.
struct ByLetter;

impl Placement for ByLetter {
    fn shard_of(&self, key: &[u8]) -> ShardId {
        match key.first() {
            Some(b'w') => WAREHOUSE,
            Some(b'n') => NAMES,
            _ => CUSTOMERS,
        }
    }

    fn shards_of(&self, _range: &KeyRange) -> Vec<ShardId> {
        vec![WAREHOUSE, NAMES, CUSTOMERS]
    }
}

fn number(bytes: &[u8]) -> Result<i64, ProcedureError> {
    let text = std::str::from_utf8(bytes).ok();
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or_else(|| ProcedureError::Arguments("not a number".into()))
}

fn add(rows: &mut dyn RowView, key: &[u8], amount: i64) -> Result<i64, ProcedureError> {
    let found = rows.get_for_update(key)?;
    let sum = found.map_or(Ok(0), |value| number(&value))? + amount;
    rows.write(key.to_vec(), Some(sum.to_string().into_bytes()))?;
    Ok(sum)
}

/// The middle one of the customers of that name, as TPC-C wants it.
fn customer_of(rows: &mut dyn RowView, name: &str) -> Result<Vec<u8>, ProcedureError> {
    let range = KeyRange::prefix(format!("n/{name}/").as_bytes());
    let found = rows.scan(&range, Direction::Forward, 1_000)?;
    let Some((_, customer)) = found.get(found.len() / 2) else {
        return Err(ProcedureError::Aborted(format!("nobody is called {name}")));
    };
    Ok(customer.clone())
}

impl Procedure for Payment {
    fn name(&self) -> &'static str {
        "payment"
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        parse(args)?;
        let piece = |part, table: &[u8], needs, gives| ProcedurePiece {
            part,
            shard: placement.shard_of(table),
            needs,
            gives,
            steps: 1,
        };
        Ok(vec![
            piece(0, b"w", vec![], vec![]),
            // Before the piece it waits for: the order of a plan means nothing.
            piece(2, b"c", vec![CUSTOMER], vec![BALANCE]),
            piece(1, b"n", vec![], vec![CUSTOMER]),
        ])
    }

    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let (name, amount) = parse(args)?;
        match piece.part {
            0 => add(rows, b"w/1", amount).map(|_| Values::new()),
            1 => Ok(Values::from([(CUSTOMER, customer_of(rows, &name)?)])),
            _ => {
                let balance = add(rows, &inputs[&CUSTOMER], -amount)?;
                Ok(Values::from([(BALANCE, balance.to_string().into_bytes())]))
            }
        }
    }
}

/// `name amount`.
fn parse(args: &[u8]) -> Result<(String, i64), ProcedureError> {
    let text = std::str::from_utf8(args).unwrap_or_default();
    let Some((name, amount)) = text.split_once(' ') else {
        return Err(ProcedureError::Arguments("name and amount expected".into()));
    };
    Ok((name.into(), number(amount.as_bytes())?))
}

fn town() -> Fixture {
    let fixture = Fixture::new();
    fixture.set("n/BAR/1", "c/7");
    fixture.set("n/BAR/2", "c/8");
    fixture.set("n/BAR/3", "c/9");
    fixture
}

fn call(fixture: &Fixture, txn: u64, procedure: &str, args: &[u8]) -> Result<Values, TxnError> {
    let call = Call {
        txn: TxnId(txn),
        procedure: procedure.into(),
        args: args.to_vec(),
        durability: Durability::Sync,
    };
    let waiter: Arc<dyn Waiter> = Arc::new(BlockingWaiter::default());
    resolve(fixture.path.clone().call(call, waiter.clone()), &waiter)
}

fn value(fixture: &Fixture, key: &str) -> Option<Vec<u8>> {
    let txn = fixture.begin(Serializable);
    txn.get(key.as_bytes(), ReadMode::Plain).unwrap()
}

#[test]
fn a_piece_waits_for_the_value_of_another() {
    let fixture = town();
    fixture.path.procedures().register(Arc::new(Payment));
    let values = call(&fixture, 900, "payment", b"BAR 30").unwrap();
    assert_eq!(values[&CUSTOMER], b"c/8");
    assert_eq!(values[&BALANCE], b"-30");
    assert_eq!(value(&fixture, "w/1"), Some(b"30".to_vec()));
    assert_eq!(value(&fixture, "c/8"), Some(b"-30".to_vec()));
}

#[test]
fn a_procedure_that_gives_up_leaves_nothing_behind() {
    let fixture = town();
    fixture.path.procedures().register(Arc::new(Payment));
    let before = fixture.path.visible();
    let answer = call(&fixture, 900, "payment", b"NOBODY 30");
    assert!(matches!(answer, Err(TxnError::Procedure { .. })));
    assert!(call(&fixture, 901, "payment", b"nonsense").is_err());
    assert!(call(&fixture, 902, "unheard of", b"").is_err());
    assert_eq!(fixture.path.visible(), before);
    assert_eq!(fixture.locks_held(), 0);
}

#[test]
fn payments_of_many_threads_all_count() {
    let fixture = town();
    fixture.path.procedures().register(Arc::new(Payment));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let fixture = &fixture;
            scope.spawn(move || {
                for round in 0..100 {
                    call(fixture, 1_000 + thread * 1_000 + round, "payment", b"BAR 1").unwrap();
                }
            });
        }
    });
    assert_eq!(value(&fixture, "w/1"), Some(b"400".to_vec()));
    assert_eq!(value(&fixture, "c/8"), Some(b"-400".to_vec()));
}

#[test]
fn a_piece_that_reaches_beyond_its_shard_fails_on_one_node_too() {
    let fixture = town();
    // The name index points at a row of another shard.
    fixture.set("n/BAR/2", "w/stray");
    let txn = fixture.begin(Serializable);
    let answer = run_whole(&Payment, &ByLetter, b"BAR 1", &txn);
    assert!(matches!(answer, Err(TxnError::Procedure { .. })));
    txn.rollback();
    // The same call is in order where everything is one shard.
    let txn = fixture.begin(Serializable);
    run_whole(&Payment, &OneShard, b"BAR 1", &txn).unwrap();
}

/// Pieces that wait for each other.
struct Knot;

impl Procedure for Knot {
    fn name(&self) -> &'static str {
        "knot"
    }

    fn plan(&self, _: &[u8], _: &dyn Placement) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let piece = |part, needs, gives| ProcedurePiece {
            part,
            shard: WAREHOUSE,
            needs: vec![needs],
            gives: vec![gives],
            steps: 1,
        };
        Ok(vec![piece(0, Slot(1), Slot(2)), piece(1, Slot(2), Slot(1))])
    }

    fn run(
        &self,
        _: &ProcedurePiece,
        _: &[u8],
        _: &Values,
        _: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        Ok(Values::new())
    }
}

#[test]
fn pieces_that_wait_for_each_other_are_refused() {
    let fixture = Fixture::new();
    fixture.path.procedures().register(Arc::new(Knot));
    assert!(matches!(
        call(&fixture, 900, "knot", b""),
        Err(TxnError::Procedure { .. })
    ));
}

/// An intent that read `c/7` and everything called `n/…`, and writes on all three shards.
fn intent(fixture: &Fixture) -> Intent {
    let at = fixture.path.visible();
    let names = KeyRange {
        start: Bound::Included(b"n/".to_vec()),
        end: Bound::Excluded(b"n0".to_vec()),
    };
    Intent {
        txn: TxnId(900),
        isolation: Serializable,
        reads: ReadSet {
            points: vec![(b"c/7".to_vec(), at)].into(),
            ranges: vec![(names, at)],
        },
        writes: vec![
            (b"c/7".to_vec(), Some(b"1".to_vec())),
            (b"n/BAR/1".to_vec(), None),
            (b"w/1".to_vec(), Some(b"2".to_vec())),
        ],
        durability: Durability::Sync,
        locks: Vec::new(),
    }
}

#[test]
fn an_intent_is_a_procedure() {
    let fixture = town();
    let args = encode_intent(&intent(&fixture));
    let values = call(&fixture, 900, APPLY_INTENT, &args).unwrap();
    assert!(is_applied(&values));
    assert_eq!(value(&fixture, "c/7"), Some(b"1".to_vec()));
    assert_eq!(value(&fixture, "n/BAR/1"), None);
    // The same again: its reads are no longer true, and nothing is written.
    let before = fixture.path.visible();
    let values = call(&fixture, 900, APPLY_INTENT, &args).unwrap();
    assert!(!is_applied(&values));
    assert_eq!(fixture.path.visible(), before);
}

#[test]
fn an_intent_over_several_shards_is_applied_whole_or_not_at_all() {
    for spoil in [false, true] {
        let fixture = town();
        let pin = fixture.begin(Serializable);
        pin.take_snapshot().unwrap();
        let intent = intent(&fixture);
        if spoil {
            fixture.set("n/BAZ/1", "c/10");
        }
        let args = encode_intent(&intent);
        let pieces = ApplyIntent.plan(&args, &ByLetter).unwrap();
        let shards: BTreeSet<ShardId> = pieces.iter().map(|piece| piece.shard).collect();
        assert_eq!((pieces.len(), shards.len()), (6, 3));
        let txn = fixture.begin(Serializable);
        let values = run_whole(&ApplyIntent, &ByLetter, &args, &txn).unwrap();
        assert_eq!(is_applied(&values), !spoil);
        assert_eq!(txn.has_writes(), !spoil);
        txn.commit(Durability::Sync).unwrap();
        assert_eq!(value(&fixture, "w/1").is_some(), !spoil);
    }
}
