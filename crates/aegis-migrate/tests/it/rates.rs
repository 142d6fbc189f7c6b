//! How many statements would queue behind a lock: from the server's own counters to what people read.

use std::time::Duration;

use aegis_catalog::{Name, Scope, Window};
use aegis_migrate::change::Phase;
use aegis_migrate::lint::{Input, Known, lint, read, table};
use aegis_migrate::plan::{locks_in_words, markdown, plan};
use aegis_testkit::wait_until;

use crate::folder::Folder;
use crate::run::{ID, change, used};

/// How long something is waited for that comes by itself.
const HANGS: Duration = Duration::from_mins(1);

#[tokio::test]
async fn what_would_queue_is_told_by_lint_and_by_plan() {
    let db = used().await;
    db.admin
        .batch_execute("SELECT pg_stat_reset()")
        .await
        .unwrap();
    for _ in 0..6 {
        db.admin
            .batch_execute("SELECT count(*) FROM app.users")
            .await
            .unwrap();
    }
    db.admin
        .batch_execute("INSERT INTO app.users SELECT n, 'x' FROM generate_series(10, 13) n")
        .await
        .unwrap();
    let look = async || {
        aegis_catalog::read(&db.admin, &Scope::everything())
            .await
            .unwrap()
    };
    let name = Name::new("app", "users");
    // The server writes its counters down at leisure.
    wait_until("the counters are written down", HANGS, async || {
        look().await.rates_of(&name).is_some_and(|rates| {
            rates.inserted >= 4 && rates.sequential_scans + rates.index_scans >= 6
        })
    })
    .await;
    let mut catalog = look().await;
    let rates = catalog.rates_of(&name).unwrap().clone();
    // What is counted over seconds is no rate: nothing is told.
    let folder = change(
        Folder::default(),
        ID,
        "ALTER TABLE users ADD COLUMN age int;\nCREATE INDEX i ON users (name);\n",
        None,
    );
    let set = folder.set().unwrap();
    let change = set.changes.values().next().unwrap();
    let place = folder.on_disk();
    let input = Input {
        path: place.path().join(ID),
        tool: None,
        schema: "public".to_owned(),
    };
    let units = read(&input, None).unwrap();
    for (seconds, known) in [(5.0, false), (120.0, true)] {
        let since = catalog.rates_window.as_ref().unwrap().since.clone();
        catalog.rates_window = Some(Window { since, seconds });
        let judged = lint(
            &units,
            Known {
                server: catalog.server_major(),
                catalog: Some(&catalog),
            },
        );
        let reads = rates.sequential_scans + rates.index_scans;
        let writes = rates.inserted + rates.updated + rates.deleted;
        let a_minute = |count: i64| f64::from(i32::try_from(count).unwrap()) / 2.0;
        let (all, writes) = (a_minute(reads + writes), a_minute(writes));
        let told: Vec<Option<f64>> = judged
            .iter()
            .map(|one| one.locks[0].queued_a_minute)
            .collect();
        // ACCESS EXCLUSIVE stops all, SHARE only who writes.
        assert_eq!(told, [known.then_some(all), known.then_some(writes)]);
        let text = table(&judged, false, &str::to_owned);
        let said = format!("about {all:.0} statements a minute would queue");
        assert_eq!(text.contains(&said), known, "{text}");
        let json = serde_json::to_value(&judged).unwrap();
        let of_lock = json[1]["locks"][0].get("queued_a_minute");
        assert_eq!(of_lock.and_then(serde_json::Value::as_f64), told[1]);

        let items = plan(&[(change, Phase::Expand)], Some(&catalog), 18).unwrap();
        assert_eq!(items[0].locks[0].queued_a_minute, told[0]);
        assert_eq!(locks_in_words(&items[0].locks).contains(&said), known);
        assert_eq!(markdown(&items, true).contains(&said), known);
    }
}
