//! The documents of protocols: which blob of the document store is whose PDF, DOCX, HTML or JSON. Rows are written with their protocol and never change.

use super::{Error, Result, Sql, Tx, tx::with_tx};
use crate::domain::{ids::ProtocolId, protocol::Document};
use std::collections::HashSet;

const INSERT: Sql = Sql::same("INSERT INTO document (protocol_id, format, blob, sha256, bytes, pages) VALUES ($1, $2, $3, $4, $5, $6)");

const OF_PROTOCOL: Sql = Sql::same("SELECT format, blob, sha256, bytes, pages FROM document WHERE protocol_id = $1");

const BLOBS_AMONG: Sql = Sql::each(
    "SELECT blob FROM document WHERE blob IN (SELECT value FROM json_each($1))",
    "SELECT blob FROM document WHERE blob IN (SELECT json_array_elements_text(CAST($1 AS json)))",
);

const PAGE: Sql = Sql::same(
    "SELECT blob, MIN(sha256) AS sha256, MIN(bytes) AS bytes, COUNT(*) AS documents FROM document WHERE blob > $1 \
     GROUP BY blob ORDER BY blob LIMIT $2",
);
const BLOBS: Sql = Sql::same("SELECT COUNT(DISTINCT blob) FROM document");

pub const ALL: &[(&str, Sql)] = &[
    ("document::PAGE", PAGE),
    ("document::BLOBS", BLOBS),
    ("document::INSERT", INSERT),
    ("document::OF_PROTOCOL", OF_PROTOCOL),
    ("document::BLOBS_AMONG", BLOBS_AMONG),
];

/// Those of the blobs that are documents.
pub async fn blobs_among(tx: &mut Tx<'_>, blobs: &[String]) -> Result<HashSet<String>> {
    let list = serde_json::Value::from(blobs).to_string();
    let rows: Vec<(String,)> = with_tx!(tx, BLOBS_AMONG, |connection, sql| sqlx::query_as(sql).bind(&list).fetch_all(connection).await)?;
    Ok(rows.into_iter().map(|(blob,)| blob).collect())
}

/// A blob that documents are.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Blob {
    pub blob: String,
    pub sha256: String,
    pub bytes: i64,
    /// How many documents are this blob.
    pub documents: i64,
}

/// At most `limit` blobs of documents, after the blob `after`.
pub async fn page(tx: &mut Tx<'_>, after: &str, limit: usize) -> Result<Vec<Blob>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    Ok(with_tx!(tx, PAGE, |connection, sql| sqlx::query_as(sql).bind(after).bind(limit).fetch_all(connection).await)?)
}

/// How many blobs documents are.
pub async fn count_blobs(tx: &mut Tx<'_>) -> Result<u64> {
    let blobs: i64 = with_tx!(tx, BLOBS, |connection, sql| sqlx::query_scalar(sql).fetch_one(connection).await)?;
    Ok(u64::try_from(blobs).unwrap_or(0))
}

pub async fn insert(tx: &mut Tx<'_>, protocol: ProtocolId, document: &Document) -> Result<()> {
    let bytes = i64::try_from(document.bytes).unwrap_or(i64::MAX);
    with_tx!(tx, INSERT, |connection, sql| sqlx::query(sql)
        .bind(protocol.0)
        .bind(document.format.as_str())
        .bind(&document.blob)
        .bind(&document.sha256)
        .bind(bytes)
        .bind(document.pages.map(i64::from))
        .execute(connection)
        .await
        .map(|_| ()))?;
    Ok(())
}

/// A protocol's documents, in the order of [`crate::domain::protocol::Format::ALL`].
pub async fn of_protocol(tx: &mut Tx<'_>, protocol: ProtocolId) -> Result<Vec<Document>> {
    let rows: Vec<DocumentRow> =
        with_tx!(tx, OF_PROTOCOL, |connection, sql| sqlx::query_as(sql).bind(protocol.0).fetch_all(connection).await)?;
    let mut documents = rows.into_iter().map(|row| row.into_document(protocol)).collect::<Result<Vec<_>>>()?;
    documents.sort_by_key(|document| document.format);
    Ok(documents)
}

#[derive(sqlx::FromRow)]
struct DocumentRow {
    format: String,
    blob: String,
    sha256: String,
    bytes: i64,
    pages: Option<i64>,
}

impl DocumentRow {
    fn into_document(self, protocol: ProtocolId) -> Result<Document> {
        let corrupt = |column, reason: String| Error::Corrupt { table: "document", column, row: protocol.to_string(), reason };
        Ok(Document {
            format: self.format.parse().map_err(|error: crate::domain::task::UnknownWord| corrupt("format", error.to_string()))?,
            blob: self.blob,
            sha256: self.sha256,
            bytes: u64::try_from(self.bytes).map_err(|error| corrupt("bytes", error.to_string()))?,
            pages: self.pages.map(u32::try_from).transpose().map_err(|error| corrupt("pages", error.to_string()))?,
        })
    }
}
