//! Registration numbers: one per body, year and agenda, unique both ways and kept for ever, whether a protocol came of it or not.
//!
//! Two transactions that want the same number meet at the primary key: one inserts, the other inserts nothing, looks again and takes the next.

use super::{Error, Result, Sql, Tx, tx::with_tx};
use crate::domain::{
    ids::{AgendaId, InvalidAgendaId},
    register as domain,
    time::Timestamp,
};

const OF_AGENDA: Sql = Sql::same("SELECT number FROM protocol_number WHERE body = $1 AND year = $2 AND agenda_id = $3");

const HOLDER: Sql = Sql::same("SELECT agenda_id FROM protocol_number WHERE body = $1 AND year = $2 AND number = $3");

// Numbers are texts ("17", "17-о"): counted are those of digits only, longer ones being greater. One of more than 18 digits is an own number of some body,
// not one to count on from.
const GREATEST: Sql = Sql::each(
    "SELECT number FROM protocol_number WHERE body = $1 AND year = $2 AND number NOT GLOB '*[^0-9]*' AND LENGTH(number) <= 18
     ORDER BY LENGTH(number) DESC, number DESC LIMIT 1",
    "SELECT number FROM protocol_number WHERE body = $1 AND year = $2 AND number !~ '[^0-9]' AND LENGTH(number) <= 18
     ORDER BY LENGTH(number) DESC, number COLLATE \"C\" DESC LIMIT 1",
);

const INSERT: Sql = Sql::same(
    "INSERT INTO protocol_number (body, year, number, agenda_id, reserved_us) VALUES ($1, $2, $3, $4, $5)
     ON CONFLICT DO NOTHING",
);

// The protocols of an agenda are found by its index; there are as many as it has versions.
const OF_YEAR: Sql = Sql::same(
    "SELECT n.body, n.number, n.agenda_id,
            (SELECT COUNT(*) FROM protocol p WHERE p.agenda_id = n.agenda_id AND p.number = n.number) AS protocols
     FROM protocol_number n
     WHERE n.year = $1
       AND n.body IN (SELECT body FROM protocol_number WHERE year = $1 AND body > $2 GROUP BY body ORDER BY body LIMIT $3)
     ORDER BY n.body, n.reserved_us, n.number",
);

pub const ALL: &[(&str, Sql)] = &[
    ("protocol_number::OF_AGENDA", OF_AGENDA),
    ("protocol_number::HOLDER", HOLDER),
    ("protocol_number::GREATEST", GREATEST),
    ("protocol_number::INSERT", INSERT),
    ("protocol_number::OF_YEAR", OF_YEAR),
];

/// Whose number it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Register {
    pub body: String,
    /// The meeting's year.
    pub year: i16,
}

/// What came of asking for a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reserved {
    /// The agenda's number, now or since an earlier time.
    Number(String),
    /// The wanted number belongs to another agenda.
    TakenBy(String),
    /// The agenda has another number already, and keeps it.
    Differs { reserved: String },
}

/// Gives the agenda its number: the `wanted` one, or the next.
pub async fn reserve(tx: &mut Tx<'_>, register: &Register, agenda: &AgendaId, wanted: Option<&str>, now: Timestamp) -> Result<Reserved> {
    // Every round that inserts nothing means that somebody else took a number meanwhile; a hundred in a row do not happen.
    for _ in 0..100 {
        if let Some(reserved) = text(tx, OF_AGENDA, register, agenda.as_str()).await? {
            return Ok(match wanted {
                Some(wanted) if wanted != reserved => Reserved::Differs { reserved },
                _ => Reserved::Number(reserved),
            });
        }
        let number = match wanted {
            Some(wanted) => {
                if let Some(holder) = text(tx, HOLDER, register, wanted).await? {
                    return Ok(Reserved::TakenBy(holder));
                }
                wanted.to_owned()
            }
            None => next_after(greatest(tx, register).await?.as_deref()),
        };
        let inserted = with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql)
            .bind(&register.body)
            .bind(i64::from(register.year))
            .bind(&number)
            .bind(agenda.as_str())
            .bind(now.as_micros())
            .execute(connection)
            .await
            .map(|done| done.rows_affected()))?;
        if inserted == 1 {
            return Ok(Reserved::Number(number));
        }
    }
    Err(Error::Corrupt {
        table: "protocol_number",
        column: "number",
        row: format!("{} {}", register.body, register.year),
        reason: "the next number was taken by others a hundred times in a row".to_owned(),
    })
}

/// The registers of a year that come after a body, in the order of bodies; at most `limit`, each whole.
pub async fn registers(tx: &mut Tx<'_>, year: i16, after: Option<&str>, limit: usize) -> Result<Vec<domain::Register>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows: Vec<(String, String, String, i64)> = with_tx!(tx, OF_YEAR, |connection, sql| sqlx::query_as(sql)
        .bind(i64::from(year))
        .bind(after.unwrap_or_default())
        .bind(limit)
        .fetch_all(connection)
        .await)?;
    let mut registers: Vec<domain::Register> = Vec::new();
    for (body, number, agenda_id, protocols) in rows {
        let agenda_id = agenda_id.parse().map_err(|error: InvalidAgendaId| Error::Corrupt {
            table: "protocol_number",
            column: "agenda_id",
            row: format!("{body} {year} {number}"),
            reason: error.to_string(),
        })?;
        let entry = domain::Entry { number, agenda_id, has_protocol: protocols > 0 };
        match registers.last_mut().filter(|register| register.body == body) {
            Some(register) => register.entries.push(entry),
            None => registers.push(domain::Register { body, year, entries: vec![entry] }),
        }
    }
    Ok(registers)
}

fn next_after(greatest: Option<&str>) -> String {
    let greatest: u64 = greatest.and_then(|number| number.parse().ok()).unwrap_or(0);
    greatest.saturating_add(1).to_string()
}

async fn greatest(tx: &mut Tx<'_>, register: &Register) -> Result<Option<String>> {
    let row: Option<(String,)> = with_tx!(tx, GREATEST, |connection, sql| sqlx::query_as(sql)
        .bind(&register.body)
        .bind(i64::from(register.year))
        .fetch_optional(connection)
        .await)?;
    Ok(row.map(|(number,)| number))
}

async fn text(tx: &mut Tx<'_>, query: Sql, register: &Register, third: &str) -> Result<Option<String>> {
    let row: Option<(String,)> = with_tx!(tx, query, |connection, sql| sqlx::query_as(sql)
        .bind(&register.body)
        .bind(i64::from(register.year))
        .bind(third)
        .fetch_optional(connection)
        .await)?;
    Ok(row.map(|(text,)| text))
}

#[cfg(test)]
mod tests {
    use super::next_after;

    #[test]
    fn numbers_are_counted() {
        assert_eq!(next_after(None), "1");
        assert_eq!(next_after(Some("9")), "10");
        assert_eq!(next_after(Some("0017")), "18");
    }
}
