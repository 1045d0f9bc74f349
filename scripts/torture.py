"""Torture: load, faults, reconciliation. Only Python's standard library, PostgreSQL's programs and nats-server; see torture.sh.

The plan of faults and what each client sends follow from the seed. When they meet does not: that is up to the machine.
"""

import argparse
import collections
import glob
import hashlib
import http.client
import json
import os
import platform
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid

LEASE = 5.0
AGENDAS = 120
TERMINAL = ("COMPLETED", "FAILED", "CANCELLED")
started_at = time.monotonic()


def say(text):
    print(f"{time.monotonic() - started_at:7.1f} s  {text}", flush=True)


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def until(what, limit, condition):
    """Waits for a condition; ends the run with words if it does not come."""
    end = time.monotonic() + limit
    while not condition():
        if time.monotonic() > end:
            raise SystemExit(f"after {limit} s still not: {what}")
        time.sleep(0.1)


# The parts


class Postgres:
    """A cluster of its own. It does not fsync, because the machine is not switched off, but it commits before it answers."""

    def __init__(self, folder):
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))[-1]
        self.folder, self.port = os.path.join(folder, "postgres"), free_port()
        # PostgreSQL refuses to run as root.
        self.user = {"user": "postgres", "group": "postgres", "extra_groups": []} if os.geteuid() == 0 else {}
        os.makedirs(self.folder)
        if self.user:
            shutil.chown(self.folder, "postgres", "postgres")
        self.run("initdb", "-D", self.data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        self.start()
        self.run("psql", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-c", "CREATE DATABASE torture")
        self.url = f"postgres://postgres@127.0.0.1:{self.port}/torture"

    @property
    def data(self):
        return os.path.join(self.folder, "data")

    def run(self, program, *arguments):
        command = [os.path.join(self.bin, program), *arguments]
        return subprocess.run(command, check=True, cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, **self.user)

    def start(self):
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200"
        self.run("pg_ctl", "-D", self.data, "-l", os.path.join(self.folder, "log"), "-o", options, "-w", "-t", "60", "start")

    def stop(self, mode):
        self.run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def rows(self, query):
        """JSON a row, so that no separator can be met in a value."""
        wrapped = f"SELECT row_to_json(r) FROM ({query}) r"
        command = [os.path.join(self.bin, "psql"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-At", "-c", wrapped, "torture"]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()
        return [json.loads(line) for line in output.splitlines()]


class Sqlite:
    def __init__(self, folder):
        self.path = os.path.join(folder, "data", "protocol-bridge.db")

    def rows(self, query):
        with sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=30) as connection:
            connection.row_factory = sqlite3.Row

            def plain(value):
                return str(uuid.UUID(bytes=value)) if isinstance(value, bytes) and len(value) == 16 else value

            return [{key: plain(row[key]) for key in row.keys()} for row in connection.execute(query)]


class Nats:
    def __init__(self, folder):
        self.folder, self.port, self.monitor = os.path.join(folder, "nats"), free_port(), free_port()
        self.server = None
        self.start()

    def start(self):
        command = ["nats-server", "-js", "-a", "127.0.0.1", "-p", str(self.port), "-m", str(self.monitor), "-sd", self.folder, "-l", self.folder + ".log"]
        self.server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill(self):
        self.server.kill()
        self.server.wait()

    def forget(self):
        shutil.rmtree(self.folder, ignore_errors=True)

    def stored(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.monitor, timeout=5)
        connection.request("GET", "/jsz")
        return json.load(connection.getresponse())["messages"]


class Node:
    """One process of the service. It keeps its port over all restarts, so that clients find it again."""

    def __init__(self, number, binary, folder, environment):
        self.number, self.binary, self.port = number, binary, free_port()
        self.log = open(os.path.join(folder, f"node-{number}.log"), "ab")
        self.folder = folder
        self.environment = {**environment, "PROTOCOL_BRIDGE__HTTP__LISTEN": f"127.0.0.1:{self.port}"}
        self.process = None
        self.lock = threading.Lock()

    def start(self):
        command = [self.binary, "serve"]
        self.process = subprocess.Popen(
            command, env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.log
        )

    def signal(self, number):
        self.process.send_signal(number)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def ready(self):
        try:
            return self.request("GET", "/readyz", timeout=2)[0] == 200
        except OSError:
            return False

    def request(self, method, path, body=None, headers=None, timeout=10):
        """Status, headers, JSON; OSError when no answer came, which says nothing about what was done."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            text = None if body is None else json.dumps(body)
            kind = {} if text is None else {"Content-Type": "application/json"}
            connection.request(method, path, text, {**kind, **(headers or {})})
            answer = connection.getresponse()
            content = answer.read()
            try:
                return answer.status, answer.headers, json.loads(content) if content else None
            except ValueError:
                return answer.status, answer.headers, None
        except http.client.HTTPException as error:
            raise OSError(str(error)) from error
        finally:
            connection.close()


# The load


class Notes:
    """What clients were told: the other side of the reconciliation."""

    def __init__(self):
        self.lock = threading.Lock()
        self.accepted = {}  # task id -> how it was submitted
        self.unknown = 0  # submissions whose answer never came
        self.keys = collections.defaultdict(set)  # key -> task ids told
        self.protocols = {}  # protocol id -> agenda, from v1's answers
        self.last = {}  # task id -> terminal status once told
        self.differences = []
        self.counts = collections.Counter()
        self.statuses = collections.Counter()
        self.letters = collections.deque(maxlen=200)

    def differ(self, text):
        with self.lock:
            self.differences.append(text)
        say(f"DIFFERENCE {text}")

    def count(self, name):
        with self.lock:
            self.counts[name] += 1

    def accept(self, task, how, key=None):
        with self.lock:
            self.accepted.setdefault(task, how)
            if key:
                self.keys[key].add(task)


class Client(threading.Thread):
    def __init__(self, number, run, seed):
        super().__init__(daemon=True)
        self.number, self.run_, self.random = number, run, random.Random(f"{seed}-{number}")
        self.own = collections.deque(maxlen=300)

    def run(self):
        actions = [
            (30, self.demo_with_key),
            (14, self.demo),
            (12, self.demo_that_fails),
            (18, self.protocol),
            (6, self.merge),
            (6, self.cancel),
            (6, self.replay),
            (25, self.look),
        ]
        weights, functions = zip(*actions)
        while not self.run_.stop_load.is_set():
            action = self.random.choices(functions, weights)[0]
            try:
                action()
            except OSError:
                self.run_.notes.count("no answer")
            except Exception as error:  # a client that dies unseen would make the run easier
                self.run_.notes.differ(f"client {self.number} failed in {action.__name__}: {error!r}")
            self.run_.stop_load.wait(self.random.uniform(0.1, self.run_.pause))

    def node(self):
        return self.random.choice(self.run_.nodes)

    def submit(self, node, path, body, headers, how, key=None):
        """One try; answers the task's id if it was accepted."""
        notes = self.run_.notes
        try:
            status, _, answer = node.request("POST", path, body, headers)
        except OSError:
            with notes.lock:
                notes.unknown += 1
            raise
        with notes.lock:
            notes.statuses[f"{how} {status}"] += 1
        if status == 202:
            notes.accept(answer["taskId"], how, key)
            self.own.append(answer["taskId"])
            return answer["taskId"]
        if status >= 500 and status != 503:
            notes.differ(f"{how}: status {status}: {answer}")
        return None

    def demo_with_key(self):
        """Repeats the same key, on any node, until it is accepted: the task must be one."""
        key = f"{self.number}-{self.random.getrandbits(64):x}"
        body = {"kind": "demo", "payload": {"sleepMs": self.random.choice((0, 0, 0, 20, 100, 500))}}
        wanted, told = self.random.choice((1, 1, 2)), 0
        for _ in range(30):
            try:
                if self.submit(self.node(), "/api/tasks", body, {"Idempotency-Key": key}, "key", key):
                    told += 1
            except OSError:
                pass
            if told >= wanted or self.run_.stop_load.is_set():
                return
            if not told:
                time.sleep(0.5)

    def demo(self):
        self.submit(self.node(), "/api/tasks", {"kind": "demo", "payload": {"sleepMs": self.random.randrange(0, 2500)}}, {}, "demo")

    def demo_that_fails(self):
        until_claim = self.random.choice((2, 3, 3, 9))
        self.submit(self.node(), "/api/tasks", {"kind": "demo", "payload": {"failUntilAttempt": until_claim}}, {}, "failing")

    def agenda(self):
        return f"council-{self.random.randrange(AGENDAS)}" if self.random.random() > 0.03 else f"unknown-{self.random.randrange(20)}"

    def protocol(self):
        if self.random.random() < 0.2:
            # Corrected by its secretary: the next protocol of it is another one.
            self.run_.write_agenda(self.random.randrange(AGENDAS), f"{self.random.getrandbits(32):x}")
        key = {"Idempotency-Key": f"p{self.random.getrandbits(64):x}"} if self.random.random() < 0.5 else {}
        self.submit(self.node(), "/task", {"agendaId": self.agenda()}, key, "protocol")

    def merge(self):
        agenda, notes = self.agenda(), self.run_.notes
        try:
            status, headers, answer = self.node().request(
                "POST", f"/api/v1/protocol/merge/byAgenda/{agenda}", None, {"Prefer": "wait=25", "User-Agent": "torture/1"}, timeout=40
            )
        except OSError:
            with notes.lock:
                notes.unknown += 1
            raise
        with notes.lock:
            notes.statuses[f"v1 {status}"] += 1
        if headers.get("Task-Id"):
            notes.accept(headers["Task-Id"], "v1")
        if status == 200:
            with notes.lock:
                notes.protocols[answer["protocolId"]] = agenda
        elif status in (503, 504) and answer is None:
            notes.differ(f"v1: {status} without a problem")
        elif status == 404 and not agenda.startswith("unknown"):
            notes.differ(f"v1: {agenda} is said to be unknown")
        elif status not in (404, 409, 500, 503, 504):
            notes.differ(f"v1: status {status}: {answer}")

    def some(self):
        return self.random.choice(self.own) if self.own else None

    def cancel(self):
        """One that may have ended long ago, or one that has just been accepted, on another node."""
        task = self.some()
        if self.random.random() < 0.6:
            body = {"kind": "demo", "payload": {"sleepMs": self.random.choice((0, 50, 3000))}}
            task = self.submit(self.node(), "/api/tasks", body, {}, "to cancel")
            time.sleep(self.random.uniform(0, 0.3))
        if task:
            status, _, answer = self.node().request("DELETE", f"/task/{task}")
            with self.run_.notes.lock:
                self.run_.notes.statuses[f"cancel {status}"] += 1
            if status not in (200, 202, 409, 503):
                self.run_.notes.differ(f"cancel of {task}: status {status}: {answer}")

    def replay(self):
        node = self.node()
        status, _, answer = node.request("GET", "/api/dead-letters?limit=50")
        if status != 200:
            return
        letters = [letter for letter in answer["items"] if not letter["replayedAt"] and letter["reason"] != "agenda-not-found"]
        if letters:
            letter = self.random.choice(letters)
            status, _, answer = node.request("POST", f"/api/dead-letters/{letter['deadLetterId']}/replay")
            with self.run_.notes.lock:
                self.run_.notes.statuses[f"replay {status}"] += 1
            if status not in (200, 202, 409, 503):
                self.run_.notes.differ(f"replay: status {status}: {answer}")

    def look(self):
        task, notes = self.some(), self.run_.notes
        if not task:
            return
        path = self.random.choice((f"/task/{task}/status", f"/api/tasks/{task}"))
        status, _, answer = self.node().request("GET", path)
        if status == 200:
            with notes.lock:
                before = notes.last.get(task)
                notes.last[task] = answer["status"]
            # A failed task may be replayed; nothing else may come back.
            if before in ("COMPLETED", "CANCELLED") and answer["status"] != before:
                notes.differ(f"{task} was {before} and is {answer['status']}")
        elif status != 503:
            notes.differ(f"{task} was accepted and its look-up answers {status}: {answer}")


# The faults


class Chaos(threading.Thread):
    def __init__(self, run, seed):
        super().__init__(daemon=True)
        self.run_, self.random = run, random.Random(f"{seed}-chaos")
        self.done = collections.Counter()

    def plan(self):
        """So many in ten minutes; a shorter run has its part of them."""
        each = {"kill": 34, "stop": 15, "drain": 6}
        if not self.run_.sqlite:
            each.update({"postgres": 8, "nats": 8})
        part = self.run_.minutes / 10
        plan = [name for name, count in each.items() for _ in range(max(1, round(count * part)))]
        self.random.shuffle(plan)
        return plan

    def run(self):
        plan = self.plan()
        for place, fault in enumerate(plan):
            due = started_at + self.run_.warm + (self.run_.minutes * 60) * (place + 0.5) / len(plan)
            self.run_.stop_chaos.wait(max(0.0, due - time.monotonic()))
            if self.run_.stop_chaos.is_set():
                return
            try:
                getattr(self, fault)()
            except Exception as error:
                self.run_.notes.differ(f"the fault {fault} could not be done: {error!r}")
            self.done[fault] += 1

    def kill(self):
        node = self.random.choice(self.run_.nodes)
        away = self.random.uniform(0, LEASE * 1.2)
        say(f"kill -9 node {node.number}, back in {away:.1f} s")
        self.apart(node, lambda: (node.kill(), self.sleep(away), node.start()))

    def stop(self):
        node = self.random.choice(self.run_.nodes)
        away = self.random.uniform(LEASE * 0.5, LEASE * 3)
        say(f"stop node {node.number} for {away:.1f} s")
        self.apart(node, lambda: (node.signal(signal.SIGSTOP), self.sleep(away), node.signal(signal.SIGCONT)))

    def drain(self):
        node = self.random.choice(self.run_.nodes)
        say(f"drain node {node.number}")
        self.apart(node, lambda: (node.signal(signal.SIGTERM), self.ended(node), node.start()))

    def ended(self, node):
        try:
            node.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self.run_.notes.differ(f"node {node.number} does not end after SIGTERM")
            node.kill()

    def postgres(self):
        mode, away = self.random.choice(("immediate", "fast")), self.random.uniform(0, 8)
        say(f"restart PostgreSQL ({mode}), back in {away:.1f} s")
        self.run_.database.stop(mode)
        self.sleep(away)
        self.run_.database.start()

    def nats(self):
        lost, away = self.random.random() < 0.4, self.random.uniform(0, 8)
        say(f"kill NATS{' and all it stored' if lost else ''}, back in {away:.1f} s")
        self.run_.nats.kill()
        if lost:
            self.run_.nats.forget()
        self.sleep(away)
        self.run_.nats.start()

    def apart(self, node, work):
        """Faults overlap, but one node has one at a time."""

        def locked():
            with node.lock:
                try:
                    work()
                except Exception as error:
                    self.run_.notes.differ(f"node {node.number}: {error!r}")

        thread = threading.Thread(target=locked, daemon=True)
        thread.start()
        self.run_.faults.append(thread)

    def sleep(self, seconds):
        time.sleep(seconds)


# The run


class Run:
    def __init__(self, arguments):
        self.sqlite, self.minutes = arguments.sqlite, arguments.minutes
        self.folder = tempfile.mkdtemp(prefix="protocol-bridge-torture-")
        os.chmod(self.folder, 0o755)
        self.notes, self.stop_load, self.stop_chaos, self.faults = Notes(), threading.Event(), threading.Event(), []
        self.warm, self.pause = 3.0, arguments.pause
        self.write_agendas()
        self.nats = None if self.sqlite else Nats(self.folder)
        self.database = Sqlite(self.folder) if self.sqlite else Postgres(self.folder)
        self.documents = os.path.join(self.folder, "documents")
        environment = {
            "DATA_DIR": os.path.join(self.folder, "data"),
            "DOCUMENTS__STORE": self.documents,
            "AGENDA__SOURCE": os.path.join(self.folder, "agendas"),
            "AGENDA__READY_GRACE": "0s",
            "ENGINE__DEMO": "true",
            "ENGINE__LEASE": f"{LEASE:.0f}s",
            "ENGINE__HEARTBEAT": f"{LEASE * 320:.0f}ms",
            "ENGINE__RETRY_BASE": "300ms",
            "ENGINE__MAX_RUNNING": "16",
            "SHUTDOWN__ANNOUNCE": "0s",
            "SHUTDOWN__GRACE": "2s",
            "SHUTDOWN__WAITER_GRACE": "2s",
            "TELEMETRY__FORMAT": "json",
        }
        if not self.sqlite:
            environment.update(
                {
                    "DATABASE__URL": self.database.url,
                    "DATABASE__MAX_CONNECTIONS": "10",
                    "ENGINE__TRANSPORT": f"nats://127.0.0.1:{self.nats.port}",
                }
            )
        environment = {f"PROTOCOL_BRIDGE__{key}": value for key, value in environment.items()}
        environment["PATH"] = os.environ["PATH"]
        self.nodes = [Node(number, arguments.binary, self.folder, environment) for number in range(1 if self.sqlite else arguments.nodes)]
        self.chaos = Chaos(self, arguments.seed)
        self.clients = [Client(number, self, arguments.seed) for number in range(arguments.clients)]

    def write_agendas(self):
        os.makedirs(os.path.join(self.folder, "agendas"))
        here = os.path.dirname(os.path.abspath(__file__))
        with open(os.path.join(here, "..", "samples", "agendas", "allotments-2026.json"), encoding="utf-8") as file:
            self.sample = json.load(file)
        self.sample.pop("number", None)
        for number in range(AGENDAS):
            self.write_agenda(number, "first")

    def write_agenda(self, number, edition):
        """Small ones, all alike but for their id and title; replaced as a whole, so that nobody reads half of one."""
        agenda = {**self.sample, "agendaId": f"council-{number}", "title": f"{self.sample['title']} ({edition})"}
        path = os.path.join(self.folder, "agendas", f"council-{number}.json")
        unfinished = os.path.join(self.folder, f"agenda-{number}-{edition}")
        with open(unfinished, "w", encoding="utf-8") as file:
            json.dump(agenda, file, ensure_ascii=False)
        os.replace(unfinished, path)

    def go(self):
        for node in self.nodes:
            node.start()
        until("all nodes are ready", 60, lambda: all(node.ready() for node in self.nodes))
        global started_at
        started_at = time.monotonic()
        for thread in [*self.clients, self.chaos]:
            thread.start()
        self.stop_load.wait(self.warm + self.minutes * 60)
        self.stop_chaos.set()
        self.chaos.join(60)
        self.stop_load.set()
        for thread in [*self.clients, *self.faults]:
            thread.join(90)
        say("load and faults are over; waiting until nothing is active")
        until("all nodes are ready again", 120, lambda: all(node.ready() for node in self.nodes))
        calm = time.monotonic()
        active = "SELECT COUNT(*) AS n FROM task WHERE status IN ('PENDING', 'IN_PROGRESS')"
        end = calm + 180
        while self.database.rows(active)[0]["n"] and time.monotonic() < end:
            time.sleep(0.5)
        say(f"calm after {time.monotonic() - calm:.1f} s")
        self.reconcile()

    def reconcile(self):
        notes, rows, differ = self.notes, self.database.rows, self.notes.differ
        none = lambda what, query: [differ(f"{what}: {row}") for row in rows(query)]

        tasks = {row["id"]: row for row in rows("SELECT id, kind, agenda_id, status, claim_no, protocol_id FROM task")}
        by_status = collections.Counter(row["status"] for row in tasks.values())
        for task, row in tasks.items():
            if row["status"] not in TERMINAL:
                differ(f"{task} is still {row['status']}")
        lost = [task for task in notes.accepted if task not in tasks]
        for task in lost:
            differ(f"{task} was accepted ({notes.accepted[task]}) and is not there")
        extra = len(tasks) - (len(notes.accepted) - len(lost))
        if extra > notes.unknown:
            differ(f"{extra} tasks nobody was told of, and only {notes.unknown} submissions without an answer")
        for key, told in notes.keys.items():
            if len(told) > 1:
                differ(f"the key {key} led to {sorted(told)}")
        for task, status in notes.last.items():
            now = tasks.get(task, {}).get("status")
            if status in ("COMPLETED", "CANCELLED") and now != status:
                differ(f"{task} was told to be {status} and is {now}")
        stored = {row["id"]: row["agenda_id"] for row in rows("SELECT id, agenda_id FROM protocol")}
        for protocol, agenda in notes.protocols.items():
            if stored.get(protocol) != agenda:
                differ(f"v1 answered with protocol {protocol} of {agenda}, which is not there")

        none("a message of no task", "SELECT message_id FROM outbox WHERE task_id NOT IN (SELECT id FROM task)")
        # Its row in the outbox may be gone: a task that ends before its message is marked takes the message with it.
        none("a message taken for no task", "SELECT message_id FROM inbox WHERE task_id NOT IN (SELECT id FROM task)")
        terminal = "('COMPLETED', 'FAILED', 'CANCELLED')"
        none(
            "unsent, and its task has ended",
            f"SELECT message_id, task_id FROM outbox JOIN task ON task.id = task_id WHERE published_us IS NULL AND status IN {terminal}",
        )
        none("an attempt that never ended", "SELECT id, task_id, claim_no FROM attempt WHERE ended_us IS NULL")
        none(
            "not one successful attempt",
            "SELECT t.id, t.status, COUNT(a.id) AS n FROM task t LEFT JOIN attempt a ON a.task_id = t.id AND a.outcome = 'completed' "
            "GROUP BY t.id, t.status HAVING COUNT(a.id) <> CASE WHEN t.status = 'COMPLETED' THEN 1 ELSE 0 END",
        )
        none(
            "attempts and claims differ",
            "SELECT t.id, t.claim_no, COUNT(a.id) AS n FROM task t LEFT JOIN attempt a ON a.task_id = t.id GROUP BY t.id, t.claim_no "
            "HAVING COUNT(a.id) <> t.claim_no",
        )
        none(
            "events and finishes differ",
            "SELECT t.id, t.status, (SELECT COUNT(*) FROM event e WHERE e.task_id = t.id) AS events, "
            "(SELECT COUNT(*) FROM dead_letter d WHERE d.task_id = t.id AND d.replayed_us IS NOT NULL) AS replays FROM task t "
            f"WHERE t.kind = 'protocol' AND t.status IN {terminal} AND (SELECT COUNT(*) FROM event e WHERE e.task_id = t.id) <> "
            "1 + (SELECT COUNT(*) FROM dead_letter d WHERE d.task_id = t.id AND d.replayed_us IS NOT NULL)",
        )
        none("an event of no protocol task", "SELECT id FROM event WHERE task_id NOT IN (SELECT id FROM task WHERE kind = 'protocol')")
        none(
            "failed without one open dead letter, or the other way round",
            "SELECT t.id, t.status, COUNT(d.id) AS n FROM task t LEFT JOIN dead_letter d ON d.task_id = t.id AND d.replayed_us IS NULL "
            "AND d.dismissed_us IS NULL GROUP BY t.id, t.status HAVING COUNT(d.id) <> CASE WHEN t.status = 'FAILED' THEN 1 ELSE 0 END",
        )
        none(
            "completed without a protocol, or with another agenda's",
            "SELECT t.id, t.protocol_id FROM task t LEFT JOIN protocol p ON p.id = t.protocol_id "
            "WHERE t.kind = 'protocol' AND t.status = 'COMPLETED' AND (p.id IS NULL OR p.agenda_id <> t.agenda_id)",
        )
        none(
            "a protocol that no completed task brought",
            "SELECT p.id, p.task_id FROM protocol p LEFT JOIN task t ON t.id = p.task_id AND t.status = 'COMPLETED' AND t.protocol_id = p.id "
            "WHERE t.id IS NULL",
        )
        none(
            "versions with a hole",
            "SELECT agenda_id, COUNT(*) AS n, MAX(version) AS last FROM protocol GROUP BY agenda_id HAVING COUNT(*) <> MAX(version) OR MIN(version) <> 1",
        )
        none("a key of no task", "SELECT key FROM idempotency_key WHERE task_id NOT IN (SELECT id FROM task)")
        self.check_documents(rows, differ)
        self.check_api(tasks, differ)
        if self.nats:
            end = time.monotonic() + 45
            while self.nats.stored() and time.monotonic() < end:
                time.sleep(0.5)
            if self.nats.stored():
                differ(f"{self.nats.stored()} messages are left in NATS")

        faults = self.chaos.done
        logs = self.read_logs()
        say("statuses: " + ", ".join(f"{name} {count}" for name, count in sorted(notes.statuses.items())))
        say("in the logs: " + ", ".join(f"{name} {count}" for name, count in logs.items()))
        print(
            f"\ntasks {len(tasks)}: "
            + ", ".join(f"{status} {by_status.get(status, 0)}" for status in TERMINAL)
            + f"; told of {len(notes.accepted)}; submissions without an answer {notes.unknown}"
            + f"\nprotocols {len(stored)}, events {rows('SELECT COUNT(*) AS n FROM event')[0]['n']}, "
            + f"attempts {rows('SELECT COUNT(*) AS n FROM attempt')[0]['n']} "
            + str({row["outcome"]: row["n"] for row in rows("SELECT outcome, COUNT(*) AS n FROM attempt GROUP BY outcome ORDER BY outcome")})
            + f"\nfaults: kill -9 {faults['kill']}, stopped and continued {faults['stop']}, drained {faults['drain']}, "
            + f"PostgreSQL restarted {faults['postgres']}, NATS restarted {faults['nats']}"
            + f"\ndifferences {len(notes.differences)}"
        )
        for difference in notes.differences:
            print(f"  {difference}")

    def check_documents(self, rows, differ):
        documents = rows("SELECT protocol_id, format, blob, sha256, bytes FROM document")
        with_documents = {row["protocol_id"] for row in documents}
        for row in rows("SELECT id FROM protocol"):
            if row["id"] not in with_documents:
                differ(f"protocol {row['id']} has no document")
        for row in documents:
            try:
                with open(os.path.join(self.documents, row["blob"]), "rb") as file:
                    content = file.read()
            except OSError as error:
                differ(f"{row['format']} of protocol {row['protocol_id']}: {error}")
                continue
            if hashlib.sha256(content).hexdigest() != row["sha256"] or len(content) != row["bytes"]:
                differ(f"{row['format']} of protocol {row['protocol_id']} is not what was stored")

    def check_api(self, tasks, differ):
        """Every node says the same as the table."""
        some = sorted(tasks)[:: max(1, len(tasks) // 200)]
        for task in some:
            for node in self.nodes:
                try:
                    status, _, answer = node.request("GET", f"/task/{task}/status")
                except OSError as error:
                    differ(f"node {node.number} does not answer about {task}: {error}")
                    continue
                if status != 200 or answer["status"] != tasks[task]["status"]:
                    differ(f"node {node.number} says {status} {answer} about {task}, which is {tasks[task]['status']}")

    def read_logs(self):
        """Panics are differences; the rest is told."""
        counts = collections.Counter({"ERROR": 0, "WARN": 0})
        for node in self.nodes:
            with open(os.path.join(self.folder, f"node-{node.number}.log"), encoding="utf-8", errors="replace") as file:
                for line in file:
                    if "panicked" in line:
                        self.notes.differ(f"node {node.number}: {line.strip()[:300]}")
                    level = re.search(r'"level":"(ERROR|WARN)"', line)
                    if level:
                        counts[level[1]] += 1
                        message = re.search(r'"message":"([^"]{0,60})', line)
                        counts[f"{level[1]} {message[1] if message else '?'}"] += 1
        return dict(counts.most_common(25))

    def clear(self, keep):
        for node in self.nodes:
            if node.process and node.process.poll() is None:
                node.signal(signal.SIGCONT)
                node.kill()
        if self.nats:
            self.nats.kill()
            try:
                self.database.stop("immediate")
            except subprocess.CalledProcessError:
                pass
        if keep:
            print(f"kept: {self.folder}")
        else:
            shutil.rmtree(self.folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description="Load, faults, reconciliation.")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--binary", default=None)
    parser.add_argument("--target", default="target")
    parser.add_argument("--sqlite", action="store_true")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--pause", type=float, default=1.2, help="the longest pause of a client, in seconds")
    parser.add_argument("--keep", action="store_true", help="keep the folder, logs and data")
    arguments = parser.parse_args()
    arguments.seed = random.SystemRandom().getrandbits(32) if arguments.seed is None else arguments.seed
    arguments.binary = os.path.abspath(arguments.binary or os.path.join(arguments.target, "release", "protocol-bridge"))
    what = "SQLite, one process" if arguments.sqlite else f"PostgreSQL and NATS, {arguments.nodes} processes"
    print(f"seed {arguments.seed}; {what}; {arguments.minutes} minutes; {os.cpu_count()} cores, {platform.machine()}", flush=True)
    # A signal ends the run as an error does: nothing is left behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    run = Run(arguments)
    failed = True
    try:
        run.go()
        failed = bool(run.notes.differences)
    finally:
        run.clear(arguments.keep or failed)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
