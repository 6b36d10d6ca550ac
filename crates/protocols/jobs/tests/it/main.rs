//! The tests of the job protocol, one program: each module says what it tests.

mod baselines;
mod common;
mod defects;
mod ends;
mod hedge;
mod pair;
mod plane;
mod pool;
mod restarts;
mod shares;
mod zones;
