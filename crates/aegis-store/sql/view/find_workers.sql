-- Workers by name, or by the beginning of their id; the living first, then the newest.
--
-- lock: none
-- index: none: workers are few, and forgotten after a while
-- fence: none: a read
-- returns: many
SELECT w.id, w.name, w.release, w.state <= 1 AS is_open, w.registered_at FROM aegis.worker w
WHERE (w.name = :wanted::text OR (length(:digits::text) >= 4 AND starts_with(replace(w.id::text, '-', ''), :digits::text)))
    AND (:all::boolean OR w.state <= 1)
ORDER BY is_open DESC, w.registered_at DESC LIMIT :limit::int8
