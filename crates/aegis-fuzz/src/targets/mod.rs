//! The targets, by what a stranger may hand us: words of a command line, documents, SQL, frames and lines.

mod changes;
mod documents;
mod foreign;
mod lines;
mod payloads;
mod sql;
mod words;

use crate::Target;

/// All of them. Each has a folder in `corpus/`.
pub const TARGETS: &[Target] = &[
    Target {
        name: "approvals",
        one: documents::approvals,
    },
    Target {
        name: "catalog",
        one: documents::catalog,
    },
    Target {
        name: "change",
        one: changes::change,
    },
    Target {
        name: "checkpoint",
        one: documents::checkpoint,
    },
    Target {
        name: "config-url",
        one: words::config_url,
    },
    Target {
        name: "fencing-token",
        one: words::fencing_token,
    },
    Target {
        name: "foreign",
        one: foreign::foreign,
    },
    Target {
        name: "frames",
        one: lines::frames,
    },
    Target {
        name: "handler-line",
        one: lines::handler_line,
    },
    Target {
        name: "history",
        one: lines::history,
    },
    Target {
        name: "input",
        one: documents::input,
    },
    Target {
        name: "keyring",
        one: documents::keyring,
    },
    Target {
        name: "lock",
        one: changes::lock,
    },
    Target {
        name: "oracle-record",
        one: lines::oracle_record,
    },
    Target {
        name: "orders",
        one: documents::orders,
    },
    Target {
        name: "payloads",
        one: payloads::payloads,
    },
    Target {
        name: "payments-record",
        one: lines::payments_record,
    },
    Target {
        name: "report",
        one: documents::report,
    },
    Target {
        name: "sealed",
        one: documents::sealed,
    },
    Target {
        name: "server-startup",
        one: lines::server_startup,
    },
    Target {
        name: "sql",
        one: sql::sql,
    },
    Target {
        name: "targets",
        one: changes::targets,
    },
    Target {
        name: "words",
        one: words::words,
    },
];
