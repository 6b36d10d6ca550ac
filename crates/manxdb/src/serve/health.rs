//! Whether the store takes writes, found out when statements were refused.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_sql::session::Instance;

/// Looks between two tries while writes are refused.
const LOOKS_BETWEEN: u64 = 10;

/// What is known about writes. Reads are served whatever it says.
#[derive(Debug, Default)]
pub struct WriteHealth {
    looks: AtomicU64,
    refused: AtomicU64,
    refusal: Mutex<Option<String>>,
}

impl WriteHealth {
    /// Why the store takes no writes, when it takes none.
    pub fn refusal(&self) -> Option<String> {
        self.known().clone()
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        // A text is whole whatever happened to the thread that wrote it.
        self.refusal
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Tries a write when a statement was refused since the last look, and now and then until
    /// one succeeds.
    pub fn look(&self, instance: &Instance) {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        let refused = instance.refused_writes();
        let is_news = self.refused.swap(refused, Ordering::Relaxed) != refused;
        let is_known = self.known().is_some();
        let is_time = looks.is_multiple_of(LOOKS_BETWEEN);
        if is_known && is_time || !is_known && is_news {
            let refusal = instance.try_write().err().map(|error| error.to_string());
            match (is_known, &refusal) {
                (false, Some(why)) => tracing::error!("only reads are served: {why}"),
                (true, None) => tracing::info!("writes are possible again"),
                _ => {}
            }
            *self.known() = refusal;
        }
    }
}
