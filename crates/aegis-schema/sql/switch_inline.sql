-- Small inputs stand in their tasks' rows from the beginning of a new database on.
SELECT aegis.switch_inline()
