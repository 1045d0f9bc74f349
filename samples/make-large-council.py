#!/usr/bin/env python3
"""Writes samples/agendas/large-council.json: a budget session of an invented city with 120 questions.

The texts are put together from hand-written pieces; the seed is fixed, so that running it again gives the same file.
"""
import json
import pathlib
import random
from datetime import datetime, timedelta, timezone

rng = random.Random(2026)
zone = timezone(timedelta(hours=5))
opening = datetime(2026, 12, 17, 9, 0, tzinfo=zone)

surnames = (
    "Агапов В. Н.|Бакулина Е. В.|Веденеев С. П.|Глебова Т. А.|Долгих Р. И.|Евсеева О. М.|Жданов К. Ю.|Замятина Л. Д.|Ильин П. А.|"
    "Калашникова М. С.|Лаптев Г. Б.|Медведева Ю. Р.|Нестеров А. Ф.|Овчинникова Д. К.|Панкратов И. Э.|Рогозина Н. В.|Савельев М. О.|"
    "Терентьева А. Л.|Усольцев Д. Д.|Фомина В. Г.|Хлебников О. Т.|Цветкова И. П.|Чекмарёв Л. С.|Шубина К. Н.|Щукин Ф. А.|Юдина С. Е.|Яковлев Б. В."
).split("|")
committees = ["по бюджету", "по градостроительству", "по социальной политике", "по городскому хозяйству", "по местному самоуправлению"]
members = []
for at, name in enumerate(surnames, 1):
    if at == 1:
        position = "председатель городской Думы"
    elif at in (2, 3):
        position = "заместитель председателя городской Думы"
    elif at <= 8:
        position = f"председатель комитета {committees[at - 4]}"
    else:
        position = f"депутат по избирательному округу № {at}"
    members.append({"id": f"d{at:02}", "name": name, "position": position, "attendance": "present"})
late, left, absent = members[11], members[19], members[23]
late["presence"] = [{"from": (opening + timedelta(minutes=47)).isoformat()}]
left["presence"] = [{"to": (opening + timedelta(minutes=250)).isoformat()}]
absent["attendance"], absent["absenceReason"] = "absent", "болезнь"
members[16]["attendance"] = "remote"

invited = [
    {"id": "g1", "name": "Петухова Л. А.", "position": "начальник отдела обеспечения заседаний аппарата городской Думы"},
    {"id": "g2", "name": "Горшков Н. И.", "position": "первый заместитель главы администрации города"},
    {"id": "g3", "name": "Симонова Е. Ю.", "position": "директор департамента финансов"},
    {"id": "g4", "name": "Мельник А. В.", "position": "директор департамента имущества"},
    {"id": "g5", "name": "Кудряшова О. С.", "position": "директор департамента образования"},
    {"id": "g6", "name": "Рябов С. Г.", "position": "директор департамента городского хозяйства"},
    {"id": "g7", "name": "Лукина Т. В.", "position": "главный архитектор города"},
    {"id": "g8", "name": "Ширяев П. П.", "position": "председатель контрольно-счётной палаты"},
]

streets = "Береговая|Вишнёвая|Гончарная|Дальняя|Еловая|Заводская|Ключевая|Луговая|Мельничная|Набережная|Овражная|Полевая|Родниковая|Сосновая|Тенистая|Уральская|Ямская|Кузнечная|Рябиновая|Светлая".split("|")
squares = "Ремесленный|Гимназический|Солнечный|Каштановый|Школьный|Парковый|Купеческий|Речной|Липовый|Библиотечный|Вокзальный|Яблоневый|Каменный|Театральный".split("|")


def money(low, high):
    return f"{rng.randrange(low, high) * 10:,}".replace(",", " ") + " тыс. рублей"


def street():
    return f"ул. {rng.choice(streets)}"


def number():
    return rng.randrange(2, 96)


def repair():
    where, length, sum_ = street(), rng.randrange(3, 29) * 50, money(180, 960)
    return (
        f"О ремонте дорожного покрытия на участке: {where}, дома № {number()}–{number() + 96}",
        "g6",
        [f"доложил, что на участке длиной {length} м износ покрытия превышает {rng.randrange(60, 90)} %; за год поступило обращений жителей — {rng.randrange(9, 70)}. Стоимость работ по укрупнённым нормативам составляет {sum_}."],
        [f"Включить участок длиной {length} м в перечень объектов ремонта 2027 года.", f"Предусмотреть на выполнение работ {sum_} за счёт дорожного фонда."],
        "департамент городского хозяйства",
    )


