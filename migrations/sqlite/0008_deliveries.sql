-- Nothing was delivered before: both tables are empty, and made anew with what deliveries need.
DROP TABLE delivery;
DROP TABLE subscription;

-- The telling of one event to one sink, on its own schedule.
CREATE TABLE delivery (
    id             BLOB   NOT NULL PRIMARY KEY,
    event_id       BLOB   NOT NULL REFERENCES event (id) ON DELETE CASCADE,
    -- jetstream, subscription:ID or callback:URL.
    sink           TEXT   NOT NULL,
    -- Whom it may keep waiting: deliveries of one lane share a receiver, and no other lane waits for it.
    lane           TEXT   NOT NULL,
    attempts       BIGINT NOT NULL,
    -- When it is tried next. NULL: delivered, or given up.
    next_us        BIGINT,
    claim_token    BLOB,
    claim_until_us BIGINT,
    -- A status or a cause; never what the receiver wrote.
    last_status    TEXT,
    last_tried_us  BIGINT,
    delivered_us   BIGINT,
    created_us     BIGINT NOT NULL,
    UNIQUE (event_id, sink)
);
CREATE INDEX delivery_due     ON delivery (lane, next_us) WHERE next_us IS NOT NULL;
CREATE INDEX delivery_created ON delivery (created_us, id);
CREATE INDEX delivery_sink    ON delivery (sink, created_us, id);
CREATE INDEX delivery_failed  ON delivery (created_us, id) WHERE next_us IS NULL AND delivered_us IS NULL;

CREATE TABLE subscription (
    id                     BLOB   NOT NULL PRIMARY KEY,
    -- Its name in the configuration; NULL: it was made through the API.
    name                   TEXT,
    url                    TEXT   NOT NULL,
    -- Event types separated by spaces; empty: all.
    types                  TEXT   NOT NULL,
    secret_sealed          TEXT   NOT NULL,
    previous_secret_sealed TEXT,
    previous_until_us      BIGINT,
    created_us             BIGINT NOT NULL,
    -- The receiver answered 410, or somebody switched it off.
    disabled_us            BIGINT,
    UNIQUE (name)
);

-- A callback is signed with the secret of whoever named it first.
ALTER TABLE task_callback DROP COLUMN secret_sealed;
ALTER TABLE task_callback ADD COLUMN caller TEXT;
