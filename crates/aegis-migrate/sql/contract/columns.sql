-- The columns of a table, in order. $1 schema, $2 table.
SELECT c.attname::text FROM pg_attribute c WHERE c.attrelid = format('%I.%I', $1::text, $2::text)::regclass AND c.attnum > 0 AND NOT c.attisdropped
ORDER BY c.attnum
