\i other.sql
SELECT 1;
