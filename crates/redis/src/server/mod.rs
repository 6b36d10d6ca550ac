//! What connections have beside data: a name and a database, MULTI and WATCH, channels, waiting.
//!
//! [`Server`] owns the keyspace and all connections' states, and is as pure as they are: commands and stamps come
//! in, replies and rows go out. Bytes, sockets and time are the gateway's.
//!
//! | file | what |
//! |---|---|
//! | `state` | [`Server`], one command of one connection |
//! | [`table`] | which commands there are |
//! | [`scripting`] | EVAL, SCRIPT, FUNCTION, and a script that runs |
//! | `busy` | what other connections are answered while a script runs |
//! | `needs` | what of the store a command needs before it runs |
//! | `client`, `client_kill` | a connection's state, CLIENT |
//! | `pause` | commands that wait: CLIENT PAUSE |
//! | `transaction` | MULTI, EXEC, WATCH |
//! | `channels` | SUBSCRIBE, PUBLISH |
//! | `events`, `event_names` | keyspace events |
//! | `tracking`, `tracking_commands` | clients that keep values: CLIENT TRACKING |
//! | `forward` | what a server without data passes on |
//! | `waiting` | who waits for which key |
//! | `hello` | HELLO, AUTH, SELECT, PING |
//! | `admit` | whether a command may run now |
//! | `acl`, `selector`, `acl_commands`, `acl_log` | users, what they may do, and what they were not let do |
//! | `info` | INFO, CONFIG, COMMAND, and other questions about the server |
//! | `numbers` | what INFO and metrics tell |
//! | `statistics` | how often commands ran, failed and were refused, and how long they took |
//! | `slowlog`, `latency`, `latency_report` | what took long |
//! | `commands`, `key_access` | COMMAND |

mod acl;
mod acl_commands;
mod acl_log;
mod admit;
mod busy;
mod call;
mod channels;
mod client;
mod client_kill;
mod commands;
mod config;
mod event_names;
mod events;
mod forward;
mod hello;
mod info;
mod key_access;
mod latency;
mod latency_report;
mod needs;
mod numbers;
mod pause;
pub mod scripting;
mod selector;
mod slowlog;
mod state;
mod statistics;
pub mod table;
mod tracking;
mod tracking_commands;
mod transaction;
mod waiting;

pub use call::{Call, ConnectionCommand, ConnectionRun};
pub use client::ClientId;
pub use config::Settings;
pub use events::Events;
pub use forward::{DataCall, Forward};
pub use latency::LatencyEvent;
pub use needs::Needs;
pub use numbers::{NUMBERS, Number, Outside};
pub use slowlog::{SlowCommand, SlowLog, Split};
pub use state::{Handled, Server};
pub use waiting::timeout_reply;

use crate::spec::{Flags, Group, Keys};
use call::connection;

const CONNECTION: Flags = Flags::FAST.and(Flags::NOSCRIPT);
const OPEN: Flags = CONNECTION.and(Flags::NO_AUTH);
const ADMIN: Flags = Flags::ADMIN.and(Flags::NOSCRIPT);
const CHANNELS: Flags = Flags::PUBSUB.and(Flags::NOSCRIPT);
const NONE: Keys = Keys::None;
const C: Group = Group::Connection;
const T: Group = Group::Transactions;
const S: Group = Group::Server;
const P: Group = Group::PubSub;

