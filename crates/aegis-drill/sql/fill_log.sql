-- A little more of the write-ahead log, and the rest of its segment.
SELECT pg_logical_emit_message(true, 'drill', 'a full disk'), pg_switch_wal()
