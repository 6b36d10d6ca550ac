//! The type that holds values of several.

use super::data_type::{Collation, DataType, IntWidth};
use super::number::MAX_DECIMAL_PRECISION;
use super::type_info::bit_bytes;

/// The type that holds values of all `types`: of CASE, COALESCE, UNION and their kin.
#[must_use]
pub fn common_type(types: &[&DataType]) -> DataType {
    let mut known = types.iter().filter(|ty| !matches!(ty, DataType::Null));
    let Some(first) = known.next() else {
        return DataType::Null;
    };
    known.fold((*first).clone(), |a, b| common_pair(&a, b))
}

fn common_pair(a: &DataType, b: &DataType) -> DataType {
    if a == b {
        return a.clone();
    }
    if a.is_number() && b.is_number() {
        return common_number(a, b);
    }
    if a.is_temporal() && b.is_temporal() {
        return common_temporal(a, b);
    }
    let (a, b) = (bit_as_bytes(a), bit_as_bytes(b));
    let length = a.char_length().max(b.char_length());
    DataType::text_of(length, common_collation(&a, &b))
}

/// BIT among texts is the bytes that hold its bits.
fn bit_as_bytes(ty: &DataType) -> DataType {
    match ty {
        DataType::Bit { width } => DataType::Varbinary {
            length: bit_bytes(*width),
        },
        other => other.clone(),
    }
}

fn common_collation(a: &DataType, b: &DataType) -> Collation {
    match (a.collation(), b.collation()) {
        (Some(a), Some(b)) => merge_collations(a, b),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => Collation::default(),
    }
}

/// The collation of two texts of equal standing: bytes win, then `_bin`, else the first.
#[must_use]
pub fn merge_collations(a: Collation, b: Collation) -> Collation {
    match (a, b) {
        (Collation::Binary, _) | (_, Collation::Binary) => Collation::Binary,
        _ if a.is_binary() => a,
        _ if b.is_binary() => b,
        _ => a,
    }
}

fn common_number(a: &DataType, b: &DataType) -> DataType {
    match (a, b) {
        (DataType::Bit { width: left }, DataType::Bit { width: right }) => {
            let width = *left.max(right);
            return DataType::Bit { width };
        }
        (DataType::Bit { .. }, other) => return common_pair(&DataType::BIGINT_UNSIGNED, other),
        (other, DataType::Bit { .. }) => return common_pair(other, &DataType::BIGINT_UNSIGNED),
        _ => {}
    }
    if a.is_float() || b.is_float() {
        return DataType::common_float(a, b);
    }
    if let (
        DataType::Int {
            width: left,
            unsigned: a_unsigned,
            ..
        },
        DataType::Int {
            width: right,
            unsigned: b_unsigned,
            ..
        },
    ) = (a, b)
    {
        return common_integer((*left, *a_unsigned), (*right, *b_unsigned));
    }
    if a.is_integer() && b.is_integer() {
        return DataType::BIGINT;
    }
    let ((a_precision, a_scale), (b_precision, b_scale)) =
        (a.precision_scale(), b.precision_scale());
    let scale = a_scale.max(b_scale);
    let whole = a_precision
        .saturating_sub(a_scale)
        .max(b_precision.saturating_sub(b_scale));
    DataType::Decimal {
        precision: (whole + scale).min(MAX_DECIMAL_PRECISION),
        scale,
        sign: DataType::sign_of(a.is_unsigned() && b.is_unsigned()),
    }
}

fn common_integer(a: (IntWidth, bool), b: (IntWidth, bool)) -> DataType {
    let wider = if a.0.bytes() >= b.0.bytes() { a.0 } else { b.0 };
    let integer = |width, unsigned| DataType::Int {
        width,
        unsigned,
        display_width: None,
    };
    if a.1 == b.1 {
        return integer(wider, a.1);
    }
    let unsigned_width = if a.1 { a.0 } else { b.0 };
    if unsigned_width.bytes() < wider.bytes() {
        return integer(wider, false);
    }
    match wider {
        IntWidth::Tiny => integer(IntWidth::Small, false),
        IntWidth::Small => integer(IntWidth::Medium, false),
        IntWidth::Medium => integer(IntWidth::Int, false),
        IntWidth::Int => integer(IntWidth::Big, false),
        IntWidth::Big => DataType::Decimal {
            precision: 20,
            scale: 0,
            sign: DataType::SIGNED,
        },
    }
}

fn common_temporal(a: &DataType, b: &DataType) -> DataType {
    let fsp = a.fsp().max(b.fsp());
    match (a, b) {
        (DataType::Time { .. }, DataType::Time { .. }) => DataType::Time { fsp },
        (DataType::Timestamp { .. }, DataType::Timestamp { .. }) => DataType::Timestamp { fsp },
        _ => DataType::DateTime { fsp },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimal(precision: u8, scale: u8) -> DataType {
        DataType::Decimal {
            precision,
            scale,
            sign: DataType::SIGNED,
        }
    }

    #[test]
    fn common_types_hold_both_sides() {
        let table = [
            (DataType::BIGINT, DataType::BIGINT_UNSIGNED, decimal(20, 0)),
            (DataType::BIGINT, decimal(5, 2), decimal(21, 2)),
            (DataType::BIGINT, DataType::DOUBLE, DataType::DOUBLE),
            (DataType::Null, DataType::Date, DataType::Date),
            (
                DataType::Date,
                DataType::Time { fsp: 3 },
                DataType::DateTime { fsp: 3 },
            ),
            (
                DataType::varchar(5),
                DataType::BIGINT,
                DataType::varchar(20),
            ),
            (
                DataType::varchar(5),
                DataType::Varbinary { length: 9 },
                DataType::Varbinary { length: 9 },
            ),
            (
                DataType::Bit { width: 3 },
                DataType::Bit { width: 9 },
                DataType::Bit { width: 9 },
            ),
            (DataType::Bit { width: 3 }, DataType::BIGINT, decimal(20, 0)),
            (
                DataType::Bit { width: 9 },
                DataType::varchar(1),
                DataType::Varbinary { length: 2 },
            ),
        ];
        for (a, b, expected) in table {
            assert_eq!(common_type(&[&a, &b]), expected);
        }
    }
}
