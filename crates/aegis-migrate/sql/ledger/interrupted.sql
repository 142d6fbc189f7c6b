-- What this run had begun outside of a transaction when it was asked to end: it was cancelled. What the intent says stays. $1 epoch.
UPDATE aegis_migrate.step SET state = 'interrupted', ended_at = clock_timestamp() WHERE state = 'intent' AND epoch = $1
