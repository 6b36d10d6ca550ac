//! What outlives the process: maps, and the program's place at the interface, pinned as files.
//!
//! ```text
//! BPFFS/manxdb/INTERFACE-ns4026531840-xdp/
//!     dispatch          the link of the interface to the program that finds a witness by its port
//!     witnesses         the witnesses' programs, by port
//!     v1-port7404/      the maps of one witness, in layout 1
//!         config, views, rounds, sets, payloads, crc_tables, counters
//! ```
//!
//! The number is the network namespace's: each has a `lo`, and they may share a BPF file system.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::error::CarrierError;
use crate::kind::{CarrierKind, Place};
use crate::layout::LAYOUT_VERSION;

/// The maps that are kept, by the names that the program has for them.
pub(crate) const MAPS: [&str; 7] = [
    "config",
    "views",
    "rounds",
    "sets",
    "payloads",
    "crc_tables",
    "counters",
];

/// Times that a directory may vanish while it is waited for.
const LOCK_TRIES: u32 = 100;

/// The files of one witness.
#[derive(Debug, Clone)]
pub(crate) struct PinPaths {
    /// Of the interface.
    interface: PathBuf,
    /// Of the witness.
    witness: PathBuf,
}

impl PinPaths {
    /// Where the files of a witness are. Nothing is made yet.
    pub(crate) fn of(kind: CarrierKind, place: &Place) -> Result<Self, CarrierError> {
        let namespace = fs::metadata("/proc/thread-self/ns/net");
        let namespace = namespace.map_err(CarrierError::refused("find the network namespace"))?;
        let interface = place.bpffs.join("manxdb").join(format!(
            "{}-ns{}-{kind}",
            without_dots(&place.interface),
            namespace.ino()
        ));
        let name = interface.file_name().map(|name| name.to_string_lossy());
        assert!(
            name.is_some_and(|name| !name.contains('.')),
            "the BPF file system refuses dots"
        );
        let witness = format!("v{LAYOUT_VERSION}-port{}", place.address.port());
        Ok(Self {
            witness: interface.join(witness),
            interface,
        })
    }

    /// Waits until no other process changes the pins of the interface: two witnesses that start at once would
    /// both give it a program. Held until it is dropped.
    pub(crate) fn lock(&self) -> Result<fs::File, CarrierError> {
        let failed = |error| CarrierError::refused("lock the directory of pinned maps")(error);
        for _ in 0..LOCK_TRIES {
            fs::create_dir_all(&self.interface).map_err(failed)?;
            let directory = fs::File::open(&self.interface).map_err(failed)?;
            directory.lock().map_err(failed)?;
            // Who had it before may have taken the directory away.
            let locked = directory.metadata().map_err(failed)?.ino();
            if fs::metadata(&self.interface).is_ok_and(|there| there.ino() == locked) {
                return Ok(directory);
            }
        }
        let why = "it comes and goes".to_owned();
        Err(CarrierError::Refused {
            what: "lock the directory of pinned maps",
            why,
        })
    }

    /// Whether there is anything.
    pub(crate) fn exist(&self) -> bool {
        self.interface.exists()
    }

    pub(crate) fn make(&self) -> Result<(), CarrierError> {
        fs::create_dir_all(&self.witness)
            .map_err(CarrierError::refused("make a directory for pinned maps"))
    }

    pub(crate) fn map(&self, name: &str) -> PathBuf {
        self.witness.join(name)
    }

    pub(crate) fn dispatch(&self) -> PathBuf {
        self.interface.join("dispatch")
    }

    pub(crate) fn witnesses(&self) -> PathBuf {
        self.interface.join("witnesses")
    }

    /// Takes the witness's maps away; of the interface too, when it was the last one there.
    pub(crate) fn remove(&self) -> io::Result<()> {
        remove_all(&self.witness)?;
        let mut others = match fs::read_dir(&self.interface) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            others => others?,
        };
        if others.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir())) {
            return Ok(());
        }
        remove_all(&self.interface)
    }

    /// After a start that failed: a directory in which nothing was attached is of no use.
    pub(crate) fn remove_if_unused(&self) {
        if !self.dispatch().exists() {
            // What remains is empty, and taken up by the next start.
            let _ = remove_all(&self.interface);
        }
    }

    pub(crate) fn remove_maps(&self) -> io::Result<()> {
        remove_all(&self.witness)
    }
}

fn remove_all(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Names of pins have no dots; names of interfaces may (`eth0.100`).
fn without_dots(interface: &str) -> String {
    interface.replace('%', "%25").replace('.', "%2e")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pins_name_has_no_dots_and_names_one_interface() {
        assert_eq!(without_dots("eth0.100"), "eth0%2e100");
        assert_eq!(without_dots("eth0%2e100"), "eth0%252e100");
        let place = Place {
            interface: "lo".to_owned(),
            address: ([127, 0, 0, 1], 7_404).into(),
            cluster: 1,
            life: 1,
            bpffs: PathBuf::from("/bpf"),
        };
        let pins = PinPaths::of(CarrierKind::XdpGeneric, &place).unwrap();
        let sets = pins.map("sets").display().to_string();
        assert!(sets.starts_with("/bpf/manxdb/lo-ns"), "{sets}");
        assert!(sets.ends_with("-xdp-generic/v1-port7404/sets"), "{sets}");
    }
}