def school():
    which, sum_ = rng.randrange(1, 48), money(90, 700)
    what = rng.choice(["замене оконных блоков", "ремонте кровли", "обновлении оборудования пищеблока", "устройстве пандуса и входной группы", "ремонте спортивного зала"])
    return (
        f"О {what} в школе № {which}",
        "g5",
        [f"сообщила о результатах обследования школы № {which}, число обучающихся — {rng.randrange(380, 1240)}. Работы нужно завершить до начала учебного года; потребность — {sum_}.",
         "Проектно-сметная документация имеется, заключение о достоверности стоимости получено."],
        [f"Выделить школе № {which} {sum_} в 2027 году.", "Завершить работы и представить отчёт комитету по социальной политике."],
        "департамент образования",
    )


def land():
    where, area = street(), rng.randrange(4, 60) * 25
    use = rng.choice(["для размещения детской площадки", "для строительства фельдшерского пункта", "под общественный сквер", "для размещения стоянки у поликлиники", "для устройства спортивной площадки"])
    return (
        f"О предоставлении земельного участка площадью {area} кв. м ({where}, {number()}) {use}",
        "g7",
        ["представила схему расположения участка. Публичные слушания состоялись, возражений от собственников соседних участков не поступило. Участок находится вне зон с особыми условиями использования."],
        [f"Согласовать предоставление земельного участка площадью {area} кв. м {use}.", "Подготовить проект постановления администрации города."],
        "департамент имущества",
    )


def lease():
    where, house, area = street(), number(), rng.randrange(24, 190)
    who = rng.choice(["совету ветеранов", "клубу юных техников", "городскому обществу инвалидов", "добровольной пожарной дружине", "школе приёмных родителей", "литературному объединению «Строка»"])
    return (
        f"О передаче в безвозмездное пользование помещения площадью {area} кв. м по адресу: {where}, д. {house}",
        "g4",
        [f"пояснил, что помещение пригодно к использованию, долгов по коммунальным платежам нет. Просьба передать его {who} поддержана комитетом по местному самоуправлению."],
        [f"Передать помещение по адресу: {where}, д. {house} — {who} сроком на {rng.choice(['три года', 'пять лет', 'семь лет'])}."],
        "департамент имущества",
    )


def lighting():
    where, poles, sum_ = street(), rng.randrange(8, 64), money(40, 260)
    return (
        f"Об устройстве наружного освещения: {where}",
        "g6",
        [f"доложил, что на улице предстоит установить опоры со светодиодными светильниками ({poles} шт.); ожидаемая экономия электроэнергии против прежних светильников — {rng.randrange(38, 64)} %."],
        [f"Включить устройство освещения (опор — {poles}) в программу «Светлый город».", f"Предусмотреть на эти цели {sum_}."],
        "департамент городского хозяйства",
    )


def transport():
    route = rng.randrange(2, 88)
    return (
        f"Об изменении схемы движения автобусного маршрута № {route}",
        "g6",
        [f"представил расчёт: с продлением маршрута № {route} до остановки «{rng.choice(streets)}» охват вырастет на {rng.randrange(2, 9)},{rng.randrange(1, 9)} тыс. жителей, интервал движения увеличится на {rng.randrange(2, 6)} мин."],
        [f"Поддержать продление маршрута № {route}.", "Провести опрос пассажиров через три месяца после изменения и доложить о его итогах."],
        "департамент городского хозяйства",
    )


def park():
    which, sum_ = rng.choice(squares), money(120, 640)
    return (
        f"О благоустройстве сквера «{which}»",
        "g7",
        [f"представила эскиз, отобранный по итогам голосования жителей: участвовало жителей — {rng.randrange(1, 9)} {rng.randrange(100, 999)}. Сохраняются все здоровые деревья, добавляются освещение и места для отдыха."],
        [f"Одобрить эскиз благоустройства сквера «{which}».", f"Предусмотреть на выполнение работ {sum_} с привлечением средств областного бюджета."],
        "главный архитектор города",
    )


