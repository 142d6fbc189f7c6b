-- Every gate that closed, with how many tasks the worker held at that moment.
SELECT jsonb_build_object('worker', d.worker, 'held', d.held) FROM drill.drain d
