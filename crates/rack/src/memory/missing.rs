//! Which memory servers do not answer just now, for people: nothing is decided by it.

use std::sync::Arc;

use super::{Memory, Transport, forming};
use crate::drive::Driver;

/// Looks at all memory servers, as a guest who stays connected.
pub struct ServerProbe<W: Transport> {
    memory: Arc<Memory<W>>,
    /// Its way to all servers; none: one of them did not answer, and is called on anew.
    driver: Option<Driver<W::Fabric>>,
}

impl<W: Transport> ServerProbe<W> {
    /// One that has not looked yet.
    pub fn new(memory: Arc<Memory<W>>) -> Self {
        Self {
            memory,
            driver: None,
        }
    }

    /// Servers that do not answer, or were started anew and have nothing of this database, by their
    /// numbers. May take half a lease, or as long as a server that stands still is called on.
    pub fn missing(&mut self) -> Vec<u16> {
        let all: Vec<u16> = (0..self.memory.geometry().servers).collect();
        let mut driver = match self.driver.take() {
            Some(driver) => driver,
            None => {
                let guest = self.memory.guest().client();
                match self.memory.way.reach(&all, guest) {
                    // Nothing is asked of those that are not reached.
                    Ok((_, missing)) if !missing.is_empty() => {
                        return missing.into_iter().map(|one| one.server).collect();
                    }
                    Ok((fabric, _)) => Driver::new(fabric).of_lease(self.memory.geometry().lease),
                    Err(_) => return all,
                }
            }
        };
        let missing = forming::not_of(&mut driver, &all, self.memory.formation);
        let missing = missing.unwrap_or(all);
        if missing.is_empty() {
            self.driver = Some(driver);
        }
        missing
    }
}
