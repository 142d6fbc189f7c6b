-- Columns of a date or time. $1 a table, quoted.
SELECT a.attname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
WHERE a.attrelid = $1::text::regclass AND a.attnum > 0 AND NOT a.attisdropped AND t.typcategory = 'D'
