-- Both sides exist from here on; the trigger of [sync] keeps them alike. The functions are total: no name makes a write fail.
ALTER TABLE users ADD COLUMN first_name text, ADD COLUMN last_name text;

CREATE FUNCTION split_first(name text) RETURNS text IMMUTABLE LANGUAGE sql
BEGIN ATOMIC
    SELECT split_part(name, ' ', 1);
END;

CREATE FUNCTION split_last(name text) RETURNS text IMMUTABLE LANGUAGE sql
BEGIN ATOMIC
    SELECT substr(name, length(split_part(name, ' ', 1)) + 2);
END;
