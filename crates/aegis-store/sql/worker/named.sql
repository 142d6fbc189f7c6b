-- Who these workers were; one that ended long ago is forgotten.
--
-- lock: none
-- index: worker_pkey
-- fence: none: a read
-- returns: many
SELECT w.id, w.name, w.host, w.pid, w.release, w.build FROM aegis.worker w WHERE w.id = ANY (:ids::uuid[])
