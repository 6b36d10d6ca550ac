//! TPC-C: the conditions of the standard hold after any mix, in pieces and whole; each kind of
//! damage is found; pieces stay within their touches.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{Shards, TOPOLOGY, Whole};
use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::procedure::{Placement, Procedure, ShardId, Values};
use manxdb_txn::rows::{Base, Rows};
use manxdb_workloads::tpcc::{
    CUSTOMER_NUMBER, DELIVERIES, DeliveryArgs, Generator, Line, NewOrderArgs, ORDER,
    OrderStatusArgs, Parameters, Payment, PaymentArgs, PaymentSums, SHORT, STATUS, Scale,
    StockLevelArgs, Template, Warehouses, Who, check, procedures,
};
use manxdb_workloads::{Partition, Request, payment};
use proptest::prelude::*;

fn find(name: &str) -> Arc<dyn Procedure> {
    let mut all = procedures().into_iter();
    all.find(|procedure| procedure.name() == name).unwrap()
}

fn bases() -> Vec<Warehouses> {
    let template = Arc::new(Template::new(Scale::tiny(), 1));
    let count = TOPOLOGY.shards();
    let shards = (0..count).map(ShardId);
    shards
        .map(|shard| Warehouses::of_shard(template.clone(), TOPOLOGY, count, shard))
        .collect()
}

