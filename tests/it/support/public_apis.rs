//! A replay of the two public APIs, with recorded shapes and invented people: an OParl server and a Legistar Web API, with everything that one meeting needs.

use super::agenda_server::{AgendaServer, Seen, answer};
use axum::response::Response;
use serde_json::{Value, json};

/// The people of the invented Legistar council.
const COUNCIL: [(u32, &str); 5] = [(11, "Ada Quill"), (12, "Bo Marsh"), (13, "Cleo Finch"), (14, "Dov Harrow"), (15, "Eva Stone")];

/// Where the Legistar meeting is.
pub const LEGISTAR_EVENT: &str = "/v1/town/events/501";
/// Where the OParl meeting is.
pub const OPARL_MEETING: &str = "/oparl/meeting/77";

pub async fn legistar() -> AgendaServer {
    AgendaServer::start(|seen, _| {
        let value = match seen.path.split('?').next().unwrap_or_default() {
            "/v1/town/events/501" => event(),
            "/v1/town/events/501/eventitems" => items(),
            "/v1/town/eventitems/9001/rollcalls" => rollcall(),
            "/v1/town/eventitems/9002/votes" => votes(9002, ["Yes", "Yes", "No", "Abstain", "Absent"]),
            // 9004 is a consent item: the answer is another item's, with 200.
            "/v1/town/eventitems/9003/votes" | "/v1/town/eventitems/9004/votes" => votes(9003, ["Yes", "Yes", "Yes", "Recused", "Absent"]),
            path if path.ends_with("/votes") || path.ends_with("/rollcalls") => json!([]),
            _ => return answer(404, ""),
        };
        json_answer(&value)
    })
    .await
}

fn json_answer(value: &Value) -> Response {
    let mut response = answer(200, value.to_string());
    response.headers_mut().insert("content-type", "application/json; charset=utf-8".parse().expect("a header"));
    response
}

fn event() -> Value {
    json!({
        "EventId": 501, "EventGuid": "00000000-0000-0000-0000-000000000501", "EventLastModifiedUtc": "2026-03-11T09:00:00.12",
        "EventRowVersion": "AAAAAAAam6E=", "EventBodyId": 7, "EventBodyName": "Town Council", "EventDate": "2026-03-10T00:00:00",
        "EventTime": "6:30 PM", "EventVideoStatus": "Public", "EventAgendaStatusId": 10, "EventAgendaStatusName": "Final",
        "EventMinutesStatusId": 10, "EventMinutesStatusName": "Final", "EventLocation": "Town Hall,\r\n1 Main Street", "EventAgendaFile": null,
        "EventMinutesFile": null, "EventComment": null, "EventInSiteURL": "https://town.example/MeetingDetail.aspx?ID=501", "EventItems": []
    })
}

fn items() -> Value {
    let item = |id: u32, agenda: u32, minutes: u32, number: Option<&str>, title: Option<&str>| {
        json!({
            "EventItemId": id, "EventItemEventId": 501, "EventItemAgendaSequence": agenda, "EventItemMinutesSequence": minutes,
            "EventItemAgendaNumber": number, "EventItemTitle": title, "EventItemAgendaNote": null, "EventItemMinutesNote": null,
            "EventItemActionName": null, "EventItemActionText": null, "EventItemPassedFlag": null, "EventItemPassedFlagName": null,
            "EventItemRollCallFlag": 0, "EventItemConsent": 0, "EventItemMover": null, "EventItemSeconder": null, "EventItemMatterId": null,
            "EventItemMatterFile": null, "EventItemMatterName": null, "EventItemMatterAttachments": []
        })
    };
    let with = |mut item: Value, more: Value| {
        for (name, value) in more.as_object().expect("an object") {
            item[name] = value.clone();
        }
        item
    };
    json!([
        with(item(9001, 1, 1, Some("1."), Some("Roll Call")), json!({"EventItemRollCallFlag": 1})),
        with(
            item(9003, 3, 4, Some("3."), Some("An ordinance on street trees\r\n")),
            json!({"EventItemActionName": "Adopted", "EventItemPassedFlag": 1, "EventItemPassedFlagName": "Pass",
                "EventItemActionText": "To adopt the ordinance on street trees.", "EventItemMover": "Ada Quill", "EventItemSeconder": "Bo Marsh",
                "EventItemMinutesNote": "{\\rtf1\\ansi\\deff0{\\fonttbl{\\f0 Arial;}}\\f0\\fs20 Two residents spoke.\\par}"})
        ),
        with(
            item(9002, 2, 3, Some("2."), Some("A resolution on library hours")),
            json!({"EventItemActionName": "Adopted", "EventItemPassedFlag": 1, "EventItemPassedFlagName": "Pass",
                "EventItemActionText": "To extend the library's hours on Saturdays.",
                "EventItemMatterAttachments": [{"MatterAttachmentId": 1, "MatterAttachmentName": "Staff report", "MatterAttachmentHyperlink": "/files/report.pdf",
                    "MatterAttachmentFileName": "report.pdf", "MatterAttachmentShowOnInternetPage": false}]})
        ),
        // Stands in the minutes only, and comes second there.
        item(9005, 0, 2, None, Some("Approval of the order of business")),
        with(item(9004, 4, 5, Some("4."), Some("Minutes of 3 March")), json!({"EventItemConsent": 1, "EventItemActionName": "Approved"})),
        // A row that only makes room.
        item(9006, 5, 0, None, None),
    ])
}

