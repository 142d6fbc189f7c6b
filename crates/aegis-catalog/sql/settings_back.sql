-- Puts settings back, for the rest of the caller's transaction.
--
-- lock: none
SELECT set_config(s.name, s.value, true) FROM unnest($1::text[], $2::text[]) AS s (name, value)
