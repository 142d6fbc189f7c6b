-- Every task of the drill where it stands now, live, parked or ended, with how many rows its own SQL left.
SELECT jsonb_build_object('task', t.id, 'state', t.state, 'failures', t.failures, 'crashes', t.crashes,
    'own', (SELECT count(*) FROM drill.own o WHERE o.task = t.id))
FROM aegis.task_any t JOIN aegis.lane l ON l.id = t.lane WHERE l.kind = 'drill'
