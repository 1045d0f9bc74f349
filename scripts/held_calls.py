#!/usr/bin/env python3
"""Holds thousands of v1 calls open at once on one process and measures what that costs.

    cargo build --release && scripts/held_calls.py [--calls 10000] [--program target/release/protocol-bridge] [--database-url URL]

Every call is for an agenda of its own, so every one is a task of its own: the most that one status query can have to look up. The agenda service behind it (in this
script) answers nobody until all calls are held and everything is measured; then it answers 404, and every caller has to get that answer.
Needs nothing but Python. Exits 1 when a budget of docs/ARCHITECTURE's is missed.
"""

import argparse
import asyncio
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time

BUDGET_THREADS, BUDGET_KIB, BUDGET_P99_MS, BUDGET_FAILURE_MS = 4, 30.0, 100.0, 10.0
POLL_SECONDS = 2.0  # legacy.poll_interval


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--program", default="target/release/protocol-bridge")
    parser.add_argument("--database-url", default="", help="empty: SQLite in a temporary folder")
    parser.add_argument("--seconds", type=float, default=30.0, help="how long the calls are watched while they are held")
    parser.add_argument("--failures", type=int, default=200, help="how many failing calls are timed in the end")
    parser.add_argument("--openers", type=int, default=50, help="how many connections are opened at once")
    return parser.parse_args()


class Agendas:
    """An agenda service that answers nobody until it is told to."""

    def __init__(self):
        self.open = asyncio.Event()
        self.thinks = lambda: 0.0
        self.answered = 0.0

    async def start(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/{{agendaId}}"

    async def serve(self, reader, writer):
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                await self.open.wait()
                await asyncio.sleep(self.thinks())
                self.answered = time.perf_counter()
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()


def start(options, folder, source):
    environment = {
        "PATH": os.environ["PATH"],
        "PROTOCOL_BRIDGE__HTTP__LISTEN": "127.0.0.1:0",
        "PROTOCOL_BRIDGE__DATA_DIR": folder,
        "PROTOCOL_BRIDGE__DATABASE__URL": options.database_url,
        "PROTOCOL_BRIDGE__AGENDA__SOURCE": source,
        "PROTOCOL_BRIDGE__AGENDA__TIMEOUT": "30m",
        "PROTOCOL_BRIDGE__TELEMETRY__FORMAT": "json",
    }
    log = open(os.path.join(folder, "log"), "w+b")
    process = subprocess.Popen([options.program], env=environment, stdout=subprocess.DEVNULL, stderr=log)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        with open(log.name, errors="replace") as lines:
            text = lines.read()
        found = re.search(r'"address":"127\.0\.0\.1:(\d+)"', text)
        if found:
            return process, int(found.group(1))
        if process.poll() is not None:
            break
        time.sleep(0.05)
    sys.exit(f"the program did not start:\n{text}")


def status_of(pid):
    with open(f"/proc/{pid}/status") as lines:
        fields = dict(line.split(":", 1) for line in lines)
    return int(fields["VmRSS"].split()[0]), int(fields["Threads"])


async def request(reader, writer, method, path):
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode())
    await writer.drain()
    return await answer(reader)


async def answer(reader):
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(re.search(r"(?im)^content-length: (\d+)", head).group(1))
    return int(head.split()[1]), (await reader.readexactly(length)).decode()


async def get(port, path):
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        return (await request(reader, writer, "GET", path))[1]
    finally:
        writer.close()


async def metric(port, series):
    text = await get(port, "/metrics")
    found = re.search(rf"(?m)^protocol_bridge_{re.escape(series)} (\S+)$", text)
    return float(found.group(1)) if found else 0.0


