-- Operations whose task's id starts with `digits` (hex, no dashes) and whose own id goes on with `rest` behind the task's;
-- the exact one first.
--
-- lock: none
-- index: operation_pkey of each day in the range
-- fence: none: a read
-- returns: many
SELECT o.task, o.id, substr(o.id, 38) = :rest::text AS exact FROM aegis.operation o
WHERE o.task BETWEEN rpad(:digits::text, 32, '0')::uuid AND rpad(:digits::text, 32, 'f')::uuid AND starts_with(substr(o.id, 38), :rest::text)
ORDER BY exact DESC, o.task, o.id LIMIT 3
