-- What the record promises, as plainly as it can be done: four round trips, the room's lock held to the end.
\set place random(0, :rooms - 1)
\set sender :first_sender + (:place + random(0, :members - 1)) % :sessions
\set room :first_room + :place
BEGIN;
SELECT pg_advisory_xact_lock(:room);
INSERT INTO conv_messages (realm_id, conv_id, sender_id, sender_kind, box_id, body, size) VALUES (:realm_id, :room, :sender, 'session', :box_id, :body, :size);
COMMIT;
