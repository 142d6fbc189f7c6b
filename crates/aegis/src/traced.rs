//! Traces of the command line: where spans go, and the trace that a command belongs to.
//!
//! Invariants: off unless OpenTelemetry's variables name a collector; a `TRACEPARENT` that makes no sense is ignored, as its
//! recommendation says, while `--traceparent` that makes none is an error of the arguments; a collector that is away costs at
//! most two seconds at the end.

use std::time::Duration;

use aegis_model::TraceContext;
use aegis_telemetry::{Open, Place, Role, Tracer, Value};

use crate::exit::Exit;
use crate::failure::{Failure, chain};

/// The last spans get so long to be sent.
const FLUSH_MAX: Duration = Duration::from_secs(2);

/// As the environment says; `fields` describe this process.
pub(crate) fn tracer(fields: Vec<(&'static str, String)>) -> Result<Tracer, Failure> {
    Tracer::from_env("aegis", fields).map_err(|error| Failure::new(Exit::Usage, chain(&error)))
}

/// The submit of one call, as a span, or only the trace that it belongs to.
pub(crate) struct SubmitSpan {
    tracer: Tracer,
    open: Option<Open>,
    parent: Option<TraceContext>,
}

impl SubmitSpan {
    /// Below `given`, or below what the environment's `TRACEPARENT` names.
    pub(crate) fn begin(given: Option<TraceContext>) -> Result<Self, Failure> {
        let tracer = tracer(Vec::new())?;
        let parent = given.or_else(|| std::env::var("TRACEPARENT").ok()?.parse().ok());
        let place = parent.map(|context| Place {
            trace_id: context.trace_id,
            span_id: context.span_id,
            sampled: context.sampled,
        });
        let open = tracer
            .is_on()
            .then(|| tracer.begin(place, "aegis.submit", Role::Producer));
        Ok(Self {
            tracer,
            open,
            parent,
        })
    }

    /// What the submitted tasks carry.
    pub(crate) fn context(&self) -> Option<TraceContext> {
        match &self.open {
            Some(open) => {
                let place = open.place();
                Some(TraceContext {
                    trace_id: place.trace_id,
                    span_id: place.span_id,
                    sampled: place.sampled,
                })
            }
            None => self.parent,
        }
    }

    /// The call has ended.
    pub(crate) fn end(self, fields: Vec<(&'static str, Value)>, outcome: &Result<Exit, Failure>) {
        let Some(open) = self.open else { return };
        let error = match outcome {
            Ok(Exit::Done) => None,
            Ok(exit) => Some(format!("{exit:?}")),
            Err(failure) => Some(format!("{:?}", failure.exit)),
        };
        open.end(fields, error);
        if !self.tracer.flush(FLUSH_MAX) {
            tracing::warn!("the span of this submit could not be sent to the collector");
        }
    }
}
