//! The agenda service: `GET /agendas/{agendaId}` answers what the state file holds at that moment, with an `ETag`; who names that state is told 304 at once.

use crate::state::Store;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::{
        HeaderMap, StatusCode,
        header::{ETAG, IF_NONE_MATCH},
    },
    response::{IntoResponse as _, Response},
    routing::get,
};
use sha2::{Digest as _, Sha256};
use std::{fmt::Write as _, io, net::SocketAddr, time::Duration};
use tokio::net::TcpListener;

/// Serves until it is killed, taking `delay` for every agenda that it makes; saying that nothing has changed costs nothing. The first line on stdout says where.
pub async fn serve(store: Store, listen: SocketAddr, delay: Duration) -> io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    println!("http://{}/agendas/{{agendaId}}", listener.local_addr()?);
    let router = Router::new().route("/agendas/{id}", get(agenda)).with_state((store, delay));
    axum::serve(listener, router).await
}

async fn agenda(State((store, delay)): State<(Store, Duration)>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    let document = match store.read() {
        Ok(state) => state.agendas.get(&id).map(|agenda| agenda.document.clone()),
        Err(error) => return (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    };
    let Some(document) = document else { return StatusCode::NOT_FOUND.into_response() };
    let etag = etag(document.to_string().as_bytes());
    if headers.get(IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == etag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [(ETAG, etag)]).into_response();
    }
    tokio::time::sleep(delay).await;
    ([(ETAG, etag)], Json(document)).into_response()
}

fn etag(content: &[u8]) -> String {
    let mut etag = "\"".to_owned();
    for byte in Sha256::digest(content) {
        let _ = write!(etag, "{byte:02x}");
    }
    etag + "\""
}
