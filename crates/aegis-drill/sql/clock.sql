-- The database's clock, in milliseconds since 1970.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint
