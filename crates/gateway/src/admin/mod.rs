//! The admin listener: health, version, metrics, slow statements and online backup over HTTP or HTTPS.
//!
//! | path | answer |
//! |---|---|
//! | `GET /` | the console: what this server does now, and slow statements; its script reads `/metrics` |
//! | `GET /healthz` | 200 while the process lives, and one line: `ok`, or what is lost and what to do; JSON for who accepts that only |
//! | `GET /readyz` | 200 while it serves, 503 and that line while not |
//! | `GET /version` | JSON |
//! | `GET /metrics` | Prometheus text |
//! | `GET /slow` | JSON: slow statements with the split of their time |
//! | `GET /redis` | keys, memory, loads, waits and slow commands of Redis clients; JSON for who accepts that only |
//! | `GET /ownership` | whose the rows of each table are, as a picture, and requests to forget; JSON for who accepts that only |
//! | `GET /ownership/person`, `POST` with `kind` and `id` | a form, and a person's rows as a tree; JSON for who accepts that only |
//! | `GET /ownership/certificates` | certificates of requests, and whether each verifies; JSON for who accepts that only |
//! | `GET /ownership/certificate?request=19` | one of them, to be stored |
//! | `GET /views` | materialized views: what they hold, and how often they answered; JSON for who accepts that only |
//! | `GET /compaction` | the pool that compactions are handed to: control plane, workers, jobs; JSON for who accepts that only |
//! | `GET /replication` | a cluster that replicates: roles, view, how commands are completed, backlogs; JSON for who accepts that only |
//! | `GET /geo`, and `GET /` of its nodes | a cluster over regions: latencies, what transactions wait for, regions, nodes; JSON for who accepts that only |
//! | `POST /backup` | starts a backup; needs the token in the data directory, loopback only |
//!
//! Statements, tables and keys are shown to the machine itself, and to accounts with the privilege PROCESS
//! from elsewhere ([`login`]); numbers and states to all. People and certificates are shown to accounts with
//! the privilege GDPR alone, also on the machine itself ([`owners`]). The listener is on loopback unless told
//! otherwise.

mod certificates_page;
mod compaction_page;
mod geo_page;
mod health;
mod http;
mod login;
mod metrics_text;
mod owners;
mod ownership_page;
mod page;
mod person_page;
mod redis_page;
mod replication_page;
mod server;
mod views_page;

pub use health::{HealthReport, HealthState};
pub use login::{Credentials, LogIn};
pub use metrics_text::{Gauge, count, histogram, install_recorder, seconds};
pub use owners::{Owners, OwnersRefusal};
pub use server::{AdminServer, AdminSources};