/// The same warehouses cut into shards, and whole.
struct Town {
    shards: Shards,
    whole: Whole,
    initial: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Town {
    fn new() -> Self {
        let bases = bases();
        let scan = |base: &Warehouses| base.scan(&KeyRange::all(), Direction::Forward, usize::MAX);
        let initial: BTreeMap<_, _> = bases.iter().flat_map(scan).collect();
        let mut whole = Whole::new();
        whole.load(initial.clone());
        let new = |base: Warehouses| Rows::new(Arc::new(base));
        let shards = Shards {
            topology: TOPOLOGY,
            rows: bases.into_iter().map(new).collect(),
        };
        Self {
            shards,
            whole,
            initial,
        }
    }

    fn run(&mut self, procedure: &str, args: &[u8]) -> Values {
        let procedure = find(procedure);
        let values = self.shards.run(&*procedure, args);
        assert_eq!(self.whole.run(&*procedure, args), values);
        values
    }

    fn request(&mut self, request: &Request) {
        let procedure = find(request.procedure);
        let pieces = procedure.plan(&request.args, &TOPOLOGY).unwrap();
        let reach = TOPOLOGY.reach(pieces.iter().map(|piece| piece.shard));
        assert_eq!(reach, request.reach);
        self.run(request.procedure, &request.args);
    }

    fn assert_consistent(&mut self) {
        let wrong = check(
            &self.shards.rows,
            TOPOLOGY,
            Scale::tiny(),
            PaymentSums::Tpcc,
        );
        assert_eq!(wrong, [""; 0]);
        let scan = |rows: &Rows| rows.scan(&KeyRange::all(), Direction::Forward, usize::MAX);
        let in_pieces: BTreeMap<_, _> = self.shards.rows.iter().flat_map(scan).collect();
        assert!(self.whole.rows() == in_pieces, "the rows differ");
    }
}

fn run_mix(parameters: Parameters, rounds: u64) -> Town {
    let mut town = Town::new();
    let client = |home| Generator::new(TOPOLOGY, Scale::tiny(), parameters, home, ShardId(home), 7);
    let mut clients: Vec<Generator> = (0..TOPOLOGY.shards()).map(client).collect();
    for round in 0..rounds {
        for client in &mut clients {
            let request = client.next_request(10 + round);
            town.request(&request);
        }
    }
    town
}

#[test]
fn the_initial_rows_are_consistent() {
    let mut town = Town::new();
    town.assert_consistent();
    assert_eq!(town.initial.len() % TOPOLOGY.shards() as usize, 0);
}

#[test]
fn the_published_mix_keeps_the_conditions() {
    let mut parameters = Parameters::as_published();
    // Everything that is rare, often.
    parameters.remote_lines = 0.2;
    parameters.remote_payments = 0.5;
    run_mix(parameters, 150).assert_consistent();
}

#[test]
fn the_standard_mix_keeps_the_conditions() {
    run_mix(Parameters::standard(), 150).assert_consistent();
}

#[test]
fn payments_as_published_leave_the_sum_of_the_warehouse_alone() {
    let mut town = Town::new();
    let client = payment::Generator::new(TOPOLOGY, Scale::tiny(), 0.2, 9, ShardId(3), 2);
    let mut client = client.paying_into(PaymentSums::Published);
    for now in 1..100 {
        let request = client.next_request(now);
        town.request(&request);
    }
    let wrong = |sums| check(&town.shards.rows, TOPOLOGY, Scale::tiny(), sums);
    assert_eq!(wrong(PaymentSums::Published), [""; 0]);
    assert!(!wrong(PaymentSums::Tpcc).is_empty());
}

#[test]
fn payments_over_regions_keep_the_conditions() {
    let mut town = Town::new();
    let scale = Scale::tiny();
    let mut client = payment::Generator::new(TOPOLOGY, scale, 0.6, 9, ShardId(3), 2);
    for now in 1..300 {
        let request = client.next_request(now);
        town.request(&request);
    }
    town.assert_consistent();
}

#[test]
fn replicas_have_equal_digests_only_after_the_same() {
    let one = run_mix(Parameters::as_published(), 20);
    let other = run_mix(Parameters::as_published(), 20);
    let more = run_mix(Parameters::as_published(), 21);
    let digests = |town: &Town| -> Vec<u64> { town.shards.rows.iter().map(Rows::digest).collect() };
    assert_eq!(digests(&one), digests(&other));
    assert_ne!(digests(&one), digests(&more));
}

/// One byte changed, or one row gone, of what the transactions wrote.
#[test]
fn damage_of_any_table_is_found() {
    let town = run_mix(Parameters::standard(), 60);
    let mut seen = BTreeMap::new();
    for (shard, rows) in town.shards.rows.iter().enumerate() {
        for (key, value) in rows.changes() {
            if let Some(value) = value {
                seen.entry(key[4])
                    .or_insert((shard, key.to_vec(), value.to_vec()));
            }
        }
    }
    // Names, items and the mark of what was delivered: nobody writes the first two, and the third
    // is no table of the standard.
    assert!(seen.len() >= 9, "{:?}", seen.keys());
    for (table, (shard, key, value)) in seen {
        let mut gone = town.shards.rows.clone();
        gone[shard].write(&key, None);
        let found = check(&gone, TOPOLOGY, Scale::tiny(), PaymentSums::Tpcc);
        assert_eq!(found.is_empty(), table == 7, "a row of table {table} gone");
        if !value.is_empty() && table != 7 {
            let mut damaged = town.shards.rows.clone();
            let mut value = value;
            // A stock's quantity comes first, and has no sum that it must agree with.
            value[if table == 12 { 2 } else { 0 }] ^= 1;
            damaged[shard].write(&key, Some(value));
            let found = check(&damaged, TOPOLOGY, Scale::tiny(), PaymentSums::Tpcc);
            assert!(!found.is_empty(), "a row of table {table} damaged");
        }
    }
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

/// An order is entered, asked for, delivered, and its items are short.
#[test]
fn an_order_lives_from_entry_to_delivery() {
    let mut town = Town::new();
    let (warehouse, district, customer) = (Partition(2), 1, 5);
    let line = |supplier, item| Line {
        supplier: Partition(supplier),
        item,
        quantity: 10,
    };
    let order = NewOrderArgs {
        warehouse,
        district,
        customer,
        date: 77,
        lines: vec![line(2, 1), line(4, 1), line(2, 1), line(4, 2)],
    };
    let values = town.run("tpcc.new_order", &order.encode());
    let o = number(&values[&ORDER]);
    assert_eq!(o, 11);

    let customer = Who::Number(customer);
    let question = OrderStatusArgs {
        warehouse,
        district,
        customer,
    };
    let status = town.run("tpcc.order_status", &question.encode());
    let before = status[&STATUS].clone();
    assert_eq!(number(&before[8..]), o);
    let sum = i64::from_le_bytes(before[12..].try_into().unwrap());

    let stock = StockLevelArgs {
        warehouse,
        district,
        threshold: 1_000,
    };
    let short = town.run("tpcc.stock_level", &stock.encode());
    assert!(number(&short[&SHORT]) > 2);

    let delivery = DeliveryArgs {
        warehouse,
        first_district: 1,
        districts: 3,
        carrier: 9,
        date: 78,
    };
    // Orders 8 to 10 were new before it.
    for delivered in [3, 3, 3, 1, 0] {
        let values = town.run("tpcc.delivery", &delivery.encode());
        assert_eq!(values[&DELIVERIES], [delivered]);
    }
    let after = town.run("tpcc.order_status", &question.encode());
    let balance = |value: &[u8]| i64::from_le_bytes(value[..8].try_into().unwrap());
    assert!(balance(&after[&STATUS]) >= balance(&before) + sum);
    town.assert_consistent();
}

#[test]
fn a_payment_by_name_from_afar_waits_only_in_its_history() {
    let mut town = Town::new();
    let args = PaymentArgs {
        warehouse: Partition(0),
        district: 1,
        customer_warehouse: Partition(5),
        customer_district: 2,
        customer: Who::LastName(3),
        amount: 100,
        date: 1,
        client: 8,
        number: 1,
        sums: PaymentSums::Tpcc,
    };
    let bytes = args.encode();
    let pieces = Payment.plan(&bytes, &TOPOLOGY).unwrap();
    let waiting: Vec<_> = pieces
        .iter()
        .filter(|piece| !piece.needs.is_empty())
        .collect();
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0].shard, ShardId(0));
    let touches = Payment.touches(waiting[0], &bytes);
    assert!(touches.len() == 1, "one row, known beforehand: {touches:?}");
    let values = town.run("tpcc.payment", &bytes);
    // The first customers have each name once, in order.
    assert_eq!(number(&values[&CUSTOMER_NUMBER]), 4);
    town.assert_consistent();
}