def audit():
    what = rng.choice(["использования средств на питание школьников", "содержания мостов и путепроводов", "работы муниципальных библиотек", "учёта муниципального жилья", "расходов на вывоз снега", "закупок лекарств для детских поликлиник"])
    return (
        f"О результатах проверки {what} (квартал {rng.randrange(1, 5)}, объект № {number()})",
        "g8",
        [f"доложил, что проверены документы за {rng.choice(['шесть', 'девять', 'двенадцать'])} месяцев на сумму {money(900, 6000)}. Нецелевого использования средств не выявлено; отмечено нарушений порядка учёта — {rng.randrange(2, 9)}, из них устранено в ходе проверки — {rng.randrange(1, 3)}."],
        ["Принять информацию к сведению.", "Устранить оставшиеся нарушения и сообщить об этом контрольно-счётной палате."],
        "проверенные учреждения",
    )


def award():
    what = rng.choice(["коллектива городской типографии", "хора ветеранов «Надежда»", "работников водоканала", "учителей гимназии", "спасателей водной станции", "медицинских сестёр городской больницы", "коллектива краеведческого музея"])
    return (
        f"О награждении Почётной грамотой городской Думы {what} (представление № {rng.randrange(100, 400)})",
        "d06",
        [f"представила ходатайство комиссии по наградам: за добросовестный труд и в связи с {rng.choice(['двадцатилетием', 'сорокалетием', 'шестидесятилетием', 'столетием'])} со дня основания."],
        [f"Наградить Почётной грамотой городской Думы {what}."],
        None,
    )


def charter():
    law = rng.choice(["о порядке сдачи квалификационного экзамена", "о публичных слушаниях", "о старостах сельских населённых пунктов", "о территориальном общественном самоуправлении", "о бюджетном процессе", "о муниципальном контроле"])
    return (
        f"О внесении изменений в Положение {law} (редакция {rng.randrange(2, 15)})",
        "d08",
        ["пояснила, что изменения вызваны новой редакцией федерального закона и замечаниями прокуратуры города. Расходов бюджета проект не требует, антикоррупционная экспертиза проведена."],
        [f"Внести изменения в Положение {law}.", "Опубликовать решение в газете «Городские ведомости»."],
        None,
    )


def heating():
    where, length = street(), rng.randrange(4, 40) * 20
    return (
        f"О замене тепловых сетей: {where} ({length} м)",
        "g6",
        [f"сообщил, что за прошлый сезон на участке произошло повреждений — {rng.randrange(3, 12)}. Замена {length} м сетей позволит снизить потери тепла на {rng.randrange(9, 31)} %; работы предлагается выполнить с 15 мая по 30 августа 2027 г."],
        [f"Включить замену {length} м тепловых сетей в план ремонтов 2027 года.", "Известить жителей о сроках отключения горячей воды не позднее чем за десять дней."],
        "департамент городского хозяйства",
    )


def budget():
    code, sum_ = rng.randrange(100, 999), money(700, 9000)
    what = rng.choice(["на жилищно-коммунальное хозяйство", "на дополнительное образование", "на культуру", "на физическую культуру и спорт", "на охрану окружающей среды", "на молодёжную политику"])
    return (
        f"О распределении ассигнований {what} (строка {code} проекта бюджета)",
        "g3",
        [f"доложила, что к прошлому году расходы по строке {code} растут на {rng.randrange(2, 14)},{rng.randrange(1, 9)} % и составляют {sum_}. Поправки комитета по бюджету учтены."],
        [f"Утвердить ассигнования по строке {code} в размере {sum_}."],
        "департамент финансов",
    )


remarks = [
    "поддержал проект и попросил внести сроки в план контроля комитета.|поддержала проект и попросила внести сроки в план контроля комитета.",
    "спросил, учтены ли замечания жителей, поступившие на приёме 3 декабря. Получен ответ, что учтены полностью.|спросила, учтены ли замечания жителей, поступившие на приёме 3 декабря. Получен ответ, что учтены полностью.",
    "предложил рассмотреть возможность софинансирования из областного бюджета.|предложила рассмотреть возможность софинансирования из областного бюджета.",
    "обратил внимание на необходимость согласовать график работ с управляющими организациями.|обратила внимание на необходимость согласовать график работ с управляющими организациями.",
    "высказал сомнение в сроках и попросил докладывать о ходе исполнения ежеквартально.|высказала сомнение в сроках и попросила докладывать о ходе исполнения ежеквартально.",
    "отметил, что подобный опыт в соседнем районе оказался удачным.|отметила, что подобный опыт в соседнем районе оказался удачным.",
]


