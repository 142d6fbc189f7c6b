-- A table that is not below the change's any more has nothing to move. $1 change, $2 epoch, $3 leaf.
UPDATE aegis_migrate.backfill_leaf l SET state = 'gone' FROM aegis_migrate.backfill b
WHERE b.change = $1 AND b.epoch = $2 AND b.state = 'running' AND l.change = b.change AND l.leaf = $3 AND l.state = 'open'
