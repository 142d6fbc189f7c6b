-- How full the queue of notifications is.
--
-- lock: none
-- index: none
-- fence: none: a read
-- returns: one
SELECT pg_notification_queue_usage() AS usage
