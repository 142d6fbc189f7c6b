-- The errors of a task's attempts, in order.
--
-- lock: none
-- index: attempt_error_pkey
-- fence: none: a read
-- returns: many
-- nullable: owner, details
SELECT epoch, at, owner, code, message, retryable, details FROM aegis.attempt_error WHERE task = :id::uuid ORDER BY epoch
