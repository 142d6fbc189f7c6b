-- What became of a write whose answer was lost: the task as it stands now, wherever it stands, read under its row lock
-- so that a write still under way is waited for. No row: the task is unknown to this database.
--
-- lock: the task row FOR SHARE
-- index: task_pkey, task_history_pkey, parked_pkey
-- fence: none: a read
-- returns: optional
-- nullable: owner, claim_id, digest
WITH t AS MATERIALIZED (SELECT id, state, epoch, rev, owner, claim_id FROM aegis.task WHERE id = :id::uuid FOR SHARE)
SELECT t.id, t.state, t.epoch, t.rev, t.owner, t.claim_id, NULL::int8 AS digest FROM t
UNION ALL
SELECT h.id, h.state, h.epoch, h.rev, h.owner, h.claim_id, h.digest FROM aegis.ended(:id::uuid) h WHERE NOT EXISTS (SELECT FROM t)
LIMIT 1
