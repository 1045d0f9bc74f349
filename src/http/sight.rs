//! Whose tasks a call may see: whoever has more than the role `legacy` sees all; with `legacy` alone a caller sees the tasks that its own calls submitted or
//! joined, and their protocols. What it may not see is not there for it: the answer is the same 404 as for what never was.

use super::{Api, Problem, routes::task_status};
use crate::{
    base::config::Role,
    callers::{Identity, Roles},
    domain::{ids::TaskId, task::Task},
    store::task_follower,
};

const ALL: Roles = Roles::of(&[Role::Submit, Role::Read, Role::Admin]);

/// The name to whose tasks the call is limited; none if it sees all.
#[must_use]
pub fn limited_to(identity: &Identity) -> Option<&str> {
    (!identity.roles.meets(ALL)).then_some(identity.caller.name.as_str())
}

/// The task, if it is there for this caller.
///
/// # Errors
/// The 404, or a problem of the store.
pub async fn task(api: &Api, identity: &Identity, id: TaskId) -> Result<Task, Problem> {
    let task = api.within_patience(api.engine.task(id)).await?.ok_or_else(task_status::unknown)?;
    if may_see(api, identity, id).await? { Ok(task) } else { Err(task_status::unknown()) }
}

/// Whether the task, and what it made, is there for this caller.
///
/// # Errors
/// A problem of the store.
pub async fn may_see(api: &Api, identity: &Identity, task: TaskId) -> Result<bool, Problem> {
    let Some(name) = limited_to(identity).map(str::to_owned) else { return Ok(true) };
    let look = api.db.read("task", move |tx| {
        let name = name.clone();
        Box::pin(async move { task_follower::belongs(tx, task, &name).await })
    });
    api.within_patience(look).await
}
