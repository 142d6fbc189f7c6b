//! Lint of 1,000 files, from the disk to the last verdict, and how much of it is the parser's.

use std::fmt::Write as _;
use std::time::Instant;

use aegis_migrate::lint::{Input, Known, run};

use crate::{Figures, figure, median};

const FILES: usize = 1000;

/// What an application's files hold, in turns.
const STATEMENTS: [&str; 6] = [
    "CREATE TABLE orders_@ (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, customer bigint NOT NULL, state text NOT NULL DEFAULT 'new', made_at timestamptz NOT NULL DEFAULT now(), CHECK (state IN ('new', 'paid', 'sent')));",
    "ALTER TABLE orders_@ ADD COLUMN note text, ALTER COLUMN customer SET NOT NULL;",
    "CREATE INDEX CONCURRENTLY orders_@_customer ON orders_@ (customer) WHERE state <> 'sent';",
    "ALTER TABLE items_@ ADD CONSTRAINT items_@_order FOREIGN KEY (order_id) REFERENCES orders_@ (id) NOT VALID;",
    "CREATE OR REPLACE FUNCTION total_@(of_order bigint) RETURNS numeric LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT sum(price) FROM items_@ WHERE order_id = of_order); END; $$;",
    "UPDATE settings SET value = '@' WHERE key = 'version';",
];

pub(super) fn measure(rounds: usize) -> anyhow::Result<Figures> {
    let folder = tempfile::tempdir()?;
    let mut texts = Vec::with_capacity(FILES);
    for number in 0..FILES {
        let mut text = String::new();
        for statement in STATEMENTS.iter().cycle().skip(number).take(4) {
            writeln!(text, "{}", statement.replace('@', &number.to_string()))?;
        }
        std::fs::write(folder.path().join(format!("{number:04}_change.sql")), &text)?;
        texts.push(text);
    }
    let input = Input {
        path: folder.path().to_owned(),
        tool: None,
        schema: "public".to_owned(),
    };
    let known = Known {
        server: 18,
        catalog: None,
    };
    let (mut seconds, mut shares) = (Vec::new(), Vec::new());
    let mut statements = 0;
    for _ in 0..rounds {
        let start = Instant::now();
        for text in &texts {
            aegis_ddl::read(text)?;
        }
        let read = start.elapsed().as_secs_f64();
        let start = Instant::now();
        statements = run(&input, None, known)?.len();
        let all = start.elapsed().as_secs_f64();
        seconds.push(all);
        shares.push(all / read);
    }
    anyhow::ensure!(
        statements >= 4 * FILES,
        "lint judged {statements} statements of {}",
        4 * FILES
    );
    Ok(vec![
        figure("lint_1000_files_s", median(&mut seconds)),
        figure("lint_vs_reading", median(&mut shares)),
    ])
}
