//! A limit on how much runs at a time, counted in three ways. The engine has no limits yet; this is the fact that they will
//! rest on, on tables of its own.

use aegis_testkit::{Stepper, TestDb};

/// Two units of one key, of which one may run at a time.
const TABLES: &str = "
    create table public.most (key text primary key, most int not null);
    create table public.unit (id int primary key, key text not null, running boolean not null);
    insert into public.most values ('k', 1);
    insert into public.unit values (1, 'k', false), (2, 'k', false);
    create function public.runs(text) returns bigint language sql volatile
        as 'select count(*) from public.unit where key = $1 and running';
    create function public.ran(text) returns bigint language sql stable
        as 'select count(*) from public.unit where key = $1 and running'";

/// Counted in the claim's own snapshot, with nothing locked but the unit.
const SNAPSHOT: &str = "
    with n as materialized (select count(*) as n from public.unit where key = 'k' and running),
    u as materialized (
        select u.id from public.unit u, n, public.most m
        where m.key = 'k' and n.n < m.most and not u.running order by u.id limit 1 for no key update of u skip locked)
    update public.unit set running = true from u where unit.id = u.id returning unit.id";

/// The same behind the limit's row, locked first.
const LOCKED: &str = "
    with m as materialized (select most from public.most where key = 'k' for no key update),
    n as materialized (select m.most, (select count(*) from public.unit where key = 'k' and running) as n from m),
    u as materialized (
        select u.id from public.unit u, n where n.n < n.most and not u.running order by u.id limit 1 for no key update of u skip locked)
    update public.unit set running = true from u where unit.id = u.id returning unit.id";

/// Behind the limit's row, by a function that looks with fresh eyes.
const FUNCTION: &str = "
    with m as materialized (select most from public.most where key = 'k' for no key update),
    n as materialized (select m.most, public.runs('k') as n from m),
    u as materialized (
        select u.id from public.unit u, n where n.n < n.most and not u.running order by u.id limit 1 for no key update of u skip locked)
    update public.unit set running = true from u where unit.id = u.id returning unit.id";

/// Two claimers, the second of which begins before the first has committed. Gives how many units run, and whether the second
/// waited for the first.
async fn race(claim: &str) -> (i64, bool) {
    let db = TestDb::empty().await;
    db.admin.batch_execute(TABLES).await.unwrap();
    let stepper = Stepper::new(&db).await;
    let (first, second) = (stepper.conn("first").await, stepper.conn("second").await);
    first.run("begin").await;
    assert_eq!(first.run(claim).await.len(), 1);
    let waits = claim.contains("from public.most where key = 'k' for no key update)");
    let pending = second.spawn(claim);
    if waits {
        assert_eq!(pending.blocked().await, ["first"]);
        first.run("commit").await;
        pending.done().await.unwrap();
    } else {
        pending.done().await.unwrap();
        first.run("commit").await;
    }
    let running = db
        .admin
        .query_one("select count(*) from public.unit where running", &[]);
    (running.await.unwrap().get(0), waits)
}

#[tokio::test]
async fn m13_a_limit_counted_in_the_claims_snapshot_is_exceeded_and_one_counted_after_the_lock_is_not()
 {
    assert_eq!(race(SNAPSHOT).await, (2, false), "nothing held the second");
    assert_eq!(
        race(LOCKED).await,
        (2, true),
        "it waited, and counted what was before"
    );
    assert_eq!(race(FUNCTION).await, (1, true));
    let stable = FUNCTION.replace("public.runs(", "public.ran(");
    assert_eq!(
        race(&stable).await,
        (2, true),
        "a STABLE one looks no later"
    );
}

/// A claimer that does not wait for a limit's row passes it over, and takes what is free when the row is.
#[tokio::test]
async fn a_limit_whose_row_is_locked_is_passed_over_and_not_exceeded() {
    let claim = FUNCTION.replacen("for no key update)", "for no key update skip locked)", 1);
    let db = TestDb::empty().await;
    db.admin.batch_execute(TABLES).await.unwrap();
    let stepper = Stepper::new(&db).await;
    let (first, second) = (stepper.conn("first").await, stepper.conn("second").await);
    first.run("begin").await;
    assert_eq!(first.run(&claim).await.len(), 1);
    assert!(second.run(&claim).await.is_empty(), "passed over");
    first.run("commit").await;
    assert!(second.run(&claim).await.is_empty(), "one runs");
    second.run("update public.unit set running = false").await;
    assert_eq!(second.run(&claim).await.len(), 1);
}
