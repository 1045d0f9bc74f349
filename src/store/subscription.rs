//! Webhooks that are told about events: those of the configuration, brought up to date at every start, and those made through the API.

use crate::{
    domain::{event::EventType, ids::SubscriptionId, time::Timestamp},
    store::{Error, IdList, Result, Sql, Tx, field::Fields, with_tx},
};
use uuid::Uuid;

macro_rules! columns {
    () => {
        "id, name, url, types, secret_sealed, previous_secret_sealed, previous_until_us, created_us, disabled_us"
    };
}

const INSERT: Sql = Sql::same("INSERT INTO subscription (id, name, url, types, secret_sealed, created_us) VALUES ($1, $2, $3, $4, $5, $6)");
// Of several processes that start at once the last one wins; a start is also what enables a configured one again. A row keeps its id, so that its deliveries stay its own.
const CONFIGURE: Sql = Sql::same(concat!(
    "INSERT INTO subscription (id, name, url, types, secret_sealed, created_us) VALUES ($1, $2, $3, $4, '', $5) \
     ON CONFLICT (name) DO UPDATE SET url = excluded.url, types = excluded.types, disabled_us = NULL RETURNING ",
    columns!()
));
const SET_SECRET: Sql = Sql::same("UPDATE subscription SET secret_sealed = $2 WHERE id = $1");
const LIST: Sql = Sql::same(concat!("SELECT ", columns!(), " FROM subscription ORDER BY created_us, id"));
const FIND: Sql = Sql::same(concat!("SELECT ", columns!(), " FROM subscription WHERE id = $1"));
const FIND_MANY: Sql = Sql::each(
    concat!("SELECT ", columns!(), " FROM subscription WHERE id IN (SELECT unhex(value) FROM json_each($1))"),
    concat!("SELECT ", columns!(), " FROM subscription WHERE id = ANY($1)"),
);
const UPDATE: Sql = Sql::same(concat!(
    "UPDATE subscription SET url = $2, types = $3, disabled_us = $4 WHERE id = $1 AND name IS NULL RETURNING ",
    columns!()
));
const ROTATE: Sql = Sql::same(concat!(
    "UPDATE subscription SET previous_secret_sealed = secret_sealed, previous_until_us = $3, secret_sealed = $2 \
     WHERE id = $1 AND name IS NULL RETURNING ",
    columns!()
));
const DISABLE: Sql = Sql::same("UPDATE subscription SET disabled_us = $2 WHERE id = $1 AND disabled_us IS NULL");
const DELETE: Sql = Sql::same("DELETE FROM subscription WHERE id = $1");

pub const ALL: &[(&str, Sql)] = &[
    ("subscription::insert", INSERT),
    ("subscription::configure", CONFIGURE),
    ("subscription::set_secret", SET_SECRET),
    ("subscription::list", LIST),
    ("subscription::find", FIND),
    ("subscription::find_many", FIND_MANY),
    ("subscription::update", UPDATE),
    ("subscription::rotate", ROTATE),
    ("subscription::disable", DISABLE),
    ("subscription::delete", DELETE),
];

/// A subscription as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    pub id: SubscriptionId,
    /// Its name in the configuration.
    pub name: Option<String>,
    pub url: String,
    /// Empty: all.
    pub types: Vec<EventType>,
    pub secret_sealed: String,
    /// The one before, and until when it is used as well.
    pub previous: Option<(String, Timestamp)>,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
}

impl Subscription {
    #[must_use]
    pub fn wants(&self, kind: EventType) -> bool {
        self.disabled_at.is_none() && (self.types.is_empty() || self.types.contains(&kind))
    }
}

#[derive(sqlx::FromRow)]
struct SubscriptionRow {
    id: Uuid,
    name: Option<String>,
    url: String,
    types: String,
    secret_sealed: String,
    previous_secret_sealed: Option<String>,
    previous_until_us: Option<i64>,
    created_us: i64,
    disabled_us: Option<i64>,
}

impl TryFrom<SubscriptionRow> for Subscription {
    type Error = Error;

    fn try_from(row: SubscriptionRow) -> Result<Self> {
        let fields = Fields { table: "subscription", row: row.id };
        let types = row.types.split_whitespace().map(|kind| fields.fit("types", kind.parse())).collect::<Result<_>>()?;
        Ok(Self {
            id: SubscriptionId(row.id),
            name: row.name,
            url: row.url,
            types,
            secret_sealed: row.secret_sealed,
            previous: row.previous_secret_sealed.zip(row.previous_until_us.map(Timestamp::from_micros)),
            created_at: Timestamp::from_micros(row.created_us),
            disabled_at: row.disabled_us.map(Timestamp::from_micros),
        })
    }
}

