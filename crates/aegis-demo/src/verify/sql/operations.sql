-- Every row of the operation ledger.
SELECT o.id, o.task::text, o.name, o.class, o.state, o.resolution
FROM aegis.operation o JOIN aegis.tenant t ON t.id = o.tenant WHERE t.name = $1::text ORDER BY o.task, o.id
