-- A moment of the database's clock, so many milliseconds from now (or ago), and the smallest id of a task submitted then.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT clock_timestamp() + :in_ms::int8 * interval '1 ms' AS at, aegis.uuid7_floor(clock_timestamp() + :in_ms::int8 * interval '1 ms') AS floor
