-- The columns of a key. $1 a table's oid, $2 their names. A name that is not there has no row.
SELECT a.attname AS name, format_type(a.atttypid, -1) AS type, a.attnotnull AS not_null
FROM unnest($2::text[]) WITH ORDINALITY AS k (name, at)
JOIN pg_attribute a ON a.attrelid = $1 AND a.attname = k.name AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY k.at
