//! The two transactions that only read: OrderStatus (clause 2.6) and StockLevel (clause 2.8).

use std::ops::Bound;

use manxdb_storage::{Direction, KeyRange};
use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, Slot, Touch, Values,
};

use super::customer::Who;
use super::keys;
use super::plan::one_piece;
use super::rows::{Customer, District, Order, OrderLine, Stock, decode, get};
use crate::Partition;
use crate::codec::arguments;

/// Name of the procedure.
pub const ORDER_STATUS: &str = "tpcc.order_status";

/// Name of the procedure.
pub const STOCK_LEVEL: &str = "tpcc.stock_level";

/// The customer's balance, the number of the last order (0: none), the sum of its lines: 8, 4 and
/// 8 bytes, little-endian.
pub const STATUS: Slot = Slot(0);

/// How many items run short: 4 bytes, little-endian.
pub const SHORT: Slot = Slot(0);

/// Orders whose items StockLevel looks at.
const RECENT_ORDERS: u32 = 20;

/// Whose last order?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OrderStatusArgs {
    /// The home warehouse.
    pub warehouse: Partition,
    /// From 1.
    pub district: u8,
    /// The customer.
    pub customer: Who,
}

impl OrderStatusArgs {
    /// The arguments of a call.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(10);
        out.extend_from_slice(&self.warehouse.0.to_le_bytes());
        out.push(self.district);
        self.customer.encode(&mut out);
        out
    }

    /// The question of a call.
    ///
    /// # Errors
    /// [`ProcedureError::Arguments`].
    pub fn decode(args: &[u8]) -> Result<Self, ProcedureError> {
        arguments(ORDER_STATUS, args, |input| {
            Some(Self {
                warehouse: Partition(input.u32()?),
                district: input.u8()?,
                customer: Who::decode(input)?,
            })
        })
    }
}

/// Which items of recent orders run short?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StockLevelArgs {
    /// The home warehouse.
    pub warehouse: Partition,
    /// From 1.
    pub district: u8,
    /// Fewer than this is short.
    pub threshold: u16,
}

impl StockLevelArgs {
    /// The arguments of a call.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(7);
        out.extend_from_slice(&self.warehouse.0.to_le_bytes());
        out.push(self.district);
        out.extend_from_slice(&self.threshold.to_le_bytes());
        out
    }

    /// The question of a call.
    ///
    /// # Errors
    /// [`ProcedureError::Arguments`].
    pub fn decode(args: &[u8]) -> Result<Self, ProcedureError> {
        arguments(STOCK_LEVEL, args, |input| {
            Some(Self {
                warehouse: Partition(input.u32()?),
                district: input.u8()?,
                threshold: u16::from_le_bytes(input.take()?),
            })
        })
    }
}

fn reads(range: KeyRange) -> Touch {
    Touch {
        range,
        writes: false,
    }
}

/// The procedure; without state.
#[derive(Debug, Default, Clone, Copy)]
pub struct OrderStatus;

impl Procedure for OrderStatus {
    fn name(&self) -> &'static str {
        ORDER_STATUS
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let args = OrderStatusArgs::decode(args)?;
        let steps = if args.customer.is_name() { 4 } else { 3 };
        Ok(one_piece(args.warehouse, placement, STATUS, steps))
    }

    fn run(
        &self,
        _piece: &ProcedurePiece,
        args: &[u8],
        _inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let args = OrderStatusArgs::decode(args)?;
        let (w, d) = (args.warehouse, args.district);
        let c = args.customer.find(w, d, rows)?;
        let customer: Customer = get(rows, &keys::customer(w, d, c))?;
        let orders = keys::orders_of(w, d, c).range();
        let last = rows.scan(&orders, Direction::Reverse, 1)?.pop();
        let (mut number, mut sum) = (0, 0);
        if let Some((key, _)) = last {
            number = keys::last_number(&key);
            let _: Order = get(rows, &keys::order(w, d, number))?;
            let lines = keys::lines_of(w, d, number).range();
            for (key, value) in rows.scan(&lines, Direction::Forward, usize::MAX)? {
                let line: OrderLine = decode(&key, Some(value))?;
                sum += line.amount;
            }
        }
        let mut value = customer.numbers.balance.to_le_bytes().to_vec();
        value.extend_from_slice(&number.to_le_bytes());
        value.extend_from_slice(&sum.to_le_bytes());
        Ok(Values::from([(STATUS, value)]))
    }

    fn touches(&self, _piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let Ok(args) = OrderStatusArgs::decode(args) else {
            return vec![Touch::everything()];
        };
        let (w, d) = (args.warehouse, args.district);
        let mut touches = args.customer.touches(w, d, false);
        let of_customer = match args.customer {
            Who::Number(c) => keys::orders_of(w, d, c),
            Who::LastName(_) => keys::orders_by_customer(w, d),
        };
        let orders = [of_customer, keys::orders(w, d), keys::order_lines(w, d)];
        touches.extend(orders.iter().map(|key| reads(key.range())));
        touches
    }
}

/// The procedure; without state.
#[derive(Debug, Default, Clone, Copy)]
pub struct StockLevel;

impl Procedure for StockLevel {
    fn name(&self) -> &'static str {
        STOCK_LEVEL
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let args = StockLevelArgs::decode(args)?;
        Ok(one_piece(args.warehouse, placement, SHORT, 2))
    }

    fn run(
        &self,
        _piece: &ProcedurePiece,
        args: &[u8],
        _inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let args = StockLevelArgs::decode(args)?;
        let (w, d) = (args.warehouse, args.district);
        let district: District = get(rows, &keys::district(w, d))?;
        let first = district.next_order.saturating_sub(RECENT_ORDERS);
        let recent = KeyRange {
            start: Bound::Included(keys::lines_of(w, d, first).to_vec()),
            end: Bound::Excluded(keys::lines_of(w, d, district.next_order).to_vec()),
        };
        let mut items = Vec::with_capacity(RECENT_ORDERS as usize * 10);
        for (key, value) in rows.scan(&recent, Direction::Forward, usize::MAX)? {
            let line: OrderLine = decode(&key, Some(value))?;
            items.push(line.item);
        }
        items.sort_unstable();
        items.dedup();
        let mut short = 0_u32;
        for item in items {
            let stock: Stock = get(rows, &keys::stock(w, item))?;
            short += u32::from(stock.quantity < args.threshold);
        }
        Ok(Values::from([(SHORT, short.to_le_bytes().to_vec())]))
    }

    fn touches(&self, _piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let Ok(args) = StockLevelArgs::decode(args) else {
            return vec![Touch::everything()];
        };
        let (w, d) = (args.warehouse, args.district);
        vec![
            Touch::read(keys::district(w, d).as_slice()),
            reads(keys::order_lines(w, d).range()),
            reads(keys::table(w, keys::Table::Stock).range()),
        ]
    }
}
