//! Nothing: its dependencies are what it is for (see Cargo.toml).
