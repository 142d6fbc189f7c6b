-- Why a guarded write was refused: what the row and its owner look like now. No row: the task is not live.
--
-- lock: none
-- index: task_pkey
-- fence: none: a read
-- returns: optional
-- nullable: owner, claim_id, floor, timeline
SELECT t.state, t.epoch, t.rev, t.owner, t.claim_id, t.floor, t.timeline, aegis.lease_live(:worker::uuid) AS lease_live,
    EXISTS (SELECT FROM aegis.lineage() i WHERE i.floor = t.floor AND i.timeline = t.timeline) AS lineage_holds
FROM aegis.task t WHERE t.id = :id::uuid
