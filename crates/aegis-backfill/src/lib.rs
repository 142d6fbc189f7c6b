//! Moving the data of live tables: dual writes by a generated trigger, keyset backfills that survive any kill, reconciliation that counts.
