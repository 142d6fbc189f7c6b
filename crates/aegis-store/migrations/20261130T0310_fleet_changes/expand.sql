-- What people changed about the fleet: pauses, drains, adoptions. (Changes of tasks and operations stand in task_event.)
-- Written in the statement that changes; never updated, never removed by the engine.
CREATE TABLE aegis.fleet_change (
    n       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    what    text NOT NULL CHECK (what IN ('pause', 'resume', 'drain', 'adopt')),
    subject text NOT NULL,
    actor   text NOT NULL CHECK (length(actor) > 0),
    reason  text NOT NULL
);
GRANT SELECT ON aegis.fleet_change TO aegis_engine, aegis_lease, aegis_submitter, aegis_reader;
GRANT INSERT ON aegis.fleet_change TO aegis_engine;
