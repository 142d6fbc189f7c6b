//! Log lines on stderr: for people as text, for programs as one JSON object a line.
//!
//! Invariants: a JSON line has `time`, `level`, `target` and `message`, and beside them, flat, the fields of the event and of
//! the spans around it: a field has the same name wherever it appears (`task`, `epoch`, `worker`, `release`, `kind`, `queue`,
//! `trace_id`, `span_id`), and the innermost one wins. A line is written whole.

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer};

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON object a line.
    Json,
}

/// Why logs cannot be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// The filter is none.
    #[error(
        "the log filter `{filter}` makes no sense; it looks like info, or aegis_worker=debug,warn"
    )]
    Filter {
        /// As it was given.
        filter: String,
        /// Where it is wrong.
        #[source]
        source: ParseError,
    },
    /// Somebody has started logs before.
    #[error("logs were started twice in one process")]
    Twice(#[source] TryInitError),
}

/// Log lines are JSON: what else is written to stderr has to be, too.
static JSON: AtomicBool = AtomicBool::new(false);

/// Writes a line that is no log event (a remark, the error that a program ends with) as log lines are written when they are
/// JSON. False: they are not, and the caller writes it for people.
pub fn tell_json(level: tracing::Level, text: &str) -> bool {
    if !JSON.load(Ordering::Relaxed) {
        return false;
    }
    let line = head(level.as_str(), "aegis", text);
    write_line(&mut std::io::stderr(), line);
    true
}

fn head(level: &str, target: &str, message: &str) -> Map<String, Value> {
    let time = jiff::Timestamp::now();
    [
        ("time", format!("{time:.6}")),
        ("level", level.to_owned()),
        ("target", target.to_owned()),
        ("message", message.to_owned()),
    ]
    .into_iter()
    .map(|(name, text)| (name.to_owned(), text.into()))
    .collect()
}

fn write_line(to: &mut impl Write, line: Map<String, Value>) {
    let mut text = Value::Object(line).to_string();
    text.push('\n');
    // Nobody is left to be told that it is closed.
    to.write_all(text.as_bytes()).ok();
}

/// Starts logs on stderr for the whole process.
///
/// # Errors
/// [`LogError`].
pub fn start_logs(filter: &str, format: LogFormat) -> Result<(), LogError> {
    let filter = EnvFilter::try_new(filter).map_err(|source| LogError::Filter {
        filter: filter.to_owned(),
        source,
    })?;
    let started = match format {
        LogFormat::Text => tracing_subscriber::fmt()
            .with_env_filter(filter)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            // It would tell on stderr that stderr is closed, by a macro that ends the thread.
            .log_internal_errors(false)
            .finish()
            .try_init(),
        LogFormat::Json => tracing_subscriber::registry()
            .with(JsonLines(std::io::stderr).with_filter(filter))
            .try_init(),
    };
    started.map_err(LogError::Twice)?;
    JSON.store(format == LogFormat::Json, Ordering::Relaxed);
    Ok(())
}

/// Writes each event as one JSON object on one line.
struct JsonLines<W>(W);

/// The fields of a span, as its lines carry them.
struct Fields(Map<String, Value>);

impl Visit for Fields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        // A number that JSON does not have is told as text.
        let value = serde_json::Number::from_f64(value)
            .map_or_else(|| value.to_string().into(), Value::Number);
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}").into());
    }
}

impl Fields {
    fn put(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl<S, W, O> Layer<S> for JsonLines<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Fn() -> O + Send + Sync + 'static,
    O: Write,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        if let Some(span) = context.span(id) {
            let mut fields = Fields(Map::new());
            attributes.record(&mut fields);
            span.extensions_mut().replace(fields);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        if let Some(span) = context.span(id)
            && let Some(fields) = span.extensions_mut().get_mut::<Fields>()
        {
            values.record(fields);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        let mut line = Fields(head(metadata.level().as_str(), metadata.target(), ""));
        if let Some(scope) = context.event_scope(event) {
            for span in scope.from_root() {
                if let Some(fields) = span.extensions().get::<Fields>() {
                    let fields = fields.0.iter();
                    line.0
                        .extend(fields.map(|(name, value)| (name.clone(), value.clone())));
                }
            }
        }
        event.record(&mut line);
        write_line(&mut (self.0)(), line.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn lines(write: impl FnOnce()) -> Vec<Value> {
        let kept = Kept::default();
        let writer = kept.clone();
        let subscriber = tracing_subscriber::registry().with(JsonLines(move || writer.clone()));
        tracing::subscriber::with_default(subscriber, write);
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    #[test]
    fn fields_of_spans_and_events_are_flat_and_the_innermost_wins() {
        let lines = lines(|| {
            let outer = tracing::info_span!(
                "worker",
                worker = "w",
                epoch = 1,
                later = tracing::field::Empty
            );
            outer.record("later", true);
            let _outer = outer.enter();
            let _inner = tracing::info_span!("task", task = %"t", epoch = 2_i64).entered();
            tracing::warn!(rate = f64::NAN, error = ?"a\nb", "it {}", "happened");
        });
        assert_eq!(lines.len(), 1);
        let line = lines[0].as_object().unwrap();
        for (name, value) in [
            ("worker", Value::from("w")),
            ("task", "t".into()),
            ("epoch", 2.into()),
            ("later", true.into()),
            ("message", "it happened".into()),
            ("level", "WARN".into()),
            ("rate", "NaN".into()),
            ("error", "\"a\\nb\"".into()),
        ] {
            assert_eq!(line[name], value, "{name}");
        }
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
    }

    #[test]
    fn a_filter_that_makes_no_sense_is_refused() {
        let error = start_logs("aegis=loud", LogFormat::Json).unwrap_err();
        assert!(error.to_string().contains("`aegis=loud`"), "{error}");
    }
}
