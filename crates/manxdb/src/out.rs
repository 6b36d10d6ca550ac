//! Printing to people and pipes.
//!
//! The macros take the names of the standard ones, so that nobody has to remember them: those
//! panic when the reader has gone away, as it does in `manxdb lab list | head -1`.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};

/// What a shell says of a process that its reader left: 128 and the number of SIGPIPE.
const LEFT_BY_READER: i32 = 141;

/// Prints to standard output, at once. Ends the process when nobody reads any more; other
/// failures of standard output have nobody to be told to.
pub fn print(text: Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    let done = out.write_fmt(text).and_then(|()| out.flush());
    if done.is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        std::process::exit(LEFT_BY_READER);
    }
}

/// A line on standard output.
#[macro_export]
macro_rules! println {
    () => { $crate::print_out(format_args!("\n")) };
    ($($text:tt)+) => { $crate::print_out(format_args!("{}\n", format_args!($($text)+))) };
}

/// Text on standard output.
#[macro_export]
macro_rules! print {
    ($($text:tt)+) => { $crate::print_out(format_args!($($text)+)) };
}
