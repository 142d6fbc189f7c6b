\restrict abc
SET lock_timeout = '1s';
BEGIN; ALTER TABLE a ADD COLUMN b int DEFAULT random(); COMMIT;
\unrestrict abc
