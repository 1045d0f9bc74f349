//! The protocol's registration number: the agenda's own, or the next of its body and year. Reserved once and kept for ever.

use super::{
    Halt,
    collect::Collected,
    document::meeting_date,
    words::{Words, short},
};
use crate::{
    domain::{
        failure::{Failure, FailureCode, Fault},
        ids::AgendaId,
        time::Timestamp,
    },
    engine::Run,
    store::{
        Db,
        protocol_number::{self, Register, Reserved},
    },
};

const TAKEN: Words = Words {
    ru: "Номер протокола «{number}» за {year} год уже закреплён за повесткой «{holder}». Укажите другой номер.",
    en: "Protocol number “{number}” of {year} belongs to agenda “{holder}”. Give another number.",
    de: "Die Protokollnummer „{number}“ des Jahres {year} gehört zur Tagesordnung „{holder}“. Geben Sie eine andere Nummer an.",
};
const DIFFERS: Words = Words {
    ru: "За этой повесткой уже закреплён номер протокола «{reserved}», а указан «{number}». Номер не меняется: верните прежний.",
    en: "This agenda already has protocol number “{reserved}”, but says “{number}”. A number does not change: give the former one.",
    de: "Diese Tagesordnung hat bereits die Protokollnummer „{reserved}“, nennt aber „{number}“. Eine Nummer ändert sich nicht: geben Sie die frühere an.",
};

/// Reserves the number.
///
/// # Errors
/// `agenda-invalid` when the agenda's own number belongs to another, or is not the one it has already.
pub async fn reserve(db: &Db, run: &Run, collected: &Collected, agenda_id: &AgendaId, now: Timestamp) -> Result<String, Halt> {
    let agenda = &collected.agenda;
    let year = meeting_date(agenda).and_then(|date| date.get(..4)?.parse().ok()).unwrap_or_default();
    let register = Register { body: format!("{} — {}", agenda.body.organization, agenda.body.name), year };
    let wanted = own_number(collected);
    let reserve = || {
        let (register, agenda_id, wanted) = (register.clone(), agenda_id.clone(), wanted.clone());
        db.transaction("reserve_number", move |tx| {
            let (register, agenda_id, wanted) = (register.clone(), agenda_id.clone(), wanted.clone());
            Box::pin(async move { protocol_number::reserve(tx, &register, &agenda_id, wanted.as_deref(), now).await })
        })
    };
    let reserved = run.patiently("reserving a number", reserve).await??;
    let number = short(&wanted.unwrap_or_default());
    let year = register.year.to_string();
    let detail = match reserved {
        Reserved::Number(number) => return Ok(number),
        Reserved::TakenBy(holder) => TAKEN.say(collected.language, &[("number", &number), ("year", &year), ("holder", &short(&holder))]),
        Reserved::Differs { reserved } => DIFFERS.say(collected.language, &[("number", &number), ("reserved", &reserved)]),
    };
    let fault = Fault { code: "number-taken".to_owned(), pointer: "/number".to_owned(), detail };
    Err(Failure::new(FailureCode::AgendaInvalid, "The protocol's number is not free.").with_errors(vec![fault]).into())
}

/// The number that the agenda gives itself.
#[must_use]
pub fn own_number(collected: &Collected) -> Option<String> {
    collected.agenda.number.as_deref().map(str::trim).filter(|number| !number.is_empty()).map(str::to_owned)
}
