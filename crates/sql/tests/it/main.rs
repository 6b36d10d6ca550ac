//! Tests of SQL through sessions.

mod alter_interleaving;
mod changes;
mod connect_statements;
mod dead_clients;
mod forget;
mod garbage;
mod gdpr_get;
mod half_done;
mod home_region;
mod index_choice;
mod isolation;
mod load_data;
mod materialized;
mod nesting;
mod online_changes;
mod owners;
mod ownership;
mod privileges;
mod reads;
mod sealing;
mod sessions;
mod sqllogic;
mod templates;
mod temporary;
