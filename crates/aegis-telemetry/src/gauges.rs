//! Gauges that say when they were evaluated, and the text that a scrape gets.
//!
//! Invariants: a gauge that was never evaluated is NaN, and its companion `…_last_evaluated_timestamp_seconds` is 0; both
//! series are there from the start. So no alert sees a zero that nobody measured, and `time() - companion` is large until
//! somebody did.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// What Prometheus's older text format is called.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
/// What `OpenMetrics` is called.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// A value and when it was evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluated {
    /// The value.
    pub value: f64,
    /// When it held.
    pub at: SystemTime,
}

impl Evaluated {
    /// Evaluated just now.
    pub fn now(value: f64) -> Self {
        Self {
            value,
            at: SystemTime::now(),
        }
    }
}

/// The labels of one series.
pub type Labels = Vec<(&'static str, String)>;

/// All series of one gauge.
#[derive(Debug, Clone)]
pub struct Family {
    /// Its name, unit included.
    pub name: &'static str,
    /// What it says.
    pub help: &'static str,
    /// One for each combination of labels; `None`: never evaluated.
    pub series: Vec<(Labels, Option<Evaluated>)>,
}

impl Family {
    /// A gauge of one series.
    pub fn single(name: &'static str, help: &'static str, value: Option<Evaluated>) -> Self {
        Self {
            name,
            help,
            series: vec![(Labels::new(), value)],
        }
    }

    /// Prints the gauge and its companion.
    ///
    /// # Errors
    /// The writer's.
    pub fn print(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        self.print_alone(encoder)?;
        let name = format!("{}_last_evaluated_timestamp_seconds", self.name);
        let help = format!("When {} was evaluated; 0: never.", self.name);
        let at = |one: Option<Evaluated>| one.map_or(0.0, |one| unix_seconds(one.at));
        self.print_as(&name, &help, at, encoder)
    }

    /// Prints the gauge without its companion: for a fact that nobody evaluates.
    ///
    /// # Errors
    /// The writer's.
    pub fn print_alone(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let value = |one: Option<Evaluated>| one.map_or(f64::NAN, |one| one.value);
        self.print_as(self.name, self.help, value, encoder)
    }

    fn print_as(
        &self,
        name: &str,
        help: &str,
        number: impl Fn(Option<Evaluated>) -> f64,
        encoder: &mut DescriptorEncoder<'_>,
    ) -> fmt::Result {
        // The library puts a full stop only behind the help of what is registered.
        let help = format!("{}.", help.trim_end_matches('.'));
        let mut family = encoder.encode_descriptor(name, &help, None, MetricType::Gauge)?;
        for (labels, value) in &self.series {
            let labels: Vec<(&str, &str)> = labels
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect();
            family
                .encode_family(&labels)?
                .encode_gauge(&number(*value))?;
        }
        Ok(())
    }
}

fn unix_seconds(at: SystemTime) -> f64 {
    at.duration_since(UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

/// What a scrape gets: the text, and the content type that names its format. `OpenMetrics` is for those that accept it.
///
/// # Errors
/// The writer's.
pub fn encode(registry: &Registry, accept: &str) -> Result<(String, &'static str), fmt::Error> {
    let mut out = String::new();
    if accept.contains("application/openmetrics-text") {
        text::encode(&mut out, registry)?;
        return Ok((out, OPEN_METRICS));
    }
    prometheus_text::encode(&mut out, registry)?;
    Ok((out, TEXT))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use prometheus_client::collector::Collector;

    use super::*;

    #[derive(Debug)]
    struct Two;

    impl Collector for Two {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
            Family::single("never_seconds", "Nobody looked.", None).print(&mut encoder)?;
            Family {
                name: "depth",
                help: "How deep.",
                series: vec![(
                    vec![("queue", "a\"b".to_owned())],
                    Some(Evaluated {
                        value: 3.0,
                        at: UNIX_EPOCH + Duration::from_millis(1500),
                    }),
                )],
            }
            .print(&mut encoder)
        }
    }

    #[test]
    fn a_gauge_that_nobody_evaluated_is_no_zero() {
        let mut registry = Registry::with_prefix("p");
        registry.register_collector(Box::new(Two));
        let (text, kind) = super::encode(&registry, "text/plain").unwrap();
        assert_eq!(kind, TEXT);
        for line in [
            "p_never_seconds NaN",
            "p_never_seconds_last_evaluated_timestamp_seconds 0.0",
            "p_depth{queue=\"a\\\"b\"} 3.0",
            "p_depth_last_evaluated_timestamp_seconds{queue=\"a\\\"b\"} 1.5",
            "# HELP p_depth How deep.",
        ] {
            assert!(
                text.lines().any(|one| one == line),
                "{line} is missing in\n{text}"
            );
        }
        let (text, kind) = super::encode(&registry, "application/openmetrics-text;q=0.9").unwrap();
        assert_eq!(kind, OPEN_METRICS);
        assert!(text.ends_with("# EOF\n"), "{text}");
    }
}