async def latencies(port, path, stop):
    """Milliseconds that one connection waits for `path`, again and again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken = []
    while not stop.is_set():
        begin = time.perf_counter()
        status, _ = await request(reader, writer, "GET", path)
        taken.append((time.perf_counter() - begin) * 1000)
        assert status == 200, f"{path}: {status}"
        await asyncio.sleep(0.02)
    writer.close()
    return taken


def p99(values):
    return sorted(values)[int(len(values) * 0.99)]


async def main():
    options = arguments()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if hard < options.calls + 500:
        sys.exit(f"the open-files limit of {hard} is too low for {options.calls} calls")
    agendas = Agendas()
    with tempfile.TemporaryDirectory() as folder:
        process, port = start(options, folder, await agendas.start())
        try:
            return await measure(options, agendas, process, port)
        finally:
            process.kill()
            process.wait()


async def measure(options, agendas, process, port):
    series = 'db_transaction_seconds_count{name="status_query"}'
    opened = []

    async def hold(number):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=4096)
        writer.write(f"POST /api/v1/protocol/merge/byAgenda/held-{number} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n".encode())
        await writer.drain()
        opened.append((reader, writer))

    async def held(wanted):
        deadline = time.monotonic() + 300
        while await metric(port, "legacy_waiters") < wanted:
            early = [bytes(reader._buffer[:600]).decode() for reader, _ in opened if reader._buffer]
            if early or time.monotonic() > deadline:
                sys.exit(f"{len(early)} of {len(opened)} calls were answered before their time, such as:\n{early[:1]}")
            await asyncio.sleep(0.5)

    # A few first, so that what every process has once is there before the counting begins.
    await asyncio.gather(*(hold(number) for number in range(100)))
    await held(100)
    rss_before, threads_before = status_of(process.pid)
    began = time.monotonic()
    for first in range(100, options.calls, options.openers):
        await asyncio.gather(*(hold(number) for number in range(first, min(first + options.openers, options.calls))))
    await held(options.calls)
    opening = time.monotonic() - began

    await asyncio.sleep(5)
    task = re.search(r'"taskId":"([^"]+)"', await get(port, "/task?agendaId=held-0")).group(1)
    stop = asyncio.Event()
    queries_before, watched = await metric(port, series), time.monotonic()
    lookers = [asyncio.create_task(latencies(port, path, stop)) for path in ["/livez", f"/task/{task}/status"] for _ in range(2)]
    await asyncio.sleep(options.seconds)
    stop.set()
    taken = await asyncio.gather(*lookers)
    queries, watched = await metric(port, series) - queries_before, time.monotonic() - watched
    rss, threads = status_of(process.pid)
    livez, status = p99(taken[0] + taken[1]), p99(taken[2] + taken[3])
    waiters = await metric(port, "legacy_waiters")

    agendas.open.set()
    released = time.monotonic()
    answers = await asyncio.wait_for(asyncio.gather(*(answer(reader) for reader, _ in opened)), 600)
    releasing = time.monotonic() - released
    right = sum(code == 404 and "/problems/agenda-not-found" in body for code, body in answers)

    # Failures, one after the other: from the agenda service's 404 to the caller's, with everything in between, the commit included.
    chance = random.Random(1)
    agendas.thinks = lambda: chance.random() / 2
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    told = []
    for number in range(options.failures):
        await request(reader, writer, "POST", f"/api/v1/protocol/merge/byAgenda/failing-{number}")
        told.append((time.perf_counter() - agendas.answered) * 1000)

    kib, ticks = (rss - rss_before) / (options.calls - 100), watched / POLL_SECONDS
    rows = [
        ("calls held at once", f"{waiters:.0f}", waiters >= options.calls, f"{options.calls}"),
        ("threads more than before", f"{threads - threads_before}", threads - threads_before <= BUDGET_THREADS, f"≤ {BUDGET_THREADS}"),
        ("resident memory per call", f"{kib:.1f} KiB", kib <= BUDGET_KIB, f"≤ {BUDGET_KIB:.0f} KiB"),
        ("status queries per tick, all together", f"{queries / ticks:.2f}", queries <= ticks + 1, "≤ 1"),
        ("`/livez` p99", f"{livez:.1f} ms", livez < BUDGET_P99_MS, f"< {BUDGET_P99_MS:.0f} ms"),
        ("`/task/{id}/status` p99", f"{status:.1f} ms", status < BUDGET_P99_MS, f"< {BUDGET_P99_MS:.0f} ms"),
        (f"a failure reaches its caller, p99 of {options.failures}", f"{p99(told):.1f} ms", p99(told) <= BUDGET_FAILURE_MS, f"≤ {BUDGET_FAILURE_MS:.0f} ms"),
        ("callers that got their answer in the end", f"{right}", right == options.calls, f"{options.calls}"),
    ]
    print("| what | measured | budget | |\n| --- | --- | --- | --- |")
    for what, measured, good, budget in rows:
        print(f"| {what} | {measured} | {budget} | {'met' if good else 'MISSED'} |")
    print(f"\nopened in {opening:.1f} s, watched for {watched:.0f} s, answered in {releasing:.1f} s; resident {rss_before // 1024} → {rss // 1024} MiB, {threads} threads")
    return all(good for _, _, good, _ in rows)


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(main()) else 1)
