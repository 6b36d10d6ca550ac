//! Memory servers that are reached from other machines, in a build with the feature `libfabric`.

#[cfg(feature = "libfabric")]
pub use self::present::{offer, way};

#[cfg(not(feature = "libfabric"))]
pub use self::absent::{offer, way};

#[cfg(feature = "libfabric")]
mod present {
    use std::net::{SocketAddr, ToSocketAddrs as _};
    use std::path::Path;
    use std::sync::Arc;

    use manxdb_fabric::ServerId;
    use manxdb_fabric::libfabric::{ListenerAddress, MemoryServer, Provider};
    use manxdb_rack::memory::{RemoteTransport, first_words};

    use super::super::Registered;
    use crate::config::{MemorySettings, RemoteSettings};
    use crate::fault::Fault;

    impl Registered for MemoryServer {
        fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
            self.read(offset, bytes)
        }

        fn clients(&self) -> Vec<u64> {
            self.clients()
        }

        fn ended(&self) -> usize {
            self.ended()
        }
    }

    /// Offers memory at an address.
    ///
    /// # Errors
    /// What is in the way.
    pub fn offer(
        address: SocketAddr,
        remote: &RemoteSettings,
        settings: &MemorySettings,
    ) -> Result<Arc<dyn Registered>, Fault> {
        let superblock = &settings.superblock;
        let listener_address = ListenerAddress {
            address,
            token: token(remote.token_file.as_deref())?,
        };
        let (server, bytes) = (ServerId(superblock.server), superblock.geometry.bytes);
        let provider = Provider::at(&remote.provider, address.ip());
        let first = first_words(superblock, None);
        let memory =
            MemoryServer::start_filled(&listener_address, server, bytes, &first, &provider);
        let memory = memory.map_err(|error| Fault::Other(error.to_string()))?;
        if settings.populate {
            let cannot = || format!("cannot offer {bytes} bytes of memory at {address}");
            let populated = memory.populate();
            populated.map_err(|error| Fault::io(cannot(), error))?;
        }
        Ok(Arc::new(memory))
    }

    /// The way to memory servers at addresses.
    ///
    /// # Errors
    /// An address that is none, or a provider that cannot be used.
    pub fn way(addresses: &[String], remote: &RemoteSettings) -> Result<RemoteTransport, Fault> {
        let token = token(remote.token_file.as_deref())?;
        let listener_address = |address: &String| {
            let cannot = || format!("cannot find the memory server {address}");
            let found = address.to_socket_addrs();
            let found = found.map_err(|error| Fault::io(cannot(), error))?.next();
            let found = found.ok_or_else(|| Fault::Other(cannot()))?;
            Ok(ListenerAddress {
                address: found,
                token: token.clone(),
            })
        };
        let listener_addresses: Result<Vec<ListenerAddress>, Fault> =
            addresses.iter().map(listener_address).collect();
        RemoteTransport::new(&remote.provider, listener_addresses?)
            .map_err(|error| Fault::Other(error.to_string()))
    }

    /// What is in the file of a token; nothing without a file.
    fn token(file: Option<&Path>) -> Result<String, Fault> {
        let Some(file) = file else {
            return Ok(String::new());
        };
        let cannot = || format!("cannot read {}", file.display());
        let token = std::fs::read_to_string(file).map_err(|error| Fault::io(cannot(), error))?;
        let token = token.trim();
        if token.is_empty() || token.len() > ListenerAddress::TOKEN_MAX {
            return Err(Fault::Config(format!(
                "the token in {} has {} bytes but must have 1 to {}",
                file.display(),
                token.len(),
                ListenerAddress::TOKEN_MAX
            )));
        }
        Ok(token.to_owned())
    }
}

#[cfg(not(feature = "libfabric"))]
mod absent {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use manxdb_rack::memory::SharedTransport;

    use super::super::Registered;
    use crate::config::{MemorySettings, RemoteSettings};
    use crate::fault::Fault;

    fn absent() -> Fault {
        Fault::Other(
            "this manxdb was built without libfabric, and knows no memory of other machines: build it \
             with `cargo build --release -p manxdb --features libfabric` (Debian and Ubuntu: \
             apt-get install libfabric-dev), or use --directory"
                .to_owned(),
        )
    }

    /// There is no such memory.
    ///
    /// # Errors
    /// Always, saying so.
    pub fn offer(
        _: SocketAddr,
        _: &RemoteSettings,
        _: &MemorySettings,
    ) -> Result<Arc<dyn Registered>, Fault> {
        Err(absent())
    }

    /// There is no such way.
    ///
    /// # Errors
    /// Always, saying so.
    pub fn way(_: &[String], _: &RemoteSettings) -> Result<SharedTransport, Fault> {
        Err(absent())
    }
}
