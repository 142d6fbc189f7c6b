-- The whole ledger.
SELECT jsonb_build_object('task', o.task, 'id', o.id, 'class', o.class, 'state', o.state, 'dispatches', o.dispatches)
FROM aegis.operation o
