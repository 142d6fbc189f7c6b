-- How far the standbys are behind. A base backup is none; what a role may not see is NULL.
SELECT count(*) AS standbys, count(replay_lsn) AS shown, max(pg_current_wal_lsn() - replay_lsn)::bigint AS bytes
FROM pg_stat_replication WHERE coalesce(state, '') <> 'backup'
