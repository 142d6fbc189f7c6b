-- On a standby: become the primary, on a timeline of its own; wait a minute for that.
SELECT pg_promote(true, 60)