proptest! {
    #[test]
    fn random_bytes_are_refused_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..64),
        which in 0_usize..5,
    ) {
        let procedure = &procedures()[which];
        if let Ok(pieces) = procedure.plan(&bytes, &TOPOLOGY) {
            for piece in pieces {
                let mut rows = Rows::new(Arc::new(bases()[0].clone()));
                let inputs = Values::new();
                let _ = manxdb_txn::rows::run_piece(
                    &**procedure, &TOPOLOGY, &bytes, &piece, &inputs, &mut rows);
                prop_assert!(piece.shard.0 < TOPOLOGY.shards());
                prop_assert_eq!(rows.digest() == 0, rows.changes().next().is_none());
            }
        }
        let _ = TOPOLOGY.shard_of(&bytes);
    }

    #[test]
    fn arguments_survive_their_encoding(
        (w, d, c, date) in (any::<u32>(), any::<u8>(), any::<u32>(), any::<u64>()),
        lines in prop::collection::vec((any::<u32>(), any::<u32>(), 1_u8..=10), 1..16),
        name in any::<u16>(),
        by_name in any::<bool>(),
    ) {
        let line = |(supplier, item, quantity)| Line {
            supplier: Partition(supplier), item, quantity,
        };
        let order = NewOrderArgs {
            warehouse: Partition(w),
            district: d,
            customer: c,
            date,
            lines: lines.into_iter().map(line).collect(),
        };
        prop_assert_eq!(NewOrderArgs::decode(&order.encode()).unwrap(), order);
        let payment = PaymentArgs {
            warehouse: Partition(w),
            district: d,
            customer_warehouse: Partition(c),
            customer_district: d,
            customer: if by_name { Who::LastName(name) } else { Who::Number(c) },
            amount: c,
            date,
            client: w,
            number: c,
            sums: if by_name { PaymentSums::Published } else { PaymentSums::Tpcc },
        };
        let bytes = payment.encode();
        prop_assert_eq!(PaymentArgs::decode(&bytes).unwrap(), payment);
        for length in 0..bytes.len() {
            prop_assert!(PaymentArgs::decode(&bytes[..length]).is_err());
        }
    }
}

#[test]
fn the_steps_of_a_plan_are_the_pieces_of_its_request() {
    let mut plans = 0;
    for parameters in [Parameters::as_published(), Parameters::standard()] {
        let home = ShardId(1);
        let mut client = Generator::new(TOPOLOGY, Scale::full(), parameters, 3, home, 5);
        for date in 1..=2_000 {
            let request = client.next_request(date);
            let procedure = find(request.procedure);
            let pieces = procedure.plan(&request.args, &TOPOLOGY).unwrap();
            assert!(pieces.iter().all(|piece| piece.steps > 0));
            let steps: u32 = pieces.iter().map(|piece| piece.steps).sum();
            assert_eq!(steps, request.pieces, "{request:?}");
            plans += 1;
        }
    }
    assert_eq!(plans, 4_000);
}
