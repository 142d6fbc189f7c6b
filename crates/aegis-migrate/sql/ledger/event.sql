-- Keeps an event. $1 run, $2 epoch, $3 event.
INSERT INTO aegis_migrate.event (run, epoch, event) VALUES ($1, $2, $3)
