//! The service of a program, with what operators see of it.

use std::sync::Arc;

use manxdb_compaction::external::{ExternalDbOptions, ExternalDbs};
use manxdb_compaction::metrics::scrape::{Scraped, serve};
use manxdb_compaction::metrics::text_of;
use manxdb_compaction::transport::link::Route;
use manxdb_compaction_edge::{JobInfo, Service, TableFunctions, Waited};
use manxdb_jobs::client::ClientOptions;
use manxdb_jobs::job::Zone;

use crate::configuration::Configuration;

/// All databases of a program.
pub struct Served {
    external_dbs: Arc<ExternalDbs>,
    _metrics: Option<Scraped>,
}

impl Served {
    /// Begins to serve. Whether the pool is there shows later: the program works without.
    ///
    /// # Errors
    /// What the configuration names cannot be had.
    pub fn start(
        configuration: &Configuration,
        tables: TableFunctions,
    ) -> Result<Arc<dyn Service>, String> {
        crate::log::start(configuration.log.as_deref(), &configuration.log_level)?;
        let security = configuration.secrets().read()?;
        let (volume, storage) = configuration.volume()?;
        let external_dbs = ExternalDbs::new(ExternalDbOptions {
            route: Route::new(&configuration.control, &security)?,
            volume,
            storage,
            zone: Zone(configuration.zone),
            bytes_min: configuration.bytes_min()?,
            has_one_path: configuration.one_path,
            client: ClientOptions::default(),
            draw,
            tables,
        });
        let shown = Arc::clone(&external_dbs);
        let metrics = configuration.metrics.map(|address| {
            let served = serve(address, move || text_of(&shown.numbers()));
            served.map_err(|why| {
                format!(
                    "compaction_metrics {address}: {why}; each service has an address of its own \
                     (one service may serve all databases of a program)"
                )
            })
        });
        Ok(Arc::new(Self {
            external_dbs,
            _metrics: metrics.transpose()?,
        }))
    }
}

/// A number that nobody else has.
fn draw() -> Result<u64, String> {
    let mut bytes = [0; 8];
    aws_lc_rs::rand::fill(&mut bytes)
        .map_err(|_| "the system gives no random numbers".to_owned())?;
    Ok(u64::from_le_bytes(bytes))
}

impl Service for Served {
    fn schedule(&self, info: &JobInfo, input: &[u8]) -> Option<String> {
        self.external_dbs.schedule(info, input)
    }

    fn wait(&self, job: &str) -> Waited {
        self.external_dbs.wait(job)
    }

    fn cancel(&self) {
        self.external_dbs.cancel();
    }

    fn installed(&self, job: &str, is_installed: bool) {
        self.external_dbs.installed(job, is_installed);
    }
}
