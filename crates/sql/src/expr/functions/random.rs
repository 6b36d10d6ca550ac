//! RAND, with and without a seed.
#![allow(
    clippy::cast_precision_loss,
    reason = "the numbers have fewer bits than a double"
)]

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::types::{DataType, Value};

pub(super) const FUNCTIONS: &[ScalarFunction] =
    &[ScalarFunction::new("RAND", (0, 1), infer::double, rand).volatile()];

/// `RAND()`, and the first number after a seed.
fn rand(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Double(match args.first() {
        None => (ctx.next_random() >> 11) as f64 / (1u64 << 53) as f64,
        Some(seed) => Generator::new(seed).next(),
    }))
}

/// MySQL's generator of two linear sequences.
#[derive(Debug)]
struct Generator {
    first: u64,
    second: u64,
}

impl Generator {
    const MODULUS: u64 = 0x3fff_ffff;

    /// NULL seeds as 0 does.
    fn new(seed: &Value) -> Self {
        let seed = seed.to_bits().unwrap_or(0) & 0xffff_ffff;
        let first = seed.wrapping_mul(0x10001).wrapping_add(55_555_555) & 0xffff_ffff;
        let second = seed.wrapping_mul(0x1000_0001) & 0xffff_ffff;
        Self {
            first: first % Self::MODULUS,
            second: second % Self::MODULUS,
        }
    }

    /// From 0 to below 1.
    fn next(&mut self) -> f64 {
        self.first = (self.first * 3 + self.second) % Self::MODULUS;
        self.second = (self.first + self.second + 33) % Self::MODULUS;
        self.first as f64 / Self::MODULUS as f64
    }
}

/// The sequences of the calls `RAND(constant)` of a statement: each goes on from row to row.
#[derive(Debug, Default)]
pub struct SeededRandom {
    generators: RefCell<BTreeMap<usize, Generator>>,
}

impl SeededRandom {
    /// The next number of the call at address `call`, which `seed` starts.
    pub fn next(&self, call: usize, seed: &Value) -> f64 {
        let mut generators = self.generators.borrow_mut();
        let generator = generators
            .entry(call)
            .or_insert_with(|| Generator::new(seed));
        generator.next()
    }
}
