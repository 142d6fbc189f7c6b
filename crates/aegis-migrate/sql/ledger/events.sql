-- Keeps events, in their order. $1 run, $2 epoch, $3 events.
INSERT INTO aegis_migrate.event (run, epoch, event) SELECT $1, $2, e.event FROM unnest($3::jsonb[]) WITH ORDINALITY AS e (event, n) ORDER BY e.n
