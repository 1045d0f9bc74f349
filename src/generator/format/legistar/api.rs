//! The Web API's calls: an event's items, and for each item its votes and roll call. What stands inside already is not asked for.

use super::names::{Kind, first_list};
use crate::generator::{
    Halt,
    links::{Link, Links, NoObject},
    source::Address,
};
use reqwest::Url;
use serde_json::Value;

const ITEMS: [&str; 3] = ["EventItems", "items", "Items"];

/// Where the Web API has what belongs to this event.
pub(super) struct Api {
    event: Url,
    /// The path up to and with the client.
    root: String,
    pub client: String,
}

impl Api {
    pub fn of(address: &Address, id: &str) -> Option<Self> {
        let Address::Url(url) = address else { return None };
        let path = url.path().trim_end_matches('/');
        let root = path.strip_suffix(&format!("/{id}"))?;
        let root = ["/events", "/Events"].iter().find_map(|end| root.strip_suffix(end))?.to_owned();
        let client = root.rsplit('/').next().unwrap_or_default().to_owned();
        Some(Self { event: url.clone(), root, client })
    }

    /// An address below the client's, with the token that some clients want in the query.
    fn address(&self, path: &str, query: &[(&str, &str)]) -> String {
        let token = self.event.query_pairs().find(|(name, _)| name == "token").map(|(_, token)| token.into_owned());
        let mut url = self.event.clone();
        url.set_path(&format!("{}/{path}", self.root));
        url.set_query(None);
        let pairs: Vec<(&str, &str)> = query.iter().copied().chain(token.as_deref().map(|token| ("token", token))).collect();
        if !pairs.is_empty() {
            url.query_pairs_mut().extend_pairs(pairs);
        }
        url.into()
    }
}

/// An item and where it stands.
pub(super) struct Item {
    pub object: Value,
    pub pointer: String,
}

/// The items that stand in the event, else what the API says.
pub(super) async fn items(event: &Value, base: &str, api: Option<&Api>, links: &Links<'_>) -> Result<Vec<Item>, Halt> {
    if let Some((name, list)) = first_list(event, &ITEMS) {
        return Ok(list
            .iter()
            .enumerate()
            .map(|(at, item)| Item { object: item.clone(), pointer: format!("{base}/{name}/{at}") })
            .collect());
    }
    let Some(api) = api else { return Ok(Vec::new()) };
    let path = format!("events/{}/eventitems", Kind::Event.id(event, "Id").unwrap_or_default());
    let href = api.address(&path, &[("AgendaNote", "1"), ("MinutesNote", "1"), ("Attachments", "1")]);
    let pointer = format!("{base}/EventItems");
    let answer = links.fetch(vec![Link { href, revision: None, pointer: pointer.clone() }]).await?;
    let list = match answer.into_iter().next() {
        Some(Ok(Value::Array(list))) => list,
        _ => Vec::new(),
    };
    let items = list.into_iter().enumerate().map(|(at, object)| Item { object, pointer: format!("{pointer}/{at}") });
    Ok(items.collect())
}

/// For each item what stands in it under one of `names`, else what the API says.
pub(super) async fn entries(
    items: &[Item],
    names: &[&str],
    call: &str,
    api: Option<&Api>,
    links: &Links<'_>,
    is_asked: impl Fn(&Value) -> bool,
) -> Result<Vec<Vec<Value>>, Halt> {
    let mut entries: Vec<Vec<Value>> =
        items.iter().map(|item| first_list(&item.object, names).map(|(_, list)| list.to_vec()).unwrap_or_default()).collect();
    let Some(api) = api else { return Ok(entries) };
    let (mut places, mut wanted) = (Vec::new(), Vec::new());
    for (place, item) in items.iter().enumerate() {
        let is_there = names.iter().any(|name| item.object.get(*name).is_some());
        if let Some(id) = Kind::EventItem.id(&item.object, "Id").filter(|_| !is_there && is_asked(&item.object)) {
            places.push(place);
            let href = api.address(&format!("eventitems/{id}/{call}"), &[]);
            wanted.push(Link { href, revision: None, pointer: format!("{}/{}", item.pointer, names[0]) });
        }
    }
    for (place, answer) in places.into_iter().zip(links.fetch(wanted).await?) {
        match answer {
            Ok(Value::Array(list)) => entries[place] = list,
            // An item without votes is answered with an empty list or with 404.
            Ok(_) | Err(NoObject::Missing(_) | NoObject::Refused(_) | NoObject::Unreadable(_)) => {}
        }
    }
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_go_to_the_same_client_with_its_token() {
        let address = Address::Url("https://webapi.example/v1/town/events/7?token=abc&x=1".parse().unwrap());
        let api = Api::of(&address, "7").unwrap();
        assert_eq!(api.client, "town");
        assert_eq!(api.address("eventitems/3/votes", &[]), "https://webapi.example/v1/town/eventitems/3/votes?token=abc");
        let other = Address::Url("https://webapi.example/v1/town/meetings/7".parse().unwrap());
        assert!(Api::of(&other, "7").is_none());
    }
}
