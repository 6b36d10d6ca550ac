//! NewOrder (clause 2.4): enters an order of several items, some from other warehouses.
//!
//! The order is written at home; each other warehouse that supplies a line has a piece for
//! its stock. Nothing waits for a value. TPC-C rolls one order in a hundred back; here none is,
//! as nobody could undo what another shard has done already.

use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, Slot, Touch, Values,
};

use super::keys;
use super::rows::{Customer, District, Item, Order, OrderLine, Stock, Warehouse, get, put, update};
use crate::Partition;
use crate::codec::{Cursor, malformed};

/// Name of the procedure.
pub const NEW_ORDER: &str = "tpcc.new_order";

/// The number of the order and its total in hundredths, 4 and 8 bytes, little-endian.
pub const ORDER: Slot = Slot(0);

/// Most lines of an order.
pub const LINES_MAX: usize = 15;

/// An order to be entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewOrderArgs {
    /// The home warehouse.
    pub warehouse: Partition,
    /// From 1.
    pub district: u8,
    /// From 1.
    pub customer: u32,
    /// When.
    pub date: u64,
    /// 1 to 15.
    pub lines: Vec<Line>,
}

/// A line of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Line {
    /// Which warehouse it comes from.
    pub supplier: Partition,
    /// From 1.
    pub item: u32,
    /// How many: 1 to 10.
    pub quantity: u8,
}

const LINE_BYTES: usize = 9;
const QUANTITY_MAX: u8 = 10;

impl NewOrderArgs {
    /// The arguments of a call.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(17 + self.lines.len() * LINE_BYTES);
        out.extend_from_slice(&self.warehouse.0.to_le_bytes());
        out.push(self.district);
        out.extend_from_slice(&self.customer.to_le_bytes());
        out.extend_from_slice(&self.date.to_le_bytes());
        for line in &self.lines {
            out.extend_from_slice(&line.supplier.0.to_le_bytes());
            out.extend_from_slice(&line.item.to_le_bytes());
            out.push(line.quantity);
        }
        out
    }

    /// The order of a call.
    ///
    /// # Errors
    /// [`ProcedureError::Arguments`].
    pub fn decode(args: &[u8]) -> Result<Self, ProcedureError> {
        let args = Args::parse(args)?;
        Ok(Self {
            warehouse: args.warehouse,
            district: args.district,
            customer: args.customer,
            date: args.date,
            lines: args.lines().collect(),
        })
    }
}

/// The arguments where they lie.
#[derive(Clone, Copy)]
struct Args<'a> {
    warehouse: Partition,
    district: u8,
    customer: u32,
    date: u64,
    lines: &'a [[u8; LINE_BYTES]],
}

impl<'a> Args<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, ProcedureError> {
        Self::read(bytes).ok_or_else(|| malformed(NEW_ORDER))
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut input = Cursor::new(bytes);
        let warehouse = Partition(input.u32()?);
        let district = input.u8()?;
        let customer = input.u32()?;
        let date = input.u64()?;
        let (lines, rest) = input.rest().as_chunks();
        let args = Self {
            warehouse,
            district,
            customer,
            date,
            lines,
        };
        let in_bounds = |line: Line| (1..=QUANTITY_MAX).contains(&line.quantity);
        let fits = rest.is_empty() && (1..=LINES_MAX).contains(&lines.len());
        (fits && args.lines().all(in_bounds)).then_some(args)
    }

    fn lines(self) -> impl Iterator<Item = Line> + 'a {
        self.lines.iter().map(|bytes| {
            let [s0, s1, s2, s3, i0, i1, i2, i3, quantity] = *bytes;
            Line {
                supplier: Partition(u32::from_le_bytes([s0, s1, s2, s3])),
                item: u32::from_le_bytes([i0, i1, i2, i3]),
                quantity,
            }
        })
    }

    fn supplied_by(self, supplier: Partition) -> impl Iterator<Item = Line> + 'a {
        self.lines().filter(move |line| line.supplier == supplier)
    }

    /// The supplier of a part, whose number is one more than the index of its first line.
    fn supplier_of(self, part: u32) -> Option<Partition> {
        let index = usize::try_from(part.checked_sub(1)?).ok()?;
        self.lines().nth(index).map(|line| line.supplier)
    }

    /// Reads and writes of a part: a line is an item, its stock read and written, and itself.
    fn steps(self, part: u32) -> u32 {
        let supplied = |supplier| self.supplied_by(supplier).fold(0, |count, _| count + 1);
        match self.supplier_of(part) {
            Some(supplier) => 2 * supplied(supplier),
            None => self.lines().fold(5, |steps, line| {
                steps
                    + if line.supplier == self.warehouse {
                        4
                    } else {
                        2
                    }
            }),
        }
    }

    /// Other warehouses that supply lines, each with its part.
    fn suppliers(self) -> impl Iterator<Item = (u32, Partition)> + 'a {
        let others = (1..).zip(self.lines().map(|line| line.supplier));
        others.filter(move |(part, supplier)| {
            let mut all = (1..).zip(self.lines());
            let first = all.find(|(_, line)| line.supplier == *supplier);
            *supplier != self.warehouse && first.is_some_and(|(index, _)| index == *part)
        })
    }
}

