//! The agenda service: `GET /agendas/{agendaId}` answers what the state file holds at that moment.

use crate::state::Store;
use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::get,
};
use std::{io, net::SocketAddr, time::Duration};
use tokio::net::TcpListener;

/// Serves until it is killed, taking `delay` for every answer. The first line on stdout says where.
pub async fn serve(store: Store, listen: SocketAddr, delay: Duration) -> io::Result<()> {
    let listener = TcpListener::bind(listen).await?;
    println!("http://{}/agendas/{{agendaId}}", listener.local_addr()?);
    let router = Router::new().route("/agendas/{id}", get(agenda)).with_state((store, delay));
    axum::serve(listener, router).await
}

async fn agenda(State((store, delay)): State<(Store, Duration)>, Path(id): Path<String>) -> Response {
    tokio::time::sleep(delay).await;
    match store.read() {
        Ok(state) => state.agendas.get(&id).map_or(StatusCode::NOT_FOUND.into_response(), |agenda| Json(&agenda.document).into_response()),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
