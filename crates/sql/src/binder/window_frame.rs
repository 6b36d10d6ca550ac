//! Frames of windows: which rows around the current one a function sees.

use sqlparser::ast;

use super::Binder;
use crate::error::{SqlError, SqlResult};
use crate::plan::window::{FrameBound, RangeBound, UNNAMED_WINDOW, WindowFrame, illegal_distance};
use crate::plan::{BinaryOp, Expr};
use crate::types::DataType;

impl Binder<'_> {
    /// Binds a frame of a window ordered by `order`.
    ///
    /// # Errors
    /// 3584 to 3589 for frames that make no sense, 1235 for GROUPS and EXCLUDE.
    pub(super) fn window_frame(
        &mut self,
        frame: Option<&ast::WindowFrame>,
        order: &[(Expr, bool)],
    ) -> SqlResult<WindowFrame> {
        let Some(frame) = frame else {
            return Ok(WindowFrame {
                rows: false,
                start: FrameBound::Unbounded,
                end: if order.is_empty() {
                    FrameBound::Unbounded
                } else {
                    FrameBound::Current
                },
            });
        };
        let rows = match frame.units {
            ast::WindowFrameUnits::Rows => true,
            ast::WindowFrameUnits::Range => false,
            ast::WindowFrameUnits::Groups => return Err(SqlError::not_supported("GROUPS")),
        };
        let end = frame.end_bound.as_ref();
        check_order(
            &frame.start_bound,
            end.unwrap_or(&ast::WindowFrameBound::CurrentRow),
        )?;
        let start = self.frame_bound(&frame.start_bound, rows, order)?;
        let end = match end {
            Some(bound) => self.frame_bound(bound, rows, order)?,
            None => FrameBound::Current,
        };
        Ok(WindowFrame { rows, start, end })
    }

    fn frame_bound(
        &mut self,
        bound: &ast::WindowFrameBound,
        rows: bool,
        order: &[(Expr, bool)],
    ) -> SqlResult<FrameBound> {
        use ast::WindowFrameBound as B;
        let (distance, following) = match bound {
            B::CurrentRow => return Ok(FrameBound::Current),
            B::Preceding(None) | B::Following(None) => return Ok(FrameBound::Unbounded),
            B::Preceding(Some(distance)) => (distance, false),
            B::Following(Some(distance)) => (distance, true),
        };
        if !rows {
            return self.range_bound(distance, following, order);
        }
        let distance = self.bind_scalar(distance)?;
        Ok(if following {
            FrameBound::Following(distance)
        } else {
            FrameBound::Preceding(distance)
        })
    }

    /// A distance moves the ORDER BY value; downwards when it precedes in ascending order or
    /// follows in descending order.
    fn range_bound(
        &mut self,
        distance: &ast::Expr,
        following: bool,
        order: &[(Expr, bool)],
    ) -> SqlResult<FrameBound> {
        let [(key, descending)] = order else {
            return Err(order_type());
        };
        let upwards = following != *descending;
        let (distance, limit) = match distance {
            ast::Expr::Interval(interval) if key.ty.is_temporal() => {
                let distance = self.bind_scalar(&interval.value)?;
                let name = if upwards { "DATE_ADD" } else { "DATE_SUB" };
                (distance, self.shift_date(name, key.clone(), interval)?)
            }
            ast::Expr::Interval(_) if key.ty.is_number() => return Err(interval_of_number()),
            ast::Expr::Interval(_) => return Err(order_type()),
            _ if key.ty.is_temporal() => return Err(number_of_time()),
            _ if !key.ty.is_number() => return Err(order_type()),
            number => {
                let mut distance = self.bind_scalar(number)?;
                self.infer(&mut distance, &key.ty);
                let op = if upwards {
                    BinaryOp::Add
                } else {
                    BinaryOp::Sub
                };
                let limit = Expr::binary(op, room(key.clone())?, distance.clone())?;
                (distance, limit)
            }
        };
        Ok(FrameBound::Range(Box::new(RangeBound { distance, limit })))
    }
}

/// An integer as a decimal, which no distance takes out of its range.
fn room(key: Expr) -> SqlResult<Expr> {
    if key.ty.is_float() {
        return Ok(key);
    }
    let scale = key.ty.precision_scale().1;
    Expr::cast(
        key,
        DataType::Decimal {
            precision: 65,
            scale,
            sign: DataType::SIGNED,
        },
    )
}

/// A frame must not begin behind its end.
fn check_order(start: &ast::WindowFrameBound, end: &ast::WindowFrameBound) -> SqlResult<()> {
    use ast::WindowFrameBound as B;
    match (start, end) {
        (B::Following(None), _) => Err(frame_error(
            3584,
            "frame start cannot be UNBOUNDED FOLLOWING.",
        )),
        (_, B::Preceding(None)) => Err(frame_error(
            3585,
            "frame end cannot be UNBOUNDED PRECEDING.",
        )),
        (B::CurrentRow | B::Following(_), B::Preceding(_)) | (B::Following(_), B::CurrentRow) => {
            Err(illegal_distance())
        }
        _ => Ok(()),
    }
}

fn frame_error(code: u16, what: &str) -> SqlError {
    SqlError::new(code, "HY000", format!("Window '{UNNAMED_WINDOW}': {what}"))
}

fn order_type() -> SqlError {
    let message = format!(
        "Window '{UNNAMED_WINDOW}' with RANGE N PRECEDING/FOLLOWING frame requires exactly one ORDER BY \
         expression, of numeric or temporal type"
    );
    SqlError::new(3587, "HY000", message)
}

fn number_of_time() -> SqlError {
    let message = format!(
        "Window '{UNNAMED_WINDOW}' with RANGE frame has ORDER BY expression of datetime type. Only \
         INTERVAL bound value allowed."
    );
    SqlError::new(3588, "HY000", message)
}

fn interval_of_number() -> SqlError {
    let message = format!(
        "Window '{UNNAMED_WINDOW}' with RANGE frame has ORDER BY expression of numeric type, INTERVAL \
         bound value not allowed."
    );
    SqlError::new(3589, "HY000", message)
}
