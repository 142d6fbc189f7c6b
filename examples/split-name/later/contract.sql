-- Drops the side that the version of before wrote. The trigger goes in the same transaction, by itself.
ALTER TABLE users DROP COLUMN name;
