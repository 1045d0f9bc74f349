//! Whether statements may be given names. A name is remembered by one session; behind a pooler the next transaction has another one, so nothing is named there.

use futures::{future::BoxFuture, stream::BoxStream};
use sqlx::{
    Either, Error, Execute, Executor, PgConnection, Postgres, SqlStr,
    error::BoxDynError,
    postgres::{PgArguments, PgQueryResult, PgRow, PgStatement, PgTypeInfo},
};

/// How statements go to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statements {
    /// Prepared once a session and found again by their name.
    Named,
    /// Prepared each time.
    Unnamed,
}

/// A connection on which statements go as they may.
#[derive(Debug)]
pub(super) struct Careful<'c> {
    pub(super) connection: &'c mut PgConnection,
    pub(super) statements: Statements,
}

impl<'c> Executor<'c> for Careful<'c> {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, Result<Either<PgQueryResult, PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        match self.statements {
            Statements::Named => self.connection.fetch_many(query),
            Statements::Unnamed => self.connection.fetch_many(Unnamed(query)),
        }
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, Result<Option<PgRow>, Error>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        match self.statements {
            Statements::Named => self.connection.fetch_optional(query),
            Statements::Unnamed => self.connection.fetch_optional(Unnamed(query)),
        }
    }

    fn prepare_with<'e>(self, sql: SqlStr, parameters: &'e [PgTypeInfo]) -> BoxFuture<'e, Result<PgStatement, Error>>
    where
        'c: 'e,
    {
        self.connection.prepare_with(sql, parameters)
    }
}

struct Unnamed<E>(E);

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Unnamed<E> {
    fn sql(self) -> SqlStr {
        self.0.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.0.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.0.take_arguments()
    }

    fn persistent(&self) -> bool {
        false
    }
}
