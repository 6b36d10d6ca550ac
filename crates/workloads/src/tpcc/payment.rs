//! Payment (clause 2.5): a customer, perhaps of another warehouse, pays at home.
//!
//! | piece | where | what |
//! |---|---|---|
//! | home | home warehouse | adds to the sums of warehouse and district ([`PaymentSums`]) |
//! | customer | the customer's | finds the customer by name if need be, and books the payment |
//! | history | home warehouse | inserts the payment: waits for the number that a name stands for |
//!
//! A customer of the home warehouse makes it one piece; one known by number needs no third.

use manxdb_txn::procedure::{
    Placement, Procedure, ProcedureError, ProcedurePiece, RowView, Slot, Touch, Values,
};

use super::customer::Who;
use super::keys;
use super::parameters::PaymentSums;
use super::rows::{Customer, History, Paid, put, update};
use crate::Partition;
use crate::codec::{Cursor, arguments, malformed};

/// Name of the procedure.
pub const PAYMENT: &str = "tpcc.payment";

/// The customer's number, 4 bytes, little-endian; given only where another piece waits for it.
pub const CUSTOMER_NUMBER: Slot = Slot(0);

/// A payment to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaymentArgs {
    /// The home warehouse.
    pub warehouse: Partition,
    /// From 1.
    pub district: u8,
    /// The customer's.
    pub customer_warehouse: Partition,
    /// The customer's.
    pub customer_district: u8,
    /// Who pays.
    pub customer: Who,
    /// In hundredths.
    pub amount: u32,
    /// When.
    pub date: u64,
    /// The client, and its number for this payment: they name the row of the history.
    pub client: u32,
    /// See `client`.
    pub number: u32,
    /// Which sums it adds to.
    pub sums: PaymentSums,
}

impl PaymentArgs {
    /// The arguments of a call.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(36);
        out.extend_from_slice(&self.warehouse.0.to_le_bytes());
        out.push(self.district);
        out.extend_from_slice(&self.customer_warehouse.0.to_le_bytes());
        out.push(self.customer_district);
        self.customer.encode(&mut out);
        out.extend_from_slice(&self.amount.to_le_bytes());
        out.extend_from_slice(&self.date.to_le_bytes());
        out.extend_from_slice(&self.client.to_le_bytes());
        out.extend_from_slice(&self.number.to_le_bytes());
        out.push(match self.sums {
            PaymentSums::Tpcc => 0,
            PaymentSums::Published => 1,
        });
        out
    }

    /// The payment of a call.
    ///
    /// # Errors
    /// [`ProcedureError::Arguments`].
    pub fn decode(args: &[u8]) -> Result<Self, ProcedureError> {
        arguments(PAYMENT, args, |input| {
            Some(Self {
                warehouse: Partition(input.u32()?),
                district: input.u8()?,
                customer_warehouse: Partition(input.u32()?),
                customer_district: input.u8()?,
                customer: Who::decode(input)?,
                amount: input.u32()?,
                date: input.u64()?,
                client: input.u32()?,
                number: input.u32()?,
                sums: match input.u8()? {
                    0 => PaymentSums::Tpcc,
                    1 => PaymentSums::Published,
                    _ => return None,
                },
            })
        })
    }

    fn is_at_home(&self) -> bool {
        self.warehouse == self.customer_warehouse
    }

    fn history_key(&self) -> keys::Key {
        keys::history(self.warehouse, self.district, self.client, self.number)
    }
}

/// The procedure; without state.
#[derive(Debug, Default, Clone, Copy)]
pub struct Payment;

const HOME: u32 = 0;
const CUSTOMER: u32 = 1;
const HISTORY: u32 = 2;

