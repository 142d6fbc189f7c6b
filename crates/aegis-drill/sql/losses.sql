-- Every worker that housekeeping declared lost, with how much of its lease was left; below 0: over for so long.
SELECT jsonb_build_object('worker', l.worker, 'left_ms', l.left_ms) FROM drill.loss l
