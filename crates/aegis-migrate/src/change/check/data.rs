//! Rules of `[sync]`, `[backfill]`, `[throttle]` and `[reconcile]`: the data that move.

use super::super::Throttle;
use super::Rules;

impl Rules<'_> {
    pub(super) fn sync(&mut self) {
        let Some(sync) = &self.change.sync else {
            return;
        };
        self.name("sync.table", &sync.table);
        self.list(
            "sync.old",
            &sync.old,
            "name the columns that the previous version writes",
        );
        self.list(
            "sync.new",
            &sync.new,
            "name the columns that the new version writes",
        );
        if let Some(both) = sync.old.iter().find(|name| sync.new.contains(name)) {
            let what = format!("`{both}` is an old column too");
            self.refuse("sync.new", what, "a column belongs to one side");
        }
        let sides = [
            ("sync.forward", &sync.forward, &sync.new, "new"),
            ("sync.backward", &sync.backward, &sync.old, "old"),
        ];
        for (key, expressions, columns, side) in sides {
            for column in columns
                .iter()
                .filter(|column| !expressions.contains_key(*column))
            {
                let what = format!("no expression for the {side} column `{column}`");
                self.refuse(key, what, "write one; a side without it would go stale");
            }
            for (column, expression) in expressions {
                let whole = format!("{key}.{column}");
                if !columns.contains(column) {
                    let what = format!("`{column}` is not one of the {side} columns");
                    self.refuse(&whole, what, "name it there, or remove the line");
                }
                if expression.trim().is_empty() {
                    self.refuse(
                        &whole,
                        "the expression is blank",
                        "write an expression over the other side",
                    );
                }
            }
        }
    }

    pub(super) fn backfill(&mut self) {
        let Some(backfill) = &self.change.backfill else {
            return;
        };
        if let Some(table) = &backfill.table {
            self.name("backfill.table", table);
        } else if self.change.sync.is_none() {
            self.refuse(
                "backfill",
                "it has no table",
                "write table = \"…\", since there is no [sync] to take it from",
            );
        }
        self.list(
            "backfill.key",
            &backfill.key,
            "name a unique, NOT NULL, immutable key, such as [\"id\"]",
        );
        match (backfill.set.as_deref(), &backfill.statement) {
            (Some("sync.forward"), None) if self.change.sync.is_none() => self.refuse(
                "backfill.set",
                "there is no [sync]",
                "write [sync], or statement = \"backfill.sql\"",
            ),
            (Some("sync.forward"), None) | (None, Some(_)) => {}
            (Some("sync.forward"), Some(_)) => self.refuse(
                "backfill.statement",
                "set stands there too",
                "write one of them",
            ),
            (Some(other), _) => {
                let what = format!("`{other}` is nothing to set");
                self.refuse(
                    "backfill.set",
                    what,
                    "write \"sync.forward\", or statement = \"backfill.sql\"",
                );
            }
            (None, None) => self.refuse(
                "backfill",
                "it does not say what to write",
                "write set = \"sync.forward\", or statement = \"backfill.sql\"",
            ),
        }
        let batch = backfill.batch;
        if batch.start == 0 || batch.max < batch.start || batch.max > 1_000_000 {
            let what = format!("start {} and max {} rows", batch.start, batch.max);
            self.refuse("backfill.batch", what, "write 1 <= start <= max <= 1000000");
        }
        if !(10..=60_000).contains(&batch.target_ms) {
            let what = format!("target_ms is {}", batch.target_ms);
            self.refuse("backfill.batch", what, "write 10 to 60000 (ms)");
        }
    }

    pub(super) fn throttle(&mut self) {
        let throttle = self.change.throttle.clone();
        let zeros = [
            ("throttle.max_lag_bytes", throttle.max_lag_bytes == Some(0)),
            (
                "throttle.max_slot_bytes",
                throttle.max_slot_bytes == Some(0),
            ),
            (
                "throttle.max_wal_bytes_s",
                throttle.max_wal_bytes_s == Some(0),
            ),
        ];
        for (key, _) in zeros.into_iter().filter(|(_, zero)| *zero) {
            self.refuse(key, "0 would stop it for ever", "write a limit above 0");
        }
        for (key, text) in [
            ("throttle.query", &throttle.query),
            ("throttle.file", &throttle.file),
        ] {
            if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
                self.refuse(key, "it is blank", "remove the key");
            }
        }
        if self.change.backfill.is_none() && throttle != Throttle::default() {
            self.refuse(
                "throttle",
                "there is no [backfill] that it could hold back",
                "remove it",
            );
        }
    }

    pub(super) fn reconcile(&mut self) {
        let Some(reconcile) = &self.change.reconcile else {
            return;
        };
        match (reconcile.compare.as_deref(), &reconcile.sql) {
            (Some("sync"), None) if self.change.sync.is_none() => self.refuse(
                "reconcile.compare",
                "there is no [sync]",
                "write [sync], or sql = \"reconcile.sql\"",
            ),
            (Some("sync"), None) | (None, Some(_)) => {}
            (Some(other), None) => {
                let what = format!("`{other}` is nothing to compare");
                self.refuse(
                    "reconcile.compare",
                    what,
                    "write \"sync\", or sql = \"reconcile.sql\"",
                );
            }
            _ => self.refuse(
                "reconcile",
                "it wants either compare or sql",
                "write compare = \"sync\", or sql = \"reconcile.sql\"",
            ),
        }
    }
}
