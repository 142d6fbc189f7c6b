SELECT jsonb_build_object('worker', d.worker, 'held', d.held) FROM drill.drain d
