//! Dates and times as text.

use crate::types::temporal::{Date, DateTime, Time};

/// Writes `YYYY-MM-DD`.
pub fn write_date(date: Date, out: &mut Vec<u8>) {
    push_padded(i64::from(date.year), 4, out);
    out.push(b'-');
    push_padded(i64::from(date.month), 2, out);
    out.push(b'-');
    push_padded(i64::from(date.day), 2, out);
}

/// Writes `[-]HH:MM:SS[.ffffff]`.
pub fn write_time(time: Time, fsp: u8, out: &mut Vec<u8>) {
    if time.micros < 0 {
        out.push(b'-');
    }
    let (hours, minutes, seconds, micros) = time.parts();
    push_padded(hours, 2, out);
    out.push(b':');
    push_padded(minutes, 2, out);
    out.push(b':');
    push_padded(seconds, 2, out);
    if fsp > 0 {
        let fsp = fsp.min(6);
        out.push(b'.');
        push_padded(
            micros / 10i64.pow(6 - u32::from(fsp)),
            usize::from(fsp),
            out,
        );
    }
}

/// Writes `YYYY-MM-DD HH:MM:SS[.ffffff]`.
pub fn write_datetime(value: DateTime, fsp: u8, out: &mut Vec<u8>) {
    write_date(value.date, out);
    out.push(b' ');
    write_time(value.time(), fsp, out);
}

/// Appends `value` with at least `width` digits.
fn push_padded(value: i64, width: usize, out: &mut Vec<u8>) {
    let mut digits = [b'0'; 20];
    let mut start = digits.len();
    let mut rest = value.unsigned_abs();
    while rest > 0 || digits.len() - start < width {
        start -= 1;
        digits[start] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    out.extend_from_slice(&digits[start..]);
}
