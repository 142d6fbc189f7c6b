-- The id of a lane, made when it is new (a short transaction of its own).
--
-- lock: the new row
-- index: lane_queue_kind_lo_hi_key
-- fence: none: a dictionary
-- returns: one
SELECT aegis.lane_id(:queue::text, :kind::text, :lo::int4, :hi::int4) AS id
