-- The id of a retry and deadline policy, made when it is new (a short transaction of its own).
--
-- lock: the new row
-- index: policy's unique index
-- fence: none: a dictionary
-- returns: one
SELECT aegis.policy_id(:max_failures::int4, :max_crashes::int4, :backoff_initial_ms::int8, :backoff_cap_ms::int8, :schedule_to_start_ms?::int8,
    :start_to_close_ms?::int8, :kill_after_ms::int8) AS id
