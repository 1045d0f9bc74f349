-- Times are BIGINT microseconds since the Unix epoch, ids UUIDv7, states TEXT with a CHECK, payloads opaque TEXT.
-- Tables and columns are the same on SQLite; a test compares them.

-- Facts about this database itself: the document store's id, since when the ledger watches, whether claiming is paused.
CREATE TABLE setting (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

CREATE TABLE task (
    id               UUID   NOT NULL PRIMARY KEY,
    kind             TEXT   NOT NULL CHECK (kind IN ('protocol', 'demo')),
    agenda_id        TEXT,
    payload          TEXT   NOT NULL,
    client_reference TEXT,
    status           TEXT   NOT NULL CHECK (status IN ('PENDING', 'IN_PROGRESS', 'COMPLETED', 'FAILED', 'CANCELLED')),
    claim_no         BIGINT NOT NULL,
    attempt_no       BIGINT NOT NULL,
    max_attempts     BIGINT NOT NULL,
    run_at_us        BIGINT NOT NULL,
    next_attempt_us  BIGINT NOT NULL,
    lease_token      UUID,
    lease_until_us   BIGINT,
    worker_id        UUID,
    phase            TEXT,
    steps_done       BIGINT NOT NULL,
    steps_known      BIGINT NOT NULL,
    last_error       TEXT,
    failure          TEXT,
    protocol_id      UUID,
    caller           TEXT   NOT NULL,
    traceparent      TEXT,
    revision         BIGINT NOT NULL,
    created_us       BIGINT NOT NULL,
    started_us       BIGINT,
    finished_us      BIGINT,
    CHECK (kind <> 'protocol' OR agenda_id IS NOT NULL),
    -- A lease exists exactly while the task is in progress: nobody can write to a task that nobody holds.
    CHECK ((status = 'IN_PROGRESS') = (lease_token IS NOT NULL)),
    CHECK ((status = 'IN_PROGRESS') = (lease_until_us IS NOT NULL)),
    CHECK ((status IN ('COMPLETED', 'FAILED', 'CANCELLED')) = (finished_us IS NOT NULL))
);
-- The promise "accepted exactly once, while active, per agenda" is this index; losing the race for it is the join.
CREATE UNIQUE INDEX task_active_agenda ON task (agenda_id) WHERE kind = 'protocol' AND status IN ('PENDING', 'IN_PROGRESS');
CREATE INDEX task_due        ON task (next_attempt_us, id) WHERE status = 'PENDING';
CREATE INDEX task_lease      ON task (lease_until_us)      WHERE status = 'IN_PROGRESS';
CREATE INDEX task_finished   ON task (finished_us)         WHERE finished_us IS NOT NULL;
CREATE INDEX task_created    ON task (created_us, id);
CREATE INDEX task_agenda     ON task (agenda_id, created_us, id);
CREATE INDEX task_status     ON task (status, created_us, id);
CREATE INDEX task_caller     ON task (caller, created_us, id);

CREATE TABLE attempt (
    id         UUID   NOT NULL PRIMARY KEY,
    task_id    UUID   NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    claim_no   BIGINT NOT NULL,
    attempt_no BIGINT NOT NULL,
    worker_id  UUID   NOT NULL,
    started_us BIGINT NOT NULL,
    ended_us   BIGINT,
    outcome    TEXT CHECK (outcome IN ('completed', 'failed', 'retried', 'cancelled', 'released', 'worker-lost')),
    failure    TEXT,
    phase      TEXT,
    CHECK ((ended_us IS NULL) = (outcome IS NULL)),
    UNIQUE (task_id, claim_no)
);

CREATE TABLE outbox (
    message_id     UUID   NOT NULL PRIMARY KEY,
    task_id        UUID   NOT NULL,
    envelope_type  TEXT   NOT NULL,
    payload        TEXT   NOT NULL,
    available_us   BIGINT NOT NULL,
    claim_token    UUID,
    claim_until_us BIGINT,
    send_attempts  BIGINT NOT NULL,
    last_error     TEXT,
    published_us   BIGINT,
    created_us     BIGINT NOT NULL
);
-- Rows are taken by state, never by "id > last": a row that commits late is found all the same.
CREATE INDEX outbox_unpublished ON outbox (available_us) WHERE published_us IS NULL;
CREATE INDEX outbox_published   ON outbox (published_us) WHERE published_us IS NOT NULL;
CREATE INDEX outbox_task        ON outbox (task_id);

CREATE TABLE inbox (
    message_id  UUID   NOT NULL PRIMARY KEY,
    task_id     UUID   NOT NULL,
    received_us BIGINT NOT NULL
);
CREATE INDEX inbox_received ON inbox (received_us);

CREATE TABLE dead_letter (
    id           UUID   NOT NULL PRIMARY KEY,
    task_id      UUID   NOT NULL,
    agenda_id    TEXT,
    reason       TEXT   NOT NULL,
    message      TEXT   NOT NULL,
    attempts     BIGINT NOT NULL,
    phase        TEXT,
    failed_us    BIGINT NOT NULL,
    replayed_us  BIGINT,
    dismissed_us BIGINT
);
CREATE INDEX dead_letter_failed ON dead_letter (failed_us, id);
-- One open dead letter per task: FAILED means exactly this.
CREATE UNIQUE INDEX dead_letter_open ON dead_letter (task_id) WHERE replayed_us IS NULL AND dismissed_us IS NULL;

CREATE TABLE checkpoint (
    task_id UUID   NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    step    TEXT   NOT NULL,
    key     TEXT   NOT NULL,
    done_us BIGINT NOT NULL,
    PRIMARY KEY (task_id, step)
);
CREATE INDEX checkpoint_key ON checkpoint (key);

CREATE TABLE step_cache (
    key        TEXT   NOT NULL PRIMARY KEY,
    output     TEXT   NOT NULL,
    created_us BIGINT NOT NULL,
    used_us    BIGINT NOT NULL
);
CREATE INDEX step_cache_used ON step_cache (used_us);

CREATE TABLE protocol (
    id          UUID   NOT NULL PRIMARY KEY,
    task_id     UUID   NOT NULL,
    agenda_id   TEXT   NOT NULL,
    version     BIGINT NOT NULL,
    number      TEXT   NOT NULL,
    fingerprint TEXT   NOT NULL,
    record      TEXT   NOT NULL,
    created_us  BIGINT NOT NULL,
    UNIQUE (agenda_id, version)
);

CREATE TABLE document (
    protocol_id UUID   NOT NULL REFERENCES protocol (id),
    format      TEXT   NOT NULL CHECK (format IN ('pdf', 'docx', 'html', 'json')),
    blob        TEXT   NOT NULL,
    sha256      TEXT   NOT NULL,
    bytes       BIGINT NOT NULL,
    pages       BIGINT,
    PRIMARY KEY (protocol_id, format)
);
CREATE INDEX document_blob ON document (blob);

CREATE TABLE protocol_number (
    body        TEXT   NOT NULL,
    year        BIGINT NOT NULL,
    number      TEXT   NOT NULL,
    agenda_id   TEXT   NOT NULL,
    reserved_us BIGINT NOT NULL,
    PRIMARY KEY (body, year, number),
    UNIQUE (body, year, agenda_id)
);

CREATE TABLE event (
    id         UUID   NOT NULL PRIMARY KEY,
    type       TEXT   NOT NULL,
    task_id    UUID   NOT NULL,
    agenda_id  TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    created_us BIGINT NOT NULL,
    -- Given after the commit by one claimed loop, so that readers by position never miss a late commit.
    position   BIGINT UNIQUE
);
CREATE INDEX event_unplaced ON event (created_us) WHERE position IS NULL;
CREATE INDEX event_task     ON event (task_id);

CREATE TABLE delivery (
    id             UUID   NOT NULL PRIMARY KEY,
    event_id       UUID   NOT NULL REFERENCES event (id) ON DELETE CASCADE,
    sink           TEXT   NOT NULL,
    attempts       BIGINT NOT NULL,
    next_us        BIGINT,
    claim_token    UUID,
    claim_until_us BIGINT,
    last_status    TEXT,
    last_tried_us  BIGINT,
    delivered_us   BIGINT,
    UNIQUE (event_id, sink)
);
CREATE INDEX delivery_due ON delivery (next_us) WHERE delivered_us IS NULL AND next_us IS NOT NULL;

CREATE TABLE subscription (
    id                     UUID   NOT NULL PRIMARY KEY,
    url                    TEXT   NOT NULL,
    types                  TEXT   NOT NULL,
    secret_sealed          TEXT   NOT NULL,
    previous_secret_sealed TEXT,
    previous_until_us      BIGINT,
    created_us             BIGINT NOT NULL,
    disabled_us            BIGINT
);

CREATE TABLE task_callback (
    task_id       UUID   NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    url           TEXT   NOT NULL,
    secret_sealed TEXT,
    created_us    BIGINT NOT NULL,
    PRIMARY KEY (task_id, url)
);

CREATE TABLE idempotency_key (
    scope       TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    fingerprint TEXT   NOT NULL,
    task_id     UUID   NOT NULL,
    created_us  BIGINT NOT NULL,
    expires_us  BIGINT,
    PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_key_task    ON idempotency_key (task_id);
CREATE INDEX idempotency_key_expires ON idempotency_key (expires_us) WHERE expires_us IS NOT NULL;

CREATE TABLE caller (
    name            TEXT   NOT NULL PRIMARY KEY,
    proved          BIGINT NOT NULL CHECK (proved IN (0, 1)),
    first_v1_us     BIGINT,
    last_v1_us      BIGINT,
    first_v2_us     BIGINT,
    last_v2_us      BIGINT,
    last_address    TEXT,
    last_user_agent TEXT
);

CREATE TABLE legacy_call (
    caller  TEXT   NOT NULL,
    day     TEXT   NOT NULL,
    outcome TEXT   NOT NULL,
    calls   BIGINT NOT NULL,
    PRIMARY KEY (caller, day, outcome)
);

CREATE TABLE owed_answer (
    caller    TEXT   NOT NULL,
    agenda_id TEXT   NOT NULL,
    task_id   UUID   NOT NULL REFERENCES task (id) ON DELETE CASCADE,
    since_us  BIGINT NOT NULL,
    PRIMARY KEY (caller, task_id)
);
CREATE INDEX owed_answer_agenda ON owed_answer (agenda_id, caller);

CREATE TABLE audit (
    id         UUID   NOT NULL PRIMARY KEY,
    at_us      BIGINT NOT NULL,
    actor      TEXT   NOT NULL,
    address    TEXT   NOT NULL,
    action     TEXT   NOT NULL,
    object     TEXT   NOT NULL,
    request_id TEXT   NOT NULL
);
CREATE INDEX audit_at ON audit (at_us, id);

-- For people in psql: the seed's table name, with real timestamps.
CREATE VIEW protocol_generation_task AS
SELECT id, agenda_id, status, phase, steps_done, steps_known, claim_no, attempt_no, max_attempts, caller, client_reference, protocol_id,
       last_error, failure,
       to_timestamp(run_at_us / 1e6)       AS run_at,
       to_timestamp(next_attempt_us / 1e6) AS next_attempt_at,
       to_timestamp(lease_until_us / 1e6)  AS lease_until,
       to_timestamp(created_us / 1e6)      AS created_at,
       to_timestamp(started_us / 1e6)      AS started_at,
       to_timestamp(finished_us / 1e6)     AS finished_at
FROM task
WHERE kind = 'protocol';

CREATE VIEW dead_letter_at AS
SELECT id, task_id, agenda_id, reason, message, attempts, phase,
       to_timestamp(failed_us / 1e6)    AS failed_at,
       to_timestamp(replayed_us / 1e6)  AS replayed_at,
       to_timestamp(dismissed_us / 1e6) AS dismissed_at
FROM dead_letter;

CREATE VIEW outbox_at AS
SELECT message_id, task_id, envelope_type, send_attempts, last_error,
       to_timestamp(available_us / 1e6) AS available_at,
       to_timestamp(published_us / 1e6) AS published_at
FROM outbox;
