-- On a standby: does it still receive?
SELECT EXISTS (SELECT FROM pg_stat_wal_receiver)
