#!/usr/bin/env python3
"""A thousand protocols and eight kinds of receivers: the healthy one hears everything in time, and nobody pays for the others.

    cargo build --release && scripts/webhooks.py [--tasks 1000] [--program target/release/protocol-bridge] [--database-url URL]

Runs the tasks without subscribers first, then with receivers that are healthy, hanging, dripping, endless, failing, refusing, redirecting and gone (410), all on this machine.
Each event of the healthy one is verified here, independently of the program. Needs nothing but Python. Exits 1 when a promise is broken:
the healthy one has all events within 10 s of the last end; at most 50 MiB more memory; at least 90 % of the tasks a second.
"""

import argparse
import asyncio
import base64
import hashlib
import hmac
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

SECRET = "whsec_" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
KINDS = ["healthy", "hanging", "dripping", "endless", "failing", "refusing", "redirecting", "gone"]
WITHIN_SECONDS, MORE_MIB, SHARE = 10.0, 50.0, 0.9


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--program", default="target/release/protocol-bridge")
    parser.add_argument("--database-url", default="", help="empty: SQLite in a temporary folder")
    return parser.parse_args()


async def read_request(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    lines = head.split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return lines[0].split(" ")[1], headers, body


def verify(headers, body):
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = base64.b64encode(hmac.new(base64.b64decode(SECRET[6:]), signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest("v1," + wanted, one) for one in headers["webhook-signature"].split(" "))


class World:
    """The agenda service and all receivers, in this process."""

    def __init__(self, agenda):
        self.agenda = agenda
        self.heard = {}  # the healthy receiver's: id -> (when, verified, event)
        self.elsewhere = 0

    async def serve(self, reader, writer, kind):
        try:
            while True:
                path, headers, body = await read_request(reader)
                await getattr(self, kind)(path, headers, body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @staticmethod
    async def answer(writer, status, body=b"", header=""):
        writer.write(f"HTTP/1.1 {status} Said\r\n{header}content-length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()

    async def agendas(self, path, _headers, _body, writer):
        document = dict(self.agenda, agendaId=path.rsplit("/", 1)[1])
        await self.answer(writer, 200, json.dumps(document).encode(), "content-type: application/json\r\n")

    async def healthy(self, _path, headers, body, writer):
        self.heard.setdefault(headers["webhook-id"], (time.monotonic(), verify(headers, body), json.loads(body)))
        await self.answer(writer, 204)

    async def hanging(self, *_):
        await asyncio.sleep(3600)

    async def dripping(self, _path, _headers, _body, writer):
        while True:
            writer.write(b"H")
            await writer.drain()
            await asyncio.sleep(0.2)

    async def endless(self, _path, _headers, _body, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
        while True:
            writer.write(b"400\r\n" + b"x" * 0x400 + b"\r\n")
            await writer.drain()

    async def failing(self, _path, _headers, _body, writer):
        await self.answer(writer, 503)

    async def redirecting(self, _path, _headers, _body, writer):
        await self.answer(writer, 307, header=f"location: {self.target}\r\n")

    async def gone(self, _path, _headers, _body, writer):
        await self.answer(writer, 410)

    async def followed(self, _path, _headers, _body, writer):
        self.elsewhere += 1
        await self.answer(writer, 200)

    async def start(self):
        async def listen(kind):
            server = await asyncio.start_server(lambda reader, writer: self.serve(reader, writer, kind), "127.0.0.1", 0)
            return "http://127.0.0.1:%d" % server.sockets[0].getsockname()[1]

        self.target = await listen("followed")
        self.source = await listen("agendas") + "/{agendaId}"
        urls = {kind: await listen(kind) for kind in KINDS if kind != "refusing"}
        urls["refusing"] = "http://127.0.0.1:9999"
        return urls


class Bridge:
    """The program on a folder of its own."""

    def __init__(self, how, folder, source, subscriptions):
        environment = {
            "PROTOCOL_BRIDGE__DATA_DIR": folder,
            "PROTOCOL_BRIDGE__HTTP__LISTEN": "127.0.0.1:0",
            "PROTOCOL_BRIDGE__AGENDA__SOURCE": source,
            "PROTOCOL_BRIDGE__AGENDA__MAX_PER_HOST": "64",
            "PROTOCOL_BRIDGE__GENERATOR__FORMATS": '["json"]',
            "PROTOCOL_BRIDGE__AUTH__SECRET_KEY": "a secret key of this script, long enough for one",
            "PROTOCOL_BRIDGE__EVENTS__ALLOW_PRIVATE_TARGETS": "true",
            "PROTOCOL_BRIDGE__EVENTS__SUBSCRIPTIONS": "[" + ", ".join(
                f'{{name="{kind}",url="{url}",secret="{SECRET}"}}' for kind, url in subscriptions.items()) + "]",
            "PROTOCOL_BRIDGE__TELEMETRY__FORMAT": "json",
        }
        if how.database_url:
            environment["PROTOCOL_BRIDGE__DATABASE__URL"] = how.database_url
        self.log = open(os.path.join(folder, "log"), "w+")
        self.process = subprocess.Popen([how.program], env=environment, stderr=self.log, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 30
        while not (found := re.search(r'"address":"([^"]+)"', open(self.log.name).read())):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise SystemExit(open(self.log.name).read())
            time.sleep(0.05)
        self.base = "http://" + found[1]

    def memory(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}), timeout=30) as answer:
            return json.load(answer)

    def finished(self):
        with urllib.request.urlopen(self.base + "/metrics", timeout=30) as answer:
            text = answer.read().decode()
        return sum(int(float(n)) for n in re.findall(r'tasks_finished_total\{kind="protocol",outcome="\w+"\} (\S+)', text))

    def end(self):
        self.process.terminate()
        self.process.wait(60)


async def run(bridge, name, tasks):
    """Submits the tasks and waits for their ends; how long it took, and when the last one ended."""
    loop = asyncio.get_running_loop()
    permits = asyncio.Semaphore(16)

    async def submit(number):
        async with permits:
            body = {"agendaId": f"{name}-{number}", "clientReference": f"Протокол № {number} 🗳️"}
            await loop.run_in_executor(None, bridge.call, "/task", body)

    begun = time.monotonic()
    await asyncio.gather(*(submit(number) for number in range(tasks)))
    while await loop.run_in_executor(None, bridge.finished) < tasks:
        await asyncio.sleep(0.1)
    return time.monotonic() - begun


async def main():
    how = arguments()
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
    with open(os.path.join(root, "samples/agendas/council-2026-11.json")) as file:
        world = World(json.load(file))
    urls = await world.start()
    broken = []
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        bridge = await loop.run_in_executor(None, Bridge, how, folder, world.source, {})
        alone = await run(bridge, "alone", how.tasks)
        before = bridge.memory()
        await loop.run_in_executor(None, bridge.end)
    with tempfile.TemporaryDirectory() as folder:
        bridge = await loop.run_in_executor(None, Bridge, how, folder, world.source, urls)
        told = await run(bridge, "told", how.tasks)
        last_end = time.monotonic()
        while len(world.heard) < how.tasks and time.monotonic() < last_end + 3 * WITHIN_SECONDS:
            await asyncio.sleep(0.05)
        after = bridge.memory()
        await loop.run_in_executor(None, bridge.end)
    last = max((when for when, _, _ in world.heard.values()), default=float("inf"))
    late, share = max(0.0, last - last_end), alone / told
    verified = sum(good for _, good, _ in world.heard.values())
    references = {event["data"]["clientReference"] for _, _, event in world.heard.values()}
    print(f"{how.tasks} tasks alone: {how.tasks / alone:.0f}/s; told to {len(KINDS)} receivers: {how.tasks / told:.0f}/s ({share:.0%})")
    print(f"the healthy one: {len(world.heard)} events, {verified} verified, the last {late:.1f} s after the last end")
    print(f"memory: {before:.0f} MiB alone, {after:.0f} MiB told")
    for wrong, words in [
        (len(world.heard) != how.tasks or verified != how.tasks, "the healthy one has not all of them, or not all are genuine"),
        (f"Протокол № {how.tasks - 1} 🗳️" not in references or len(references) != how.tasks, "texts did not survive"),
        (late > WITHIN_SECONDS, f"the last came later than {WITHIN_SECONDS:.0f} s"),
        (after - before > MORE_MIB, f"more than {MORE_MIB:.0f} MiB more"),
        (share < SHARE, f"less than {SHARE:.0%} of the tasks a second"),
        (world.elsewhere > 0, "a redirect was followed"),
    ]:
        if wrong:
            broken.append(words)
    for words in broken:
        print("BROKEN:", words)
    return 1 if broken else 0


sys.exit(asyncio.run(main()))
