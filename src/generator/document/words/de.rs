//! German: a Niederschrift.

use super::{Labels, Present, Quorum, Words, grouped, listed};
use crate::{
    domain::agenda::{Ballot, OutcomeCategory, Share, Vote},
    generator::document::model::Role,
};
use jiff::civil::{Date, Time};
use std::fmt::Write as _;

pub(super) struct German;

const MONTHS: [&str; 12] =
    ["Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"];

static LABELS: Labels = Labels {
    kind: "NIEDERSCHRIFT",
    opened: "Sitzungsdauer",
    chair: "Vorsitz",
    secretary: "Schriftführung",
    tellers: "Stimmenzählung",
    absent: "Abwesend",
    invited: "Gäste",
    quorum: "Beschlussfähigkeit",
    agenda: "TAGESORDNUNG",
    rapporteur: "Bericht",
    heard: "SACHVORTRAG",
    discussed: "BERATUNG",
    decided: "BESCHLUSS",
    voted: "Abstimmung",
    secret_ballot: "Geheime Abstimmung",
    named_votes: "Namentliche Abstimmung",
    choice: "Stimme",
    count: "Anzahl",
    members: "Mitglieder",
    in_favour: "Ja",
    against: "Nein",
    abstained: "Enthaltung",
    not_voted: "Nicht abgestimmt",
    outcome: "Ergebnis",
    dissent: "Abweichende Meinung zu Protokoll",
    annexes: "Anlagen",
    attendance_list: "Anwesenheitsliste",
    file_list: "Verzeichnis der beigefügten Dateien",
    annex_number: "Nr.",
    question: "TOP",
    file: "Datei",
    size: "Größe",
    remote: "zugeschaltet",
    without_vote: "ohne Stimmrecht",
    closed_session: "Dieser Punkt wurde in nichtöffentlicher Sitzung behandelt.",
    no_reason: "ohne Angabe von Gründen",
};

