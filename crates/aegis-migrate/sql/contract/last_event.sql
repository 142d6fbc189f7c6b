-- When the newest event of the ledger was written, and the time now: a clock that stands before it was set back.
SELECT max(e.told) AS last, clock_timestamp() AS now FROM aegis_migrate.event e