fn rollcall() -> Value {
    let words = ["Present", "Present", "Present", "Present", "Excused"];
    let entry = |((id, name), word): (&(u32, &str), &str)| {
        json!({"RollCallId": id, "RollCallPersonId": id, "RollCallPersonName": name, "RollCallValueName": word, "RollCallSort": id,
            "RollCallResult": 0, "RollCallEventItemId": 9001})
    };
    COUNCIL.iter().zip(words).map(entry).collect()
}

fn votes(item: u32, words: [&str; 5]) -> Value {
    let entry = |((id, name), word): (&(u32, &str), &str)| {
        json!({"VoteId": id, "VotePersonId": id, "VotePersonName": name, "VoteValueName": word, "VoteSort": id,
            "VoteResult": u8::from(word == "Yes"), "VoteEventItemId": item})
    };
    COUNCIL.iter().zip(words).map(entry).collect()
}

/// Everything is linked, nothing stands inside; addresses are the server's own.
pub async fn oparl() -> AgendaServer {
    AgendaServer::start(|seen, _| match oparl_object(seen) {
        Some(object) => json_answer(&object),
        None if seen.path == "/oparl/files/9.pdf" => answer(200, "%PDF-1.4 the resolution"),
        None => answer(404, ""),
    })
    .await
}

fn oparl_object(seen: &Seen) -> Option<Value> {
    let at = |path: &str| format!("http://{}/oparl/{path}", seen.host);
    let object = |path: &str, kind: &str, more: Value| {
        let mut object = json!({"id": at(path), "type": format!("https://schema.oparl.org/1.1/{kind}"), "created": "2026-01-02T10:00:00+01:00",
            "modified": "2026-03-04T10:00:00+01:00"});
        for (name, value) in more.as_object().expect("an object") {
            object[name] = value.clone();
        }
        object
    };
    let path = seen.path.strip_prefix("/oparl/")?;
    Some(match path {
        "meeting/77" => object(
            path,
            "Meeting",
            json!({
                "name": "3. Sitzung des Bauausschusses", "start": "2026-03-03T17:00:00+01:00", "end": "2026-03-03T18:30:00+01:00",
                "location": at("location/1"), "organization": [at("organization/5")], "participant": [at("person/1"), at("person/2")],
                "agendaItem": [at("item/2"), at("item/1"), at("item/3")]
            }),
        ),
        "location/1" => object(path, "Location", json!({"description": "Rathaus, Saal 2"})),
        "organization/5" => object(path, "Organization", json!({"name": "Bauausschuss", "body": at("body/1")})),
        "body/1" => object(path, "Body", json!({"name": "Stadt Musterau"})),
        "person/1" => object(path, "Person", json!({"name": "Frieda Kern"})),
        "person/2" => object(path, "Person", json!({"givenName": "Otto", "familyName": "Lang"})),
        "item/1" => object(
            path,
            "AgendaItem",
            json!({"number": "1", "order": 1, "name": "Radweg an der Südstraße", "public": true,
            "result": "einstimmig beschlossen", "resolutionText": "Der Radweg wird gebaut.", "resolutionFile": at("file/9")}),
        ),
        "item/2" => object(
            path,
            "AgendaItem",
            json!({"number": "10", "order": 2, "name": "Bericht der Verwaltung", "public": true, "result": "Kenntnisnahme"}),
        ),
        "item/3" => object(path, "AgendaItem", json!({"order": 3, "public": false})),
        "file/9" => object(
            path,
            "File",
            json!({"name": "Beschluss", "fileName": "9.pdf", "mimeType": "application/pdf", "accessUrl": at("files/9.pdf")}),
        ),
        _ => return None,
    })
}