/// The family's commands.
pub static COMMANDS: &[ConnectionCommand] = &[
    connection(
        ("hello", -1),
        OPEN,
        NONE,
        C,
        ("6.0.0", "Handshakes with the Redis server."),
        hello::hello,
    ),
    connection(
        ("auth", -2),
        OPEN,
        NONE,
        C,
        ("1.0.0", "Authenticates the connection."),
        hello::auth,
    ),
    connection(
        ("ping", -1),
        Flags::FAST,
        NONE,
        C,
        ("1.0.0", "Returns the server's liveliness response."),
        hello::ping,
    ),
    connection(
        ("select", 2),
        Flags::FAST,
        NONE,
        C,
        ("1.0.0", "Changes the selected database."),
        hello::select,
    ),
    connection(
        ("quit", -1),
        OPEN,
        NONE,
        C,
        ("1.0.0", "Closes the connection."),
        hello::quit,
    ),
    connection(
        ("reset", 1),
        OPEN.and(Flags::NO_MULTI),
        NONE,
        C,
        ("6.2.0", "Resets the connection."),
        hello::reset,
    ),
    connection(
        ("client", -2),
        ADMIN.and(Flags::CONTAINER),
        NONE,
        C,
        ("2.4.0", "A container for client connection commands."),
        client::client,
    ),
    connection(
        ("multi", 1),
        CONNECTION.and(Flags::NO_MULTI),
        NONE,
        T,
        ("1.2.0", "Starts a transaction."),
        transaction::multi,
    ),
    connection(
        ("exec", 1),
        CONNECTION.and(Flags::NO_MULTI),
        NONE,
        T,
        ("1.2.0", "Executes all commands in a transaction."),
        transaction::exec,
    ),
    connection(
        ("discard", 1),
        CONNECTION.and(Flags::NO_MULTI),
        NONE,
        T,
        ("2.0.0", "Discards a transaction."),
        transaction::discard,
    ),
    connection(
        ("watch", -2),
        CONNECTION.and(Flags::NO_MULTI).and(Flags::NO_VALUE),
        Keys::ALL,
        T,
        (
            "2.2.0",
            "Monitors changes to keys to determine the execution of a transaction.",
        ),
        transaction::watch,
    ),
    connection(
        ("unwatch", 1),
        CONNECTION,
        NONE,
        T,
        ("2.2.0", "Forgets about watched keys of a transaction."),
        transaction::unwatch,
    ),
    connection(
        ("subscribe", -2),
        CHANNELS,
        NONE,
        P,
        ("2.0.0", "Listens for messages published to channels."),
        channels::subscribe,
    ),
    connection(
        ("unsubscribe", -1),
        CHANNELS,
        NONE,
        P,
        ("2.0.0", "Stops listening to messages posted to channels."),
        channels::unsubscribe,
    ),
    connection(
        ("psubscribe", -2),
        CHANNELS,
        NONE,
        P,
        (
            "2.0.0",
            "Listens for messages published to channels that match one or more patterns.",
        ),
        channels::psubscribe,
    ),
    connection(
        ("punsubscribe", -1),
        CHANNELS,
        NONE,
        P,
        (
            "2.0.0",
            "Stops listening to messages published to channels that match one or more patterns.",
        ),
        channels::punsubscribe,
    ),
    connection(
        ("publish", 3),
        Flags::PUBSUB.and(Flags::FAST),
        NONE,
        P,
        ("2.0.0", "Posts a message to a channel."),
        channels::publish,
    ),
    connection(
        ("pubsub", -2),
        Flags::PUBSUB.and(Flags::CONTAINER),
        NONE,
        P,
        (
            "2.8.0",
            "Tells channels and the numbers of those who listen.",
        ),
        channels::pubsub,
    ),
    connection(
        ("info", -1),
        Flags::NONE,
        NONE,
        S,
        (
            "1.0.0",
            "Returns information and statistics about the server.",
        ),
        info::info,
    ),
    connection(
        ("config", -2),
        ADMIN.and(Flags::CONTAINER),
        NONE,
        S,
        ("2.0.0", "Shows and changes settings."),
        info::config,
    ),
    connection(
        ("command", -1),
        Flags::CONTAINER,
        NONE,
        S,
        ("2.8.13", "Returns detailed information about all commands."),
        commands::command,
    ),
    connection(
        ("acl", -2),
        ADMIN.and(Flags::CONTAINER),
        NONE,
        S,
        ("6.0.0", "Tells who may do what."),
        acl_commands::acl,
    ),
    connection(
        ("save", 1),
        ADMIN,
        NONE,
        S,
        (
            "1.0.0",
            "Answers when everything is in the commit log, which it is.",
        ),
        info::save,
    ),
    connection(
        ("bgsave", -1),
        ADMIN,
        NONE,
        S,
        ("1.0.0", "Answers at once: everything is in the commit log."),
        info::bgsave,
    ),
    connection(
        ("bgrewriteaof", 1),
        ADMIN,
        NONE,
        S,
        (
            "1.0.0",
            "Answers at once: the commit log is shortened by itself.",
        ),
        info::bgrewriteaof,
    ),
    connection(
        ("lastsave", 1),
        ADMIN.and(Flags::FAST),
        NONE,
        S,
        (
            "1.0.0",
            "Returns the time up to which everything is saved, which is now.",
        ),
        info::lastsave,
    ),
    connection(
        ("role", 1),
        Flags::FAST.and(Flags::NOSCRIPT),
        NONE,
        S,
        ("2.8.12", "Returns the replication role."),
        info::role,
    ),
    connection(
        ("wait", 3),
        Flags::NOSCRIPT,
        NONE,
        C,
        (
            "3.0.0",
            "Returns the number of replicas that have the writes before, of which there are none.",
        ),
        info::wait,
    ),
    connection(
        ("memory", -2),
        Flags::READONLY.and(Flags::CONTAINER),
        NONE,
        S,
        ("4.0.0", "Tells how much memory a key takes."),
        info::memory,
    ),
    connection(
        ("slowlog", -2),
        ADMIN.and(Flags::CONTAINER),
        NONE,
        S,
        ("2.2.12", "Tells slow commands."),
        slowlog::slowlog,
    ),
    connection(
        ("latency", -2),
        ADMIN.and(Flags::CONTAINER),
        NONE,
        S,
        (
            "2.8.13",
            "Tells what took longer than latency-monitor-threshold.",
        ),
        latency::latency,
    ),
    connection(
        ("debug", -2),
        ADMIN,
        NONE,
        S,
        ("1.0.0", "Answers what test suites ask for."),
        info::debug,
    ),
    connection(
        ("lolwut", -1),
        Flags::READONLY.and(Flags::FAST),
        NONE,
        S,
        ("5.0.0", "Tells the version."),
        info::lolwut,
    ),
    connection(
        ("shutdown", -1),
        ADMIN.and(Flags::NO_MULTI),
        NONE,
        S,
        ("1.0.0", "Is refused: the process is ended by a signal."),
        info::shutdown,
    ),
];
