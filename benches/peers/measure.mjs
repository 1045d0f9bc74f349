// Runs no-op jobs through other task queues on the PostgreSQL given, and prints one JSON line for each.
// usage: node measure.mjs postgres://…/postgres JOBS
import { run, runMigrations } from "graphile-worker";
import pg from "pg";
import PgBoss from "pg-boss";

const [cluster, count] = [process.argv[2], Number(process.argv[3] ?? 50000)];
const jobs = Number.isInteger(count) && count > 0 ? count : 50000;
const quiet = { log() {} };

async function freshDatabase(name) {
  const client = new pg.Client({ connectionString: cluster });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  return cluster.replace(/\/[^/]*$/, `/${name}`);
}

async function until(client, query) {
  while ((await client.query(query)).rows.length > 0) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function report(name, started, done) {
  const seconds = (performance.now() - started) / 1000;
  console.log(JSON.stringify({ name, jobs: done, seconds: Number(seconds.toFixed(2)), perSecond: Math.round(done / seconds) }));
}

async function graphile(name, title, worker, amount) {
  const connectionString = await freshDatabase(name);
  const { Logger } = await import("graphile-worker");
  const logger = new Logger(() => () => {});
  await runMigrations({ connectionString, logger });
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query(`SELECT graphile_worker.add_job('noop', json_build_object('n', n)) FROM generate_series(1, ${amount}) AS n`);
  await client.query("VACUUM ANALYZE");
  const started = performance.now();
  const runner = await run({
    taskList: { noop: async () => {} },
    preset: { worker: { connectionString, ...worker } },
    noHandleSignals: true,
    logger,
  });
  await until(client, "SELECT 1 FROM graphile_worker.jobs LIMIT 1");
  report(title, started, amount);
  await runner.stop();
  await client.end();
}

async function boss(name, title, batchSize, amount) {
  const connectionString = await freshDatabase(name);
  const queue = new PgBoss({ connectionString, supervise: false, schedule: false });
  queue.on("error", quiet.log);
  await queue.start();
  await queue.createQueue("noop");
  for (let sent = 0; sent < amount; sent += 1000) {
    await queue.insert(Array.from({ length: Math.min(1000, amount - sent) }, (_, n) => ({ name: "noop", data: { n: sent + n } })));
  }
  const client = new pg.Client({ connectionString });
  await client.connect();
  await client.query("VACUUM ANALYZE");
  const started = performance.now();
  // fetch and complete by hand: what work() does, without its pause of half a second between polls.
  for (let done = 0; done < amount; ) {
    const fetched = await queue.fetch("noop", { batchSize });
    await queue.complete("noop", fetched.map((job) => job.id));
    done += fetched.length;
  }
  report(title, started, amount);
  await client.end();
  await queue.stop({ graceful: false, close: true });
}

await graphile("peer_graphile_default", "graphile-worker 0.17, defaults", {}, Math.min(jobs, 10000));
await graphile("peer_graphile_64", "graphile-worker 0.17, 64 jobs at once", { concurrentJobs: 64, maxPoolSize: 16 }, jobs);
await graphile(
  "peer_graphile_tuned",
  "graphile-worker 0.17, local queue and batched completion",
  { concurrentJobs: 64, maxPoolSize: 16, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
  jobs,
);
await boss("peer_boss_one", "pg-boss 10.4, one by one", 1, Math.min(jobs, 3000));
await boss("peer_boss_batch", "pg-boss 10.4, batches of 500", 500, jobs);
process.exit(0);
