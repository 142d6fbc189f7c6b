-- One verb of a person's on a page of tasks; see `aegis.change_tasks`. Where the task stood is NULL when there is none.
--
-- lock: task, parked or history rows one after another, in id order; those of what the verb moves
-- index: task_pkey, parked_pkey, task_history_pkey
-- fence: none: an override; one that ends an execution bumps the epoch when kill_after has passed
-- returns: many
-- nullable: state, lane, problem
SELECT c.task, c.answer, c.state, coalesce(c.parked, false) AS parked, c.lane, c.problem
FROM aegis.change_tasks(:verb::text, :ids::uuid[], :live?::int2[], :parked?::int2[], :ended?::int2[], :actor::text, :reason::text,
    :run_at?::timestamptz, :priority?::int2, :dry::boolean, :wait::boolean) c
