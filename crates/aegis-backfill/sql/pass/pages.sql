-- Pages of a table, after the state is fixed: none that it needs is missing. $1 its oid.
SELECT pg_relation_size($1::oid) / current_setting('block_size')::bigint
