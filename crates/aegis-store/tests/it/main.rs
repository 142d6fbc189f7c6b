//! The store on a real PostgreSQL: guard, interleavings, measured facts, behaviour.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests may fail like the tests that they help"
)]

mod blame;
mod bytes;
mod deadlines;
mod doctor;
mod effects;
mod erase;
mod explain;
mod filters;
mod guard;
mod guarded;
mod hostile;
mod inline;
mod install;
mod interleave_claim;
mod interleave_write;
mod lane_check;
mod life;
mod limits;
mod lineage;
mod mutants;
mod observe;
mod order;
mod partitions;
mod pinned;
mod plans;
mod pooler;
mod properties;
mod raw;
mod replays;
mod replays_takeover;
mod retry;
mod states;
mod submit;
mod support;
mod tenants;
mod tls;
mod transaction;
mod verbs;
mod verbs_race;
