// `make torture`: a service under load is killed at random, again and again. Then it is left alone, and everything that
// was acknowledged must exist, be done once, and leave nothing behind (reliability DUR-1, DSP-1).
import { join } from "node:path";
import { PASSWORD } from "../harness/app.ts";
import { type Client, quiet } from "../harness/client.ts";
import { random } from "../harness/schedule.ts";
import { checkAtRest } from "./checker.ts";
import { Follower } from "./follower.ts";
import { ClientLedger } from "./ledger.ts";
import { Hostile, HOSTILE_FILES_MAX } from "./hostile.ts";
import { Load } from "./load.ts";
import { randomFault, Victim } from "./victim.ts";

const given = new Map(Deno.args.map((arg) => arg.replace(/^--/, "").split("=") as [string, string]));
const SECONDS = Number(given.get("seconds") ?? 900);
const PER_SECOND = Number(given.get("rate") ?? 5);
// With a hostile client beside it: what it makes has to pile up.
const HOSTILE = given.has("hostile");
const LIFE_MEAN_MS = Number(given.get("life") ?? (HOSTILE ? 20_000 : 2_500));
const LAST_FAULT_MS = 30_000;
const SEED = Number(given.get("seed") ?? Date.now() % 1_000_000);

console.log(`torture: seed ${SEED}, ${SECONDS} s, ${PER_SECOND}/s, a life of ${LIFE_MEAN_MS} ms on average`);
const folder = await Deno.makeTempDir({ prefix: "svc-torture-" });
const faults = await torture();
if (faults.length > 0) {
  console.error(
    `BROKEN (seed ${SEED}), everything is in ${folder}:\n${faults.map((fault) => `  ${fault}`).join("\n")}`,
  );
  Deno.exit(1);
}
await Deno.remove(folder, { recursive: true });
console.log("every invariant holds");
Deno.exit(0);

async function torture(): Promise<string[]> {
  const chance = random(SEED);
  const victim = new Victim(
    folder,
    HOSTILE ? { filesMax: HOSTILE_FILES_MAX, env: { SVC_SERVER__TRUSTED_PROXIES: "127.0.0.1" } } : {},
  );
  const ledger = new ClientLedger(join(folder, "client.log"));
  const load = new Load(victim, ledger, random(SEED + 1));
  await victim.start();
  await load.prepare();
  const hostile = HOSTILE ? await Hostile.begin(victim) : null;
  const followers = load.sessions.map((session) => new Follower(victim, session, random(SEED + 2)));
  const until = performance.now() + SECONDS * 1_000;
  const arriving = setInterval(() => load.begin(), 1_000 / PER_SECOND);
  while (performance.now() < until) {
    await pause(-Math.log(1 - chance()) * LIFE_MEAN_MS);
    await victim.kill();
    // A start takes long on a busy machine, and the server that is left at the end must not have a fault in it.
    const faulty = () => performance.now() < until - LAST_FAULT_MS ? randomFault(chance) : "";
    do await victim.start(faulty()); while (victim.api === null);
  }
  clearInterval(arriving);
  await hostile?.end().catch((error) => {
    throw new Error(`the server is not there any more: ${victim.said.slice(-3_000)}`, { cause: error });
  });
  const api = await victim.reach();
  const drainStarted = performance.now();
  await load.finished();
  await endSchedules(api, load.workers);
  // All countdowns fire; then no work is left.
  while ((await api.call("GET /api/system/overview")).tasks.scheduled > 0) await pause(200);
  await quiet(api, 120_000);
  const drainMs = performance.now() - drainStarted;
  const overview = await api.call("GET /api/system/overview");
  for (const follower of followers) await follower.finish();
  const code = await victim.stop();
  report(ledger, victim, overview, drainMs, followers);
  for (const line of hostile?.report() ?? []) console.log(`  ${line}`);
  return [
    ...(code === 0 ? [] : [`the last stop ended with exit code ${code}`]),
    ...await checkAtRest({
      dataDir: victim.dataDir,
      messages: ledger.accepted("message"),
      tasks: ledger.accepted("task"),
      uploads: ledger.accepted("upload"),
      once: ledger.entries.filter((entry) => entry.keyed).map((entry) => entry.content),
      atMostTwice: ledger.entries.filter((entry) => !entry.keyed && entry.kind !== "upload").map((entry) =>
        entry.content
      ),
      agentLedger: victim.agentLedger,
      maxAttempts: 3,
      secrets: [PASSWORD, (await Deno.readTextFile(join(victim.dataDir, "secret.key"))).trim()],
      alsoSearched: [join(folder, "server.log")],
    }),
    ...(await Promise.all(followers.map((follower) => follower.faults(victim.dataDir)))).flat(),
  ];
}

/** Schedules would fire for ever. */
async function endSchedules(api: Client, workers: string[]): Promise<void> {
  for (const worker of workers) {
    const query = `worker_id=${worker}&type=scheduled&status=scheduled,pending,running&page_size=100`;
    for (const task of await api.call(`GET /api/tasks?${query}`)) {
      await api.send(`POST /api/tasks/${task.id}/cancel`, {});
    }
  }
}

function report(
  ledger: ClientLedger,
  victim: Victim,
  // deno-lint-ignore no-explicit-any
  overview: any,
  drainMs: number,
  followers: Follower[],
): void {
  const { kills, faults, starts } = victim.deaths;
  starts.sort((a, b) => a - b);
  const at = (share: number) => Math.round(starts[Math.floor((starts.length - 1) * share)] ?? 0);
  const resent = ledger.entries.filter((entry) => entry.sent > 1).length;
  const runs = overview.executions;
  const lines = [
    `kills            ${kills}, of them ${faults} at a fault point`,
    `start to ready   p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
    `requests         ${ledger.entries.length}, ${resent} of them sent again because no answer came`,
    `acknowledged     ${ledger.accepted("message").length} messages, ${
      ledger.accepted("task").length
    } tasks, ` +
    `${ledger.accepted("upload").length} uploads`,
    `runs             ${runs.total}: ${runs.completed} completed, ${runs.failed} failed (lost with the server, or told to)`,
    `tasks            ${overview.tasks.completed} completed, ${overview.tasks.failed} failed, ${overview.tasks.cancelled} cancelled`,
    `streams          ${followers.reduce((sum, one) => sum + one.replies, 0)} replies, each once, over ` +
    `${followers.reduce((sum, one) => sum + one.connections, 0)} connections`,
    `came to rest in  ${(drainMs / 1_000).toFixed(1)} s`,
  ];
  console.log(lines.map((line) => `  ${line}`).join("\n"));
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
