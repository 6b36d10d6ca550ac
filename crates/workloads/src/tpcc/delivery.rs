//! Delivery (clause 2.7): delivers the oldest new order of one or several districts.

use std::ops::Bound;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, Slot, Touch, Values,
};

use super::keys;
use super::plan::one_piece;
use super::rows::{Customer, Delivered, Order, OrderLine, Row, decode, get, put, update};
use crate::Partition;
use crate::codec::arguments;

/// Name of the procedure.
pub const DELIVERY: &str = "tpcc.delivery";

/// How many orders were delivered: one byte. A district without new orders is left out.
pub const DELIVERIES: Slot = Slot(0);

/// A delivery to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryArgs {
    /// The home warehouse.
    pub warehouse: Partition,
    /// The first district, from 1.
    pub first_district: u8,
    /// How many districts from there on.
    pub districts: u8,
    /// From 1.
    pub carrier: u8,
    /// When, not 0.
    pub date: u64,
}

impl DeliveryArgs {
    /// The arguments of a call.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(15);
        out.extend_from_slice(&self.warehouse.0.to_le_bytes());
        out.extend_from_slice(&[self.first_district, self.districts, self.carrier]);
        out.extend_from_slice(&self.date.to_le_bytes());
        out
    }

    /// The delivery of a call.
    ///
    /// # Errors
    /// [`ProcedureError::Arguments`].
    pub fn decode(args: &[u8]) -> Result<Self, ProcedureError> {
        arguments(DELIVERY, args, |input| {
            let delivery = Self {
                warehouse: Partition(input.u32()?),
                first_district: input.u8()?,
                districts: input.u8()?,
                carrier: input.u8()?,
                date: input.u64()?,
            };
            let last = delivery.first_district.checked_add(delivery.districts);
            last.map(|_| delivery)
        })
    }

    fn all_districts(&self) -> std::ops::Range<u8> {
        self.first_district..self.first_district + self.districts
    }
}

/// The procedure; without state.
#[derive(Debug, Default, Clone, Copy)]
pub struct Delivery;

impl Procedure for Delivery {
    fn name(&self) -> &'static str {
        DELIVERY
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let args = DeliveryArgs::decode(args)?;
        let steps = 4 * u32::from(args.districts);
        Ok(one_piece(args.warehouse, placement, DELIVERIES, steps))
    }

    fn run(
        &self,
        _piece: &ProcedurePiece,
        args: &[u8],
        _inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let args = DeliveryArgs::decode(args)?;
        let mut count = 0_u8;
        for d in args.all_districts() {
            count += u8::from(deliver(&args, d, rows)?);
        }
        Ok(Values::from([(DELIVERIES, vec![count])]))
    }

    fn touches(&self, _piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let Ok(args) = DeliveryArgs::decode(args) else {
            return vec![Touch::everything()];
        };
        let w = args.warehouse;
        let of_district = |d| {
            [
                keys::delivered(w, d),
                keys::new_orders(w, d),
                keys::orders(w, d),
                keys::order_lines(w, d),
                keys::customers(w, d),
            ]
        };
        let ranges = args.all_districts().flat_map(of_district);
        ranges
            .map(|key| Touch {
                range: key.range(),
                writes: true,
            })
            .collect()
    }
}

/// Delivers the oldest new order of a district, if there is one.
fn deliver(args: &DeliveryArgs, d: u8, rows: &mut dyn RowView) -> Result<bool, ProcedureError> {
    let w = args.warehouse;
    let delivered_key = keys::delivered(w, d);
    let delivered: Delivered = get(rows, &delivered_key)?;
    let not_before = keys::new_order(w, d, delivered.last.saturating_add(1));
    let waiting = KeyRange {
        start: Bound::Included(not_before.to_vec()),
        end: keys::new_orders(w, d).range().end,
    };
    let oldest = rows.scan(&waiting, Direction::Forward, 1)?.pop();
    let Some((key, _)) = oldest else {
        return Ok(false);
    };
    let o = keys::last_number(&key);
    rows.write(key, None)?;
    put(rows, &delivered_key, &Delivered { last: o })?;
    let assign = |order: &mut Order| order.carrier = args.carrier;
    let order = update(rows, &keys::order(w, d, o), assign)?;
    let mut sum = 0;
    let lines = rows.scan(
        &keys::lines_of(w, d, o).range(),
        Direction::Forward,
        usize::MAX,
    )?;
    for (key, value) in lines {
        let mut line: OrderLine = decode(&key, Some(value))?;
        line.delivered = args.date;
        sum += line.amount;
        rows.write(key, Some(line.encode()))?;
    }
    let receive = |customer: &mut Customer| {
        customer.numbers.balance += sum;
        customer.numbers.deliveries += 1;
    };
    update(rows, &keys::customer(w, d, order.customer), receive)?;
    Ok(true)
}