def said(member, variants):
    man, woman = variants.split("|")
    return {"speaker": member["id"], "text": woman if member["name"].split()[0].endswith("а") or member["name"].startswith("Долгих") else man}


kinds = [repair, school, land, lease, lighting, transport, park, audit, award, charter, heating, budget]
order = [kind for _ in range(10) for kind in kinds]
rng.shuffle(order)

questions = []
titles = set()
for at, kind in enumerate(order, 1):
    title, rapporteur, heard, decision, responsible = kind()
    while title in titles:
        title, rapporteur, heard, decision, responsible = kind()
    titles.add(title)
    start = opening + timedelta(minutes=5 + 3 * (at - 1))

    def here(member):
        if member["attendance"] == "absent":
            return False
        if member is late:
            return start >= opening + timedelta(minutes=47)
        if member is left:
            return start < opening + timedelta(minutes=250)
        return True

    question = {"id": f"q{at:03}", "order": at * 10, "number": str(at), "title": title, "status": rng.choice(["REPORT_SIGNED", "REPORT_SIGNED", "PROTECTED"]),
                "start": start.isoformat(), "rapporteur": rapporteur, "heard": heard}
    voters = [member for member in members if here(member)]
    if kind is lease and rng.random() < 0.3:
        recused = voters.pop(rng.randrange(8, len(voters)))
        question["recusals"] = [{"member": recused["id"], "reason": "состоит в организации, которой передаётся помещение"}]
    speakers = rng.sample([member for member in voters if member["id"] != rapporteur], rng.choice([0, 1, 1, 2, 2, 3]))
    if speakers:
        question["discussed"] = [said(speaker, text) for speaker, text in zip(speakers, rng.sample(remarks, len(speakers)))]
    if at in (37, 84):
        question["outcome"] = {"category": "withdrawn", "words": "вопрос снят с повестки дня по просьбе администрации города"}
        questions.append(question)
        continue
    points = [{"text": text} for text in decision]
    if responsible:
        points[-1]["responsible"] = responsible
        points[-1]["due"] = (datetime(2027, 1, 15) + timedelta(days=rng.randrange(0, 230))).date().isoformat()
    question["decision"] = points
    against = rng.choice([0, 0, 0, 0, 1, 2, 3])
    abstained = rng.choice([0, 0, 0, 1, 2])
    vote = {"ballot": "open", "for": len(voters) - against - abstained, "against": against, "abstained": abstained}
    if against + abstained >= 3:
        dissenters = rng.sample(voters[3:], against + abstained)
        choices = {member["id"]: "against" if i < against else "abstained" for i, member in enumerate(dissenters)}
        vote["named"] = [{"member": member["id"], "choice": choices.get(member["id"], "for")} for member in voters]
    question["vote"] = vote
    if kind is audit:
        question["outcome"] = {"category": "noted"}
    elif against + abstained == 0:
        question["outcome"] = {"category": "adopted", "words": "решение принято единогласно"}
    else:
        question["outcome"] = {"category": "adopted", "words": "решение принято большинством голосов"}
    questions.append(question)

agenda = {
    "agendaId": "large-council",
    "revision": "31",
    "title": "Сорок второе очередное заседание (бюджетное)",
    "body": {"organization": "Городская Дума города Верхнереченска", "name": "городской Думы города Верхнереченска"},
    "language": "ru",
    "place": "г. Верхнереченск",
    "timeZone": "Asia/Yekaterinburg",
    "start": opening.isoformat(),
    "end": (opening + timedelta(minutes=5 + 3 * len(questions) + 10)).isoformat(),
    "chair": "d01",
    "secretary": "g1",
    "members": members,
    "invited": invited,
    "rules": {"quorum": "twoThirds", "majority": "absolute"},
    "questions": questions,
}
target = pathlib.Path(__file__).parent / "agendas" / "large-council.json"
target.write_text(json.dumps(agenda, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