/// The procedure; without state.
#[derive(Debug, Default, Clone, Copy)]
pub struct NewOrder;

const HOME: u32 = 0;

impl Procedure for NewOrder {
    fn name(&self) -> &'static str {
        NEW_ORDER
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let args = Args::parse(args)?;
        let piece = |(part, warehouse): (u32, Partition)| ProcedurePiece {
            part,
            shard: placement.shard_of(&warehouse.prefix()),
            needs: Vec::new(),
            gives: if part == HOME {
                vec![ORDER]
            } else {
                Vec::new()
            },
            steps: args.steps(part),
        };
        let home = std::iter::once((HOME, args.warehouse));
        Ok(home.chain(args.suppliers()).map(piece).collect())
    }

    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        _inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let args = Args::parse(args)?;
        if piece.part == HOME {
            return enter(args, rows);
        }
        let supplier = args.supplier_of(piece.part);
        let supplier = supplier.ok_or_else(|| malformed(NEW_ORDER))?;
        for line in args.supplied_by(supplier) {
            take_from_stock(line, true, rows)?;
        }
        Ok(Values::new())
    }

    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let Ok(args) = Args::parse(args) else {
            return vec![Touch::everything()];
        };
        let stock = |line: Line| Touch::write(keys::stock(line.supplier, line.item).as_slice());
        if piece.part != HOME {
            let supplier = args.supplier_of(piece.part).unwrap_or(args.warehouse);
            return args.supplied_by(supplier).map(stock).collect();
        }
        let (w, d, c) = (args.warehouse, args.district, args.customer);
        let mut touches = vec![
            Touch::read(keys::warehouse(w).as_slice()),
            Touch::write(keys::district(w, d).as_slice()),
            Touch::read(keys::customer(w, d, c).as_slice()),
        ];
        // The number of the order is in the district's row.
        let of_order = [
            keys::orders(w, d),
            keys::new_orders(w, d),
            keys::orders_of(w, d, c),
            keys::order_lines(w, d),
        ];
        touches.extend(of_order.iter().map(|key| Touch {
            range: key.range(),
            writes: true,
        }));
        let items = args.lines();
        touches.extend(items.map(|line| Touch::read(keys::item(w, line.item).as_slice())));
        touches.extend(args.supplied_by(w).map(stock));
        touches
    }
}

/// The part at home.
fn enter(args: Args<'_>, rows: &mut dyn RowView) -> Result<Values, ProcedureError> {
    let (w, d, c) = (args.warehouse, args.district, args.customer);
    let warehouse: Warehouse = get(rows, &keys::warehouse(w))?;
    let customer: Customer = get(rows, &keys::customer(w, d, c))?;
    let next = |district: &mut District| district.next_order += 1;
    let district = update(rows, &keys::district(w, d), next)?;
    let o = district.next_order - 1;
    let order = Order {
        customer: c,
        date: args.date,
        carrier: 0,
        // At most 15.
        lines: u8::try_from(args.lines.len()).unwrap_or(u8::MAX),
        all_local: u8::from(args.suppliers().next().is_none()),
    };
    put(rows, &keys::order(w, d, o), &order)?;
    rows.write(
        keys::order_by_customer(w, d, c, o).to_vec(),
        Some(Vec::new()),
    )?;
    rows.write(keys::new_order(w, d, o).to_vec(), Some(Vec::new()))?;
    let mut sum = 0;
    for (number, line) in (1..).zip(args.lines()) {
        let item: Item = get(rows, &keys::item(w, line.item))?;
        let amount = i64::from(line.quantity) * i64::from(item.price);
        sum += amount;
        if line.supplier == w {
            take_from_stock(line, false, rows)?;
        }
        let row = OrderLine {
            supplier: line.supplier.0,
            item: line.item,
            quantity: line.quantity,
            amount,
            delivered: 0,
        };
        put(rows, &keys::order_line(w, d, o, number), &row)?;
    }
    let kept = 10_000 - i64::from(customer.numbers.discount);
    let taxed = 10_000 + i64::from(warehouse.tax) + i64::from(district.tax);
    let total = sum * kept / 10_000 * taxed / 10_000;
    let mut value = o.to_le_bytes().to_vec();
    value.extend_from_slice(&total.to_le_bytes());
    Ok(Values::from([(ORDER, value)]))
}

/// Takes a line's items from the stock; where fewer than ten would be left, more come in.
fn take_from_stock(
    line: Line,
    is_remote: bool,
    rows: &mut dyn RowView,
) -> Result<(), ProcedureError> {
    let taken = u16::from(line.quantity);
    let take = |stock: &mut Stock| {
        if stock.quantity < taken + 10 {
            stock.quantity += 91;
        }
        stock.quantity -= taken;
        stock.ytd += u32::from(taken);
        stock.orders += 1;
        stock.remote_orders += u32::from(is_remote);
    };
    update(rows, &keys::stock(line.supplier, line.item), take)?;
    Ok(())
}
