SELECT 1;

ALTER TABEL users ADD b int;
