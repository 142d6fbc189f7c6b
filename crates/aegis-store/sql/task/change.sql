-- One verb of a person's on a page of tasks; see `aegis.change_tasks`. Where the task stood is NULL when there is none, and when
-- it could not be judged: what the function then still has is of the row before.
--
-- lock: task, parked or history rows one after another, in id order; those of what the verb moves
-- index: task_pkey, parked_pkey, task_history_pkey
-- fence: none: an override; one that ends an execution bumps the epoch when kill_after has passed
-- returns: many
-- nullable: state, lane, problem
SELECT c.task, c.answer, CASE WHEN c.answer NOT IN ('busy', 'refused') THEN c.state END AS state,
    coalesce(c.parked, false) AND c.answer NOT IN ('busy', 'refused') AS parked, c.lane, c.problem
FROM aegis.change_tasks(:verb::text, :ids::uuid[], :live?::int2[], :parked?::int2[], :ended?::int2[], :actor::text, :reason::text,
    :run_at?::timestamptz, :priority?::int2, :dry::boolean, :wait::boolean) c