impl Procedure for Payment {
    fn name(&self) -> &'static str {
        PAYMENT
    }

    fn plan(
        &self,
        args: &[u8],
        placement: &dyn Placement,
    ) -> Result<Vec<ProcedurePiece>, ProcedureError> {
        let args = PaymentArgs::decode(args)?;
        let home = placement.shard_of(&args.warehouse.prefix());
        let piece = |part, shard, steps| ProcedurePiece {
            part,
            shard,
            needs: Vec::new(),
            gives: Vec::new(),
            steps,
        };
        // Warehouse, district twice, the customer's number if it is not known, customer, history.
        let by_name = args.customer.is_name();
        if args.is_at_home() {
            return Ok(vec![piece(HOME, home, if by_name { 6 } else { 5 })]);
        }
        let away = placement.shard_of(&args.customer_warehouse.prefix());
        if !by_name {
            return Ok(vec![piece(HOME, home, 4), piece(CUSTOMER, away, 1)]);
        }
        let mut customer = piece(CUSTOMER, away, 2);
        customer.gives.push(CUSTOMER_NUMBER);
        let mut history = piece(HISTORY, home, 1);
        history.needs.push(CUSTOMER_NUMBER);
        Ok(vec![piece(HOME, home, 3), history, customer])
    }

    fn run(
        &self,
        piece: &ProcedurePiece,
        args: &[u8],
        inputs: &Values,
        rows: &mut dyn RowView,
    ) -> Result<Values, ProcedureError> {
        let args = PaymentArgs::decode(args)?;
        match piece.part {
            HOME => run_home(&args, rows),
            CUSTOMER => {
                let number = pay(&args, rows)?;
                let given = || (CUSTOMER_NUMBER, number.to_le_bytes().to_vec());
                Ok(args.customer.is_name().then(given).into_iter().collect())
            }
            _ => {
                let number = inputs.get(&CUSTOMER_NUMBER);
                let number = number.and_then(|bytes| Cursor::new(bytes).u32());
                let number = number.ok_or_else(|| malformed(PAYMENT))?;
                insert_history(&args, number, rows)?;
                Ok(Values::new())
            }
        }
    }

    fn touches(&self, piece: &ProcedurePiece, args: &[u8]) -> Vec<Touch> {
        let Ok(args) = PaymentArgs::decode(args) else {
            return vec![Touch::everything()];
        };
        let history = Touch::write(args.history_key().as_slice());
        let (w, d) = (args.customer_warehouse, args.customer_district);
        match piece.part {
            HOME => {
                let district = keys::district_paid(args.warehouse, args.district);
                let mut touches = vec![Touch::write(district.as_slice()), history];
                if args.sums == PaymentSums::Tpcc {
                    let warehouse = keys::warehouse_paid(args.warehouse);
                    touches.push(Touch::write(warehouse.as_slice()));
                }
                if args.is_at_home() {
                    touches.extend(args.customer.touches(w, d, true));
                }
                touches
            }
            CUSTOMER => args.customer.touches(w, d, true),
            _ => vec![history],
        }
    }
}

fn run_home(args: &PaymentArgs, rows: &mut dyn RowView) -> Result<Values, ProcedureError> {
    let amount = i64::from(args.amount);
    let (w, d) = (args.warehouse, args.district);
    let pay_in = |row: &mut Paid| row.ytd += amount;
    if args.sums == PaymentSums::Tpcc {
        update(rows, &keys::warehouse_paid(w), pay_in)?;
    }
    update(rows, &keys::district_paid(w, d), pay_in)?;
    if args.is_at_home() {
        let number = pay(args, rows)?;
        insert_history(args, number, rows)?;
    } else if let Who::Number(number) = args.customer {
        insert_history(args, number, rows)?;
    }
    Ok(Values::new())
}

/// Books the payment at the customer; the customer's number.
fn pay(args: &PaymentArgs, rows: &mut dyn RowView) -> Result<u32, ProcedureError> {
    let (w, d) = (args.customer_warehouse, args.customer_district);
    let number = args.customer.find(w, d, rows)?;
    let book = |customer: &mut Customer| {
        let amount = i64::from(args.amount);
        customer.numbers.balance -= amount;
        customer.numbers.paid += amount;
        customer.numbers.payments += 1;
        if customer.numbers.bad_credit != 0 {
            customer.remember(&record(args, number));
        }
    };
    update(rows, &keys::customer(w, d, number), book)?;
    Ok(number)
}

/// What is remembered of the payment of a customer with bad credit.
fn record(args: &PaymentArgs, number: u32) -> [u8; 18] {
    let mut record = [0; 18];
    record[..4].copy_from_slice(&number.to_le_bytes());
    record[4] = args.customer_district;
    record[5..9].copy_from_slice(&args.customer_warehouse.0.to_le_bytes());
    record[9] = args.district;
    record[10..14].copy_from_slice(&args.warehouse.0.to_le_bytes());
    record[14..].copy_from_slice(&args.amount.to_le_bytes());
    record
}

fn insert_history(
    args: &PaymentArgs,
    number: u32,
    rows: &mut dyn RowView,
) -> Result<(), ProcedureError> {
    let row = History {
        warehouse: args.customer_warehouse.0,
        district: args.customer_district,
        customer: number,
        amount: args.amount.into(),
        date: args.date,
    };
    put(rows, &args.history_key(), &row)
}
