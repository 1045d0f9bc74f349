//! A list of ids as one bound value: an array on PostgreSQL, a JSON text of hex numbers on SQLite. One statement then serves any number of rows.
//!
//! The texts part here: `= ANY($1)` on PostgreSQL, `IN (SELECT unhex(value) FROM json_each($1))` on SQLite.

use sqlx::{
    Encode, Postgres, Sqlite, Type,
    encode::IsNull,
    error::BoxDynError,
    postgres::{PgArgumentBuffer, PgTypeInfo},
    sqlite::{SqliteArgumentsBuffer, SqliteTypeInfo},
};
use uuid::Uuid;

/// Ids to be bound together.
#[derive(Debug, Clone, Default)]
pub struct IdList(Vec<Uuid>);

impl IdList {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<Uuid> for IdList {
    fn from_iter<T: IntoIterator<Item = Uuid>>(ids: T) -> Self {
        Self(ids.into_iter().collect())
    }
}

impl Type<Postgres> for IdList {
    fn type_info() -> PgTypeInfo {
        <Vec<Uuid> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for IdList {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        <Vec<Uuid> as Encode<'_, Postgres>>::encode_by_ref(&self.0, buffer)
    }
}

impl Type<Sqlite> for IdList {
    fn type_info() -> SqliteTypeInfo {
        <String as Type<Sqlite>>::type_info()
    }
}

impl Encode<'_, Sqlite> for IdList {
    fn encode_by_ref(&self, buffer: &mut SqliteArgumentsBuffer) -> Result<IsNull, BoxDynError> {
        let hex: Vec<String> = self.0.iter().map(|id| id.simple().to_string()).collect();
        let json = serde_json::to_string(&hex).expect("a list of strings is JSON");
        <String as Encode<'_, Sqlite>>::encode(json, buffer)
    }
}
