-- The position that was given to an event last. Who gives the next holds this row until its commit, so that positions become visible in their order.
CREATE TABLE event_counter (
    name TEXT   NOT NULL PRIMARY KEY,
    last BIGINT NOT NULL
);
INSERT INTO event_counter (name, last) VALUES ('position', 0);
-- The events of one agenda, for who follows it alone.
CREATE INDEX event_agenda ON event (agenda_id, position);
