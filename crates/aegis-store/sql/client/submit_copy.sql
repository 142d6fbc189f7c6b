-- Submits a large batch whose inputs all stand in their rows: several rows a WAL record and no array to take apart.
--
-- lock: none beyond the new rows
-- index: task_pkey, task_ready, task_scheduled (written)
-- fence: none: new rows
-- returns: copy
COPY aegis.task (id, lane, tenant, policy, state, priority, ord, run_at, deadline_at, next_deadline, input_protocol, input, trace) FROM STDIN BINARY
