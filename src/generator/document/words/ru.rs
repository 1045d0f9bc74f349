//! Russian, as clerks write it (ГОСТ Р 7.0.97-2016 and the sample forms made after it).

use super::{Labels, Present, Quorum, Words, grouped, listed};
use crate::{
    domain::agenda::{Ballot, OutcomeCategory, Share, Vote},
    generator::document::{model::Role, text::sentence},
};
use jiff::civil::{Date, Time};
use std::fmt::Write as _;

pub(super) struct Russian;

const MONTHS: [&str; 12] =
    ["января", "февраля", "марта", "апреля", "мая", "июня", "июля", "августа", "сентября", "октября", "ноября", "декабря"];

static LABELS: Labels = Labels {
    kind: "ПРОТОКОЛ",
    opened: "Время проведения",
    chair: "Председательствующий",
    secretary: "Секретарь",
    tellers: "Подсчёт голосов",
    absent: "Отсутствовали",
    invited: "Приглашённые",
    quorum: "Кворум",
    agenda: "ПОВЕСТКА ДНЯ",
    rapporteur: "Докладчик",
    heard: "СЛУШАЛИ",
    discussed: "ВЫСТУПИЛИ",
    decided: "РЕШИЛИ",
    voted: "Голосовали",
    secret_ballot: "Тайное голосование",
    named_votes: "Поимённое голосование",
    choice: "Голос",
    count: "Число",
    members: "Фамилии",
    in_favour: "За",
    against: "Против",
    abstained: "Воздержались",
    not_voted: "Не голосовали",
    outcome: "Итог",
    dissent: "Особое мнение",
    annexes: "Приложения",
    attendance_list: "Список присутствовавших",
    file_list: "Перечень приложенных файлов",
    annex_number: "№",
    question: "Вопрос",
    file: "Файл",
    size: "Размер",
    remote: "дистанционно",
    without_vote: "без права голоса",
    closed_session: "Вопрос рассмотрен на закрытой части заседания.",
    no_reason: "причина не указана",
};

/// The Russian plural: 1 голос, 2 голоса, 5 голосов.
fn plural(number: usize, one: &'static str, few: &'static str, many: &'static str) -> &'static str {
    match (number % 10, number % 100) {
        (1, rest) if rest != 11 => one,
        (2..=4, rest) if !(12..=14).contains(&rest) => few,
        _ => many,
    }
}

/// «Присутствует 21», but «присутствуют 22».
fn are(number: usize, one: &'static str, many: &'static str) -> &'static str {
    plural(number, one, many, many)
}

fn out_of(present: Present) -> String {
    let Present { now, total } = present;
    format!("{} {now}\u{a0}{} из\u{a0}{total}", are(now, "Присутствует", "Присутствуют"), plural(now, "член", "члена", "членов"))
}

