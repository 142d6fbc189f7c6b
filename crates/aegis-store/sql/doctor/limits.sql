-- What one look may take, for the transaction that it runs in; and no compiling, whatever the role says.
--
-- lock: none
-- index: none
-- fence: none: settings of this transaction
-- returns: one
SELECT set_config('statement_timeout', :timeout_ms::int4::text, true) AS timeout, set_config('jit', 'off', true) AS jit
