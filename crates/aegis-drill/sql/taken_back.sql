-- The number of the last move in which housekeeping took a task back from its owner.
SELECT coalesce(max(m.n), 0) FROM drill.move m WHERE m.housekeeping AND m.old_owner IS NOT NULL AND m.new_owner IS NULL
