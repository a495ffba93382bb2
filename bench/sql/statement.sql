-- The same in one round trip. The id is drawn above the scan that takes the lock.
\set place random(0, :rooms - 1)
\set sender :first_sender + (:place + random(0, :members - 1)) % :sessions
\set room :first_room + :place
WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(:room))
INSERT INTO conv_messages (realm_id, conv_id, sender_id, sender_kind, box_id, body, size)
SELECT :realm_id::int, :room::bigint, :sender::bigint, 'session', :box_id::bigint, :body::text, :size::int FROM locked;
