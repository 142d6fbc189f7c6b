-- The phases that are whole in the order in which they were, then those that were begun: how many of their steps are done, and the first that is not.
SELECT p.change, p.phase, p.line_sha256, true, p.steps::int8, NULL::text, p.epoch, p.done_at
FROM aegis_migrate.phase p
UNION ALL
SELECT s.change, s.phase, min(s.line_sha256), false, count(*) FILTER (WHERE s.state IN ('applied', 'reconciled')),
    (array_agg(s.state || ' (step ' || s.ordinal || ')' ORDER BY s.ordinal) FILTER (WHERE s.state NOT IN ('applied', 'reconciled')))[1],
    NULL::int8, NULL::timestamptz
FROM aegis_migrate.step s
WHERE NOT EXISTS (SELECT FROM aegis_migrate.phase p WHERE p.change = s.change AND p.phase = s.phase)
GROUP BY s.change, s.phase
ORDER BY 7, 8, 1, 2
