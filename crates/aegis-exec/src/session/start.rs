//! The start message: a task with what earlier attempts have stored, within its bounds.

use aegis_protocol::limits::{START_OPERATIONS_MAX, START_STEPS_BYTES_MAX};
use aegis_protocol::{KnownOperation, KnownStep, Start, Stored};
use aegis_worker::{Known, TaskContext};
use serde_json::Value;

/// Everything that a handler gets to know before it starts.
pub(super) fn start_message(ctx: &TaskContext<Value>, known: Known, input: Value) -> Start {
    let range = ctx.protocol_range();
    let mut bytes = 0;
    let steps_known = known.steps.len();
    let mut steps = Vec::new();
    for step in known.steps {
        bytes += step.name.len() + step.key.len() + step.stored.value.to_string().len();
        if bytes > START_STEPS_BYTES_MAX {
            break;
        }
        steps.push(KnownStep {
            name: step.name,
            key: step.key,
            protocol: step.stored.protocol,
            value: step.stored.value,
        });
    }
    Start {
        task: ctx.task_id().to_string(),
        kind: ctx.kind().to_owned(),
        queue: ctx.queue().to_owned(),
        epoch: ctx.epoch(),
        fencing_token: ctx.fencing_token().to_string(),
        failures: ctx.failures(),
        interruptions: ctx.interruptions(),
        crashes: ctx.crashes(),
        snoozes: ctx.snoozes(),
        settling: ctx.is_settling(),
        reads: [range.min(), range.max()],
        writes: range.writes(),
        input_protocol: ctx.input_protocol(),
        input,
        checkpoint: known.checkpoint.map(|stored| Stored {
            protocol: stored.protocol,
            value: stored.value,
        }),
        steps_complete: steps.len() == steps_known,
        steps,
        operations: known
            .operations
            .into_iter()
            .take(START_OPERATIONS_MAX)
            .map(|one| KnownOperation {
                name: one.name,
                key: one.key,
                id: one.id,
                class: one.class,
                state: one.state.word().to_owned(),
                dispatches: one.dispatches,
            })
            .collect(),
        trace: ctx.trace().map(|trace| trace.to_string()),
        valid_for_ms: 0,
    }
}