impl Words for German {
    fn labels(&self) -> &'static Labels {
        &LABELS
    }

    fn subject(&self, body: &str) -> String {
        format!("über die Sitzung {body}")
    }

    fn number(&self, number: &str) -> String {
        format!("Nr.\u{a0}{number}")
    }

    fn title(&self, number: &str, body: &str, date: &str) -> String {
        format!("Niederschrift Nr. {number} über die Sitzung {body} vom {date}")
    }

    fn date(&self, date: Date) -> String {
        let month = usize::from(date.month().unsigned_abs()) - 1;
        format!("{}.\u{a0}{}\u{a0}{}", date.day(), MONTHS[month], date.year())
    }

    fn time(&self, time: Time) -> String {
        format!("{:02}:{:02}\u{a0}Uhr", time.hour(), time.minute())
    }

    fn sitting(&self, start: &str, end: Option<&str>) -> String {
        end.map_or_else(|| format!("Beginn {start}"), |end| format!("Beginn {start}, Ende {end}"))
    }

    fn attended_label(&self, _: usize) -> &'static str {
        "Anwesend:"
    }

    fn attended(&self, Present { now, total }: Present) -> String {
        format!("{now} von {total} {}", if total == 1 { "Mitglied" } else { "Mitgliedern" })
    }

    fn list_in_annex(&self, annex: usize) -> String {
        format!("siehe Anlage\u{a0}{annex}")
    }

    fn since(&self, time: &str) -> String {
        format!("ab {time}")
    }

    fn until(&self, time: &str) -> String {
        format!("bis {time}")
    }

    fn quorum(&self, quorum: Quorum) -> String {
        let Quorum { entitled, present, share, needed } = quorum;
        let share = match share {
            Share::MoreThanHalf => "erforderlich ist mehr als die Hälfte, also mindestens ",
            Share::Half => "erforderlich ist die Hälfte, also mindestens ",
            Share::TwoThirds => "erforderlich sind zwei Drittel, also mindestens ",
            Share::AtLeast(_) => "erforderlich sind mindestens ",
        };
        let verdict =
            if quorum.is_reached() { "Die Beschlussfähigkeit ist gegeben." } else { "Die Beschlussfähigkeit ist nicht gegeben." };
        format!("Bei Eröffnung sind {present} von {entitled} stimmberechtigten Mitgliedern anwesend; {share}{needed}. {verdict}")
    }

    fn arrives(&self, time: &str, names: &[String], Present { now, total }: Present) -> String {
        let verb = if names.len() == 1 { "nimmt" } else { "nehmen" };
        format!("Ab {time} {verb} {} an der Sitzung teil. Anwesend: {now} von {total} Mitgliedern.", listed(names, "und"))
    }

    fn leaves(&self, time: &str, names: &[String], Present { now, total }: Present) -> String {
        let verb = if names.len() == 1 { "verlässt" } else { "verlassen" };
        format!("Um {time} {verb} {} die Sitzung. Anwesend: {now} von {total} Mitgliedern.", listed(names, "und"))
    }

    fn recused(&self, name: &str, reason: Option<&str>) -> String {
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("An Beratung und Abstimmung nimmt {name} nicht teil{reason}.")
    }

    fn due(&self, date: &str) -> String {
        format!("Frist: {date}")
    }

    fn responsible(&self, who: &str) -> String {
        format!("Verantwortlich: {who}")
    }

    fn voted(&self, vote: &Vote) -> String {
        let mut text = format!("Ja\u{a0}– {}, Nein\u{a0}– {}", vote.in_favour, vote.against);
        if vote.ballot == Ballot::Open || vote.abstained > 0 {
            let _ = write!(text, ", Enthaltungen\u{a0}– {}", vote.abstained);
        }
        if vote.not_voted > 0 {
            let _ = write!(text, ", nicht abgestimmt\u{a0}– {}", vote.not_voted);
        }
        text + "."
    }

    fn papers(&self, vote: &Vote) -> Option<String> {
        let papers = vote.papers.as_ref()?;
        Some(format!(
            "ausgegebene Stimmzettel\u{a0}– {}, in der Urne\u{a0}– {}, nicht zurückgegeben\u{a0}– {}, ungültig\u{a0}– {}.",
            papers.issued, papers.found, papers.not_returned, papers.invalid
        ))
    }

    fn outcome(&self, category: OutcomeCategory) -> &'static str {
        match category {
            OutcomeCategory::Adopted => "angenommen",
            OutcomeCategory::Rejected => "abgelehnt",
            OutcomeCategory::Postponed => "vertagt",
            OutcomeCategory::Withdrawn => "von der Tagesordnung abgesetzt",
            OutcomeCategory::Noted => "zur Kenntnis genommen",
            OutcomeCategory::Elected => "gewählt",
            OutcomeCategory::Other => "behandelt",
        }
    }

    fn adopted(&self, unanimously: bool) -> &'static str {
        if unanimously { "einstimmig angenommen" } else { "mehrheitlich angenommen" }
    }

    fn annex(&self, number: usize) -> String {
        format!("Anlage\u{a0}{number}")
    }

    fn report_attached(&self, annex: usize) -> String {
        format!("Der Bericht ist beigefügt (Anlage\u{a0}{annex}).")
    }

    fn files_attached(&self, files: &[(usize, String)]) -> String {
        let files: Vec<String> = files.iter().map(|(annex, name)| format!("{name} (Anlage\u{a0}{annex})")).collect();
        format!("Zu diesem Punkt {} beigefügt: {}.", if files.len() == 1 { "ist" } else { "sind" }, files.join("; "))
    }

    fn files_enclosed(&self, first: usize, last: usize) -> String {
        if first == last {
            format!("Nr.\u{a0}{first}: elektronische Datei; Verzeichnis mit Prüfsumme am Ende des Dokuments")
        } else {
            format!("Nr.\u{a0}{first}–{last}: elektronische Dateien; Verzeichnis mit Prüfsummen am Ende des Dokuments")
        }
    }

    fn files_explained(&self) -> &'static str {
        "Die Dateien liegen elektronisch bei; unverändert eingebettet sind sie in die PDF-Fassung dieser Niederschrift. Die Prüfsummen sind nach SHA-256 berechnet."
    }

    fn file_role(&self, role: Role) -> &'static str {
        match role {
            Role::Report => "Bericht",
            Role::Attachment => "Unterlage",
            Role::Snapshot => "Ausgangsdaten der Niederschrift",
        }
    }

    fn bytes(&self, bytes: u64) -> String {
        format!("{}\u{a0}{}", grouped(bytes, '.'), if bytes == 1 { "Byte" } else { "Bytes" })
    }

    fn closed(&self, time: Option<&str>) -> String {
        time.map_or_else(
            || "Die Tagesordnung ist erledigt. Die Sitzung wird geschlossen.".to_owned(),
            |time| format!("Die Tagesordnung ist erledigt. Die Sitzung wird um {time} geschlossen."),
        )
    }

    fn signs_initials_first(&self) -> bool {
        false
    }
}
