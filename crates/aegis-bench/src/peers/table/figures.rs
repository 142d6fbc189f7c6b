//! Figures of an engine, and how a few of them are told: the median, with the least and the most.

use super::super::limits::Limits;
use super::super::results::Engine;

/// What engines are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Figure {
    Jobs,
    JobsRoomy,
    Enqueues,
    Wal,
    Transactions,
    StartP50,
    StartP99,
    StartFromCallP99,
    Takeover,
}

/// Those of the comparison in words.
pub(super) const COMPARED: [Figure; 8] = [
    Figure::Jobs,
    Figure::JobsRoomy,
    Figure::Enqueues,
    Figure::Wal,
    Figure::Transactions,
    Figure::StartP50,
    Figure::StartP99,
    Figure::Takeover,
];

impl Figure {
    /// One value a round.
    pub(super) fn of(self, engine: &Engine) -> Vec<f64> {
        let drains = |get: fn(&super::super::throughput::Throughput) -> f64| {
            engine.throughput.iter().map(get).collect()
        };
        let starts = |share: f64| {
            engine
                .latency
                .iter()
                .map(|round| quantile(&round.after_return_ms, share))
                .collect()
        };
        match self {
            Self::Jobs => drains(|drain| drain.jobs_per_second),
            Self::JobsRoomy => engine
                .suited()
                .iter()
                .map(|drain| drain.jobs_per_second)
                .collect(),
            Self::Enqueues => drains(|drain| drain.enqueues_per_second),
            Self::Wal => drains(|drain| drain.wal_bytes_per_job),
            Self::Transactions => drains(|drain| drain.transactions_per_job),
            Self::StartP50 => starts(0.5),
            Self::StartP99 => starts(0.99),
            Self::StartFromCallP99 => engine
                .latency
                .iter()
                .map(|round| quantile(&round.after_call_ms, 0.99))
                .collect(),
            Self::Takeover => engine
                .takeover
                .iter()
                .map(|takeover| takeover.seconds.unwrap_or(f64::INFINITY))
                .collect(),
        }
    }

    /// Digits behind the point.
    pub(super) fn digits(self) -> usize {
        match self {
            Self::Transactions => 3,
            Self::StartP50 | Self::StartP99 | Self::StartFromCallP99 | Self::Takeover => 1,
            _ => 0,
        }
    }

    /// In words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Jobs => "jobs a second at the common concurrency",
            Self::JobsRoomy => "jobs a second at the concurrency that suits each",
            Self::Enqueues => "jobs enqueued a second",
            Self::Wal => "WAL bytes a job",
            Self::Transactions => "transactions a job",
            Self::StartP50 => "start latency, p50, in ms",
            Self::StartP99 | Self::StartFromCallP99 => "start latency, p99, in ms",
            Self::Takeover => "takeover, in s",
        }
    }

    fn more_is_better(self) -> bool {
        matches!(self, Self::Jobs | Self::JobsRoomy | Self::Enqueues)
    }

    /// Whether one median is ahead of another.
    pub(super) fn ahead(self, one: f64, other: f64) -> bool {
        if self.more_is_better() {
            one > other
        } else {
            one < other
        }
    }
}

/// The median; `None` of nothing.
pub(super) fn median(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| quantile(values, 0.5))
}

/// The value below which `share` of them lie.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index into a small list"
)]
pub(super) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let at = ((sorted.len() as f64 - 1.0) * share).round().max(0.0) as usize;
    sorted.get(at).copied().unwrap_or_default()
}

/// `1,234 (1,200–1,300)`.
pub(super) fn spread(values: &[f64], digits: usize) -> String {
    let Some(middle) = median(values) else {
        return "–".to_owned();
    };
    if values.len() == 1 {
        return number(middle, digits);
    }
    let (least, most) = (quantile(values, 0.0), quantile(values, 1.0));
    format!(
        "{} ({}–{})",
        number(middle, digits),
        number(least, digits),
        number(most, digits)
    )
}

/// The share of the bare limit, of medians.
pub(super) fn of_limit(jobs: &[f64], limits: &[Limits]) -> String {
    let bare: Vec<f64> = limits.iter().map(|limits| limits.rows_per_second).collect();
    match (median(jobs), median(&bare)) {
        (Some(jobs), Some(bare)) if bare > 0.0 => format!("{:.2}", jobs / bare),
        _ => "–".to_owned(),
    }
}

/// With commas.
pub(super) fn number(value: f64, digits: usize) -> String {
    if value.is_infinite() {
        return "over the cap".to_owned();
    }
    let text = format!("{value:.digits$}");
    let (sign, text) = text
        .strip_prefix('-')
        .map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    format!("{sign}{out}{rest}")
}
