-- What the handlers wrote themselves, in the transaction of the completion.
SELECT r.task::text FROM demo.receipt r WHERE r.queue = $1::text