impl Words for Russian {
    fn labels(&self) -> &'static Labels {
        &LABELS
    }

    fn subject(&self, body: &str) -> String {
        format!("заседания {body}")
    }

    fn number(&self, number: &str) -> String {
        format!("№\u{a0}{number}")
    }

    fn title(&self, number: &str, body: &str, date: &str) -> String {
        format!("Протокол № {number} заседания {body} от {date}")
    }

    fn date(&self, date: Date) -> String {
        let month = usize::from(date.month().unsigned_abs()) - 1;
        format!("{}\u{a0}{}\u{a0}{}\u{a0}г.", date.day(), MONTHS[month], date.year())
    }

    fn time(&self, time: Time) -> String {
        format!("{:02}:{:02}", time.hour(), time.minute())
    }

    fn sitting(&self, start: &str, end: Option<&str>) -> String {
        end.map_or_else(|| format!("начало в\u{a0}{start}"), |end| format!("начало в\u{a0}{start}, окончание в\u{a0}{end}"))
    }

    fn attended_label(&self, now: usize) -> &'static str {
        are(now, "Присутствовал", "Присутствовали")
    }

    fn attended(&self, Present { now, total }: Present) -> String {
        format!("{now}\u{a0}{} из\u{a0}{total}", plural(now, "человек", "человека", "человек"))
    }

    fn list_in_annex(&self, annex: usize) -> String {
        format!("список прилагается (приложение\u{a0}№\u{a0}{annex})")
    }

    fn since(&self, time: &str) -> String {
        format!("с\u{a0}{time}")
    }

    fn until(&self, time: &str) -> String {
        format!("до\u{a0}{time}")
    }

    fn quorum(&self, quorum: Quorum) -> String {
        let Quorum { entitled, present, share, needed } = quorum;
        let share = match share {
            Share::MoreThanHalf => "более половины, то есть не менее ",
            Share::Half => "не менее половины, то есть не менее ",
            Share::TwoThirds => "не менее двух третей, то есть не менее ",
            Share::AtLeast(_) => "не менее ",
        };
        let verdict = if quorum.is_reached() { "Кворум имеется." } else { "Кворума нет." };
        format!(
            "из\u{a0}{entitled}\u{a0}{} с\u{a0}правом голоса к\u{a0}открытию заседания {} {present}; для правомочности требуется {share}{needed}. {verdict}",
            plural(entitled, "члена", "членов", "членов"),
            are(present, "присутствует", "присутствуют"),
        )
    }

    fn arrives(&self, time: &str, names: &[String], present: Present) -> String {
        let verb = if names.len() == 1 {
            "к\u{a0}участию в\u{a0}заседании приступает"
        } else {
            "к\u{a0}участию в\u{a0}заседании приступают"
        };
        format!("В\u{a0}{time} {verb} {} {}.", sentence(&listed(names, "и")), out_of(present))
    }

    fn leaves(&self, time: &str, names: &[String], present: Present) -> String {
        let verb = if names.len() == 1 { "заседание покидает" } else { "заседание покидают" };
        format!("В\u{a0}{time} {verb} {} {}.", sentence(&listed(names, "и")), out_of(present))
    }

    fn recused(&self, name: &str, reason: Option<&str>) -> String {
        let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        format!("В\u{a0}рассмотрении вопроса и\u{a0}голосовании не\u{a0}участвует {name}{reason}.")
    }

    fn due(&self, date: &str) -> String {
        format!("Срок — до\u{a0}{date}")
    }

    fn responsible(&self, who: &str) -> String {
        format!("Ответственный — {who}")
    }

    fn voted(&self, vote: &Vote) -> String {
        let mut text = format!("за\u{a0}— {}, против\u{a0}— {}", vote.in_favour, vote.against);
        if vote.ballot == Ballot::Open || vote.abstained > 0 {
            let _ = write!(text, ", воздержались\u{a0}— {}", vote.abstained);
        }
        if vote.not_voted > 0 {
            let _ = write!(text, ", не\u{a0}голосовали\u{a0}— {}", vote.not_voted);
        }
        text + "."
    }

    fn papers(&self, vote: &Vote) -> Option<String> {
        let papers = vote.papers.as_ref()?;
        Some(format!(
            "выдано бюллетеней\u{a0}— {}, обнаружено в\u{a0}урне\u{a0}— {}, не\u{a0}возвращено\u{a0}— {}, признано недействительными\u{a0}— {}.",
            papers.issued, papers.found, papers.not_returned, papers.invalid
        ))
    }

    fn outcome(&self, category: OutcomeCategory) -> &'static str {
        match category {
            OutcomeCategory::Adopted => "решение принято",
            OutcomeCategory::Rejected => "решение не\u{a0}принято",
            OutcomeCategory::Postponed => "рассмотрение вопроса перенесено",
            OutcomeCategory::Withdrawn => "вопрос снят с\u{a0}повестки дня",
            OutcomeCategory::Noted => "информация принята к\u{a0}сведению",
            OutcomeCategory::Elected => "избрание состоялось",
            OutcomeCategory::Other => "вопрос рассмотрен",
        }
    }

    fn adopted(&self, unanimously: bool) -> &'static str {
        if unanimously {
            "решение принято единогласно"
        } else {
            "решение принято большинством голосов"
        }
    }

    fn annex(&self, number: usize) -> String {
        format!("Приложение\u{a0}№\u{a0}{number}")
    }

    fn report_attached(&self, annex: usize) -> String {
        format!("Доклад прилагается (приложение\u{a0}№\u{a0}{annex}).")
    }

    fn files_attached(&self, files: &[(usize, String)]) -> String {
        let files: Vec<String> = files.iter().map(|(annex, name)| format!("{name} (приложение\u{a0}№\u{a0}{annex})")).collect();
        format!("К\u{a0}вопросу {}: {}.", if files.len() == 1 { "прилагается" } else { "прилагаются" }, files.join("; "))
    }

    fn files_enclosed(&self, first: usize, last: usize) -> String {
        let which = if first == last {
            format!("№\u{a0}{first}\u{a0}— файл")
        } else {
            format!("№\u{a0}{first}–{last}\u{a0}— файлы")
        };
        format!("{which} в\u{a0}электронном виде; перечень с\u{a0}контрольными суммами\u{a0}— в\u{a0}конце документа")
    }

    fn files_explained(&self) -> &'static str {
        "Файлы прилагаются в\u{a0}электронном виде; без изменений они вложены в\u{a0}экземпляр протокола в\u{a0}формате PDF. Контрольные суммы вычислены по алгоритму SHA-256."
    }

    fn file_role(&self, role: Role) -> &'static str {
        match role {
            Role::Report => "доклад",
            Role::Attachment => "материал",
            Role::Snapshot => "исходные данные протокола",
        }
    }

    fn bytes(&self, bytes: u64) -> String {
        let last = usize::try_from(bytes % 100).unwrap_or(0);
        format!("{}\u{a0}{}", grouped(bytes, '\u{a0}'), plural(last, "байт", "байта", "байт"))
    }

    fn closed(&self, time: Option<&str>) -> String {
        time.map_or_else(
            || "Повестка дня исчерпана. Заседание объявлено закрытым.".to_owned(),
            |time| format!("Повестка дня исчерпана. Заседание объявлено закрытым в\u{a0}{time}."),
        )
    }

    fn signs_initials_first(&self) -> bool {
        true
    }
}
