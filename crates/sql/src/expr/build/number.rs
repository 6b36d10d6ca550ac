//! Types of sums, products and quotients.

use crate::plan::BinaryOp;
use crate::types::{DataType, MAX_DECIMAL_PRECISION, MAX_DECIMAL_SCALE};

/// `div_precision_increment` assumed for declared scales; evaluation uses the session's.
pub(crate) const DIV_INCREMENT: u8 = 4;

/// The kind of number a type computes as.
pub(super) fn numeric_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Int { .. } | DataType::Decimal { .. } => ty.clone().computed(),
        DataType::Year | DataType::Date => DataType::BIGINT,
        DataType::Bit { .. } => DataType::BIGINT_UNSIGNED,
        DataType::Null => DataType::BIGINT,
        DataType::Time { fsp } | DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
            if *fsp == 0 {
                DataType::BIGINT
            } else {
                let (precision, scale) = ty.precision_scale();
                DataType::Decimal {
                    precision,
                    scale,
                    sign: DataType::SIGNED,
                }
            }
        }
        _ => DataType::DOUBLE,
    }
}

pub(super) fn binary_type(op: BinaryOp, a: &DataType, b: &DataType) -> DataType {
    use BinaryOp::{Add, BitAnd, BitOr, BitXor, Div, IntDiv, Mod, Mul, ShiftLeft, ShiftRight, Sub};
    let fractions = a.fraction_digits().zip(b.fraction_digits());
    let (a, b) = (numeric_type(a), numeric_type(b));
    let unsigned = a.is_unsigned() || b.is_unsigned();
    let integer = |unsigned| {
        if unsigned {
            DataType::BIGINT_UNSIGNED
        } else {
            DataType::BIGINT
        }
    };
    match op {
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => DataType::BIGINT_UNSIGNED,
        IntDiv => integer(unsigned),
        _ if a.is_float() || b.is_float() => {
            DataType::double_with(fractions.map(|(left, right)| match op {
                Div => left.max(right) + DIV_INCREMENT,
                _ => left.max(right),
            }))
        }
        Mod if a.is_integer() && b.is_integer() => integer(a.is_unsigned()),
        Add | Sub | Mul if a.is_integer() && b.is_integer() => integer(unsigned),
        Add | Sub | Mul | Mod | Div => decimal_result(op, &a, &b),
    }
}

fn decimal_result(op: BinaryOp, a: &DataType, b: &DataType) -> DataType {
    let ((a_precision, a_scale), (b_precision, b_scale)) =
        (a.precision_scale(), b.precision_scale());
    let (precision, scale) = match op {
        BinaryOp::Mul => (a_precision + b_precision, a_scale + b_scale),
        BinaryOp::Div => (
            a_precision + b_scale + DIV_INCREMENT,
            a_scale + DIV_INCREMENT,
        ),
        BinaryOp::Mod => (a_precision.max(b_precision), a_scale.max(b_scale)),
        _ => {
            let scale = a_scale.max(b_scale);
            let whole = (
                a_precision.saturating_sub(a_scale),
                b_precision.saturating_sub(b_scale),
            );
            (whole.0.max(whole.1) + scale + 1, scale)
        }
    };
    DataType::Decimal {
        precision: precision.min(MAX_DECIMAL_PRECISION),
        scale: scale.min(MAX_DECIMAL_SCALE),
        sign: DataType::sign_of(a.is_unsigned() && b.is_unsigned()),
    }
}
