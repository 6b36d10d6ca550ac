//! The interpreter of scripts: Lua 5.1, as Redis's scripts see it.
//!
//! A script sees Redis's own libraries, of our own making, and nothing of the system. It knows no server:
//! what it asks of one is answered by whoever runs it ([`crate::server::scripting`]).
//!
//! | file | what |
//! |---|---|
//! | `cache` | scripts by their SHA-1 |
//! | `functions` | libraries of functions |
//! | `interpreter`, `sandbox.lua` | the Lua state: its limits, what scripts see of it |
//! | `values` | replies as values of Lua, and back |
//! | `library` | `redis`, `cjson`, `cmsgpack`, `struct`, `bit` |
//! | `thrown` | errors that Rust raises in scripts |
//! | `state` | all of it that a server has |

mod bits;
pub(crate) mod cache;
mod cjson;
mod cmsgpack;
pub(crate) mod functions;
pub(crate) mod interpreter;
mod json;
pub(crate) mod library;
mod pack;
mod state;
pub(crate) mod thrown;
pub(crate) mod values;

pub use cache::{EVALUATED_MAX, sha1_hex};
pub use interpreter::INSTRUCTIONS;
pub(crate) use state::Scripts;
