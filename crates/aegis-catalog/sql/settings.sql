-- Sets, for this transaction, everything that changes how the server prints an expression or a name; the values that were there
-- come back, for who must put them back.
--
-- lock: none
SELECT s.name, current_setting(s.name), set_config(s.name, s.value, true)
FROM (VALUES
    ('search_path', ''),
    ('quote_all_identifiers', 'off'),
    ('standard_conforming_strings', 'on'),
    ('bytea_output', 'hex'),
    ('DateStyle', 'ISO, MDY'),
    ('IntervalStyle', 'postgres'),
    ('TimeZone', 'UTC'),
    ('extra_float_digits', '1'),
    ('lc_monetary', 'C'),
    ('xmlbinary', 'base64'),
    -- No word of an answer depends on it: compiling these statements takes longer than they do.
    ('jit', 'off')
) AS s (name, value)