fn stored(types: &[EventType]) -> String {
    types.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().join(" ")
}

pub async fn insert(tx: &mut Tx<'_>, subscription: &Subscription) -> Result<()> {
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql)
        .bind(subscription.id.0)
        .bind(subscription.name.as_deref())
        .bind(&subscription.url)
        .bind(stored(&subscription.types))
        .bind(&subscription.secret_sealed)
        .bind(subscription.created_at.as_micros())
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// Brings the configured one of this name up to date, or makes it under `id`; its secret is set by [`set_secret`], because it is sealed for the id that comes out.
pub async fn configure(
    tx: &mut Tx<'_>,
    id: SubscriptionId,
    name: &str,
    url: &str,
    types: &[EventType],
    now: Timestamp,
) -> Result<Subscription> {
    with_tx!(tx, CONFIGURE, |connection, sql| sqlx::query_as::<_, SubscriptionRow>(sql)
        .bind(id.0)
        .bind(name)
        .bind(url)
        .bind(stored(types))
        .bind(now.as_micros())
        .fetch_one(connection)
        .await)?
    .try_into()
}

pub async fn set_secret(tx: &mut Tx<'_>, id: SubscriptionId, secret_sealed: &str) -> Result<()> {
    with_tx!(tx, SET_SECRET, |connection, sql| sqlx::query(sql).bind(id.0).bind(secret_sealed).execute(connection).await.map(|_| ()))?;
    Ok(())
}

/// All of them, oldest first.
pub async fn list(tx: &mut Tx<'_>) -> Result<Vec<Subscription>> {
    with_tx!(tx, LIST, |connection, sql| sqlx::query_as::<_, SubscriptionRow>(sql).fetch_all(connection).await)?
        .into_iter()
        .map(Subscription::try_from)
        .collect()
}

pub async fn find(tx: &mut Tx<'_>, id: SubscriptionId) -> Result<Option<Subscription>> {
    with_tx!(tx, FIND, |connection, sql| sqlx::query_as::<_, SubscriptionRow>(sql).bind(id.0).fetch_optional(connection).await)?
        .map(Subscription::try_from)
        .transpose()
}

pub async fn find_many(tx: &mut Tx<'_>, ids: IdList) -> Result<Vec<Subscription>> {
    with_tx!(tx, FIND_MANY, |connection, sql| sqlx::query_as::<_, SubscriptionRow>(sql).bind(ids).fetch_all(connection).await)?
        .into_iter()
        .map(Subscription::try_from)
        .collect()
}

/// `None`: there is none that the API may change.
pub async fn update(
    tx: &mut Tx<'_>,
    id: SubscriptionId,
    url: &str,
    types: &[EventType],
    disabled_at: Option<Timestamp>,
) -> Result<Option<Subscription>> {
    with_tx!(tx, UPDATE, |connection, sql| sqlx::query_as::<_, SubscriptionRow>(sql)
        .bind(id.0)
        .bind(url)
        .bind(stored(types))
        .bind(disabled_at.map(Timestamp::as_micros))
        .fetch_optional(connection)
        .await)?
    .map(Subscription::try_from)
    .transpose()
}

/// A new secret; the one before is used as well until `previous_until`. `None`: there is none that the API may change.
pub async fn rotate(tx: &mut Tx<'_>, id: SubscriptionId, secret_sealed: &str, previous_until: Timestamp) -> Result<Option<Subscription>> {
    with_tx!(tx, ROTATE, |connection, sql| sqlx::query_as::<_, SubscriptionRow>(sql)
        .bind(id.0)
        .bind(secret_sealed)
        .bind(previous_until.as_micros())
        .fetch_optional(connection)
        .await)?
    .map(Subscription::try_from)
    .transpose()
}

/// The receiver wants nothing more; whether it was told anything until now.
pub async fn disable(tx: &mut Tx<'_>, id: SubscriptionId, now: Timestamp) -> Result<bool> {
    let rows = with_tx!(tx, DISABLE, |connection, sql| sqlx::query(sql)
        .bind(id.0)
        .bind(now.as_micros())
        .execute(connection)
        .await
        .map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}

pub async fn delete(tx: &mut Tx<'_>, id: SubscriptionId) -> Result<bool> {
    let rows =
        with_tx!(tx, DELETE, |connection, sql| sqlx::query(sql).bind(id.0).execute(connection).await.map(|done| done.rows_affected()))?;
    Ok(rows == 1)
}
