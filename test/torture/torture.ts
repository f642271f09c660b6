// `make torture` kills a service under load repeatedly, at random. Then it waits for all work and checks that
// every acknowledged request exists, was done once, and left nothing behind. Services are killed at random
// under load [DUR-1].
import { join } from "node:path";
import { CHOSEN_COST, hashPassword } from "../../src/api/account/password.ts";
import { PASSWORD } from "../harness/service/app.ts";
import { type Client, waitUntilQuiet } from "../harness/service/client.ts";
import { createRandom } from "../harness/model/schedule.ts";
import { checkAtRest, type Evidence } from "./checker.ts";
import { Follower } from "./follower.ts";
import { ClientLedger } from "./ledger.ts";
import { Hostile, HOSTILE_FILES_MAX } from "./hostile.ts";
import { Load, SECRET_CANARY } from "./load.ts";
import { OPEN_PLAN, OpenAgents } from "./open_agents.ts";
import { checkRuns } from "./run_checker.ts";
import { buildPlan, runLifeWithRunners, Runners, TIMEOUT } from "./runners.ts";
import { chooseFault, SHORT_SERVE, Victim } from "./victim.ts";
import { pause } from "../harness/model/workload.ts";

const given = new Map(Deno.args.map((arg) => arg.replace(/^--/, "").split("=") as [string, string]));
const SECONDS = Number(given.get("seconds") ?? 900);
// Adds runners, which are killed, stopped and cut off as well; then leases are short.
const RUNNERS = Number(given.get("runners") ?? 0);
// Adds agents that stay open between turns, and are killed as well.
const WARM = given.has("warm");
const PER_SECOND = Number(given.get("rate") ?? (RUNNERS > 0 ? 2 : WARM ? 3 : 5));
// Adds a hostile client, whose data has to pile up.
const HOSTILE = given.has("hostile");
const LIFE_MEAN_MS = Number(given.get("life") ?? (HOSTILE || RUNNERS > 0 ? 20_000 : WARM ? 10_000 : 2_500));
const LAST_FAULT_MS = 30_000;
const SEED = Number(given.get("seed") ?? Date.now() % 1_000_000);

if (WARM && RUNNERS > 0) {
  console.error("--warm and --runners exclude each other. Remove one of them.");
  Deno.exit(2);
}
console.log(
  `torture: seed ${SEED}, ${SECONDS} s, ${RUNNERS} runners, ${PER_SECOND}/s, a life of ${LIFE_MEAN_MS} ms on average`,
);
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
  const chance = createRandom(SEED);
  const open = WARM ? await OpenAgents.begin(folder) : null;
  const victim = createVictim({ ...open?.env, ...(HOSTILE ? await buildHashSettings() : {}) });
  const ledger = new ClientLedger(join(folder, "client.log"));
  const plan = RUNNERS > 0 ? buildPlan(RUNNERS) : WARM ? OPEN_PLAN : undefined;
  const load = new Load(victim, ledger, createRandom(SEED + 1), plan);
  await victim.start();
  const runners = RUNNERS > 0 ? await Runners.begin(victim, folder, RUNNERS) : null;
  await load.prepare();
  const hostile = HOSTILE ? await Hostile.begin(victim) : null;
  const followers = load.sessions.map((session) => new Follower(victim, session, createRandom(SEED + 2)));
  const until = performance.now() + SECONDS * 1_000;
  runners?.trouble(load.workersOn("any"), SEED + 3, until);
  open?.trouble(SEED + 4, until);
  const arriving = setInterval(() => load.begin(), 1_000 / PER_SECOND);
  while (performance.now() < until) await liveOnce(victim, chance, until);
  clearInterval(arriving);
  await hostile?.end().catch((error) => {
    throw new Error(`the server has ended: ${victim.said.slice(-3_000)}`, { cause: error });
  });
  await runners?.calm();
  await open?.calm();
  const { overview, drainMs } = await drain(await victim.reach(), load);
  await Promise.all(followers.map((follower) => follower.finish()));
  await runners?.stop();
  const code = await victim.stop();
  report(ledger, victim, overview, drainMs, followers);
  const more = [
    ...hostile?.report() ?? [],
    ...await runners?.report(victim.dataDir) ?? [],
    ...await open?.report() ?? [],
  ];
  for (const line of more) console.log(`  ${line}`);
  return [
    ...(code === 0 ? [] : [`the last stop ended with exit code ${code}`]),
    ...await checkAtRest(await collectEvidence(victim, ledger, runners)),
    ...(runners === null ? [] : await checkRuns(victim.dataDir, victim.agentLedger)),
    ...await runners?.faults() ?? [],
    ...await open?.faults(victim.dataDir) ?? [],
    ...(await Promise.all(followers.map((follower) => follower.faults(victim.dataDir)))).flat(),
  ];
}

function createVictim(env: Record<string, string> = {}): Victim {
  return new Victim(folder, {
    ...(HOSTILE ? { filesMax: HOSTILE_FILES_MAX } : {}),
    ...(RUNNERS > 0 ? { program: SHORT_SERVE } : {}),
    env: {
      ...(HOSTILE ? { SVC_SERVER__TRUSTED_PROXIES: "127.0.0.1" } : {}),
      ...(RUNNERS > 0
        ? { SVC_ENGINES__FAKE__TIMEOUT: TIMEOUT, SVC_ENGINES__FAKE__ENV__FAKE_LANES: "1" }
        : {}),
      ...env,
    },
  });
}

// A password check costs the service as much as in production.
async function buildHashSettings(): Promise<Record<string, string>> {
  return { SVC_AUTH__PASSWORD_HASH: await hashPassword(PASSWORD, CHOSEN_COST) };
}

async function liveOnce(victim: Victim, chance: () => number, until: number): Promise<void> {
  const lifeMs = -Math.log(1 - chance()) * LIFE_MEAN_MS;
  await (RUNNERS > 0 ? runLifeWithRunners(victim, chance, lifeMs) : pause(lifeMs));
  await victim.kill();
  // A start is slow on a busy machine, and the last server must not have a fault.
  const faulty = () => performance.now() < until - LAST_FAULT_MS ? chooseFault(chance) : "";
  do await victim.start(faulty()); while (victim.api === null);
}

async function drain(api: Client, load: Load) {
  const began = performance.now();
  await load.finished();
  await endSchedules(api, load.workers);
  // All countdowns fire; then no work is left.
  while ((await api.call("GET /api/system/overview")).tasks.scheduled > 0) await pause(200);
  await waitUntilQuiet(api, 120_000);
  const drainMs = performance.now() - began;
  return { overview: await api.call("GET /api/system/overview"), drainMs };
}

async function collectEvidence(
  victim: Victim,
  ledger: ClientLedger,
  runners: Runners | null,
): Promise<Evidence> {
  const key = (await Deno.readTextFile(join(victim.dataDir, "secret.key"))).trim();
  const unkeyed = ledger.entries.filter((entry) => !entry.keyed && entry.kind !== "upload");
  return {
    dataDir: victim.dataDir,
    messages: ledger.accepted("message"),
    tasks: ledger.accepted("task"),
    uploads: ledger.accepted("upload"),
    once: ledger.entries.filter((entry) => entry.keyed).map((entry) => entry.content),
    atMostTwice: unkeyed.map((entry) => entry.content),
    agentLedger: victim.agentLedger,
    maxAttempts: 3,
    // The value of a secret is in no file, also while agents print it and the service is killed [KEY-1].
    secrets: [PASSWORD, key, SECRET_CANARY, ...runners?.secrets ?? []],
    alsoSearched: [join(folder, "server.log"), ...await runners?.files() ?? []],
  };
}

/** Deletes the schedules, which would fire permanently. */
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
  const { kills, faults, starts, stops } = victim.deaths;
  starts.sort((a, b) => a - b);
  const at = (share: number) => Math.round(starts[Math.floor((starts.length - 1) * share)] ?? 0);
  const resent = ledger.entries.filter((entry) => entry.sent > 1).length;
  const runs = overview.executions;
  const lines = [
    `kills            ${kills}, of them ${faults} at a fault point` +
    (stops.length === 0
      ? ""
      : `; stopped ${stops.length} times, for ${(Math.max(...stops) / 1_000).toFixed(1)} s at most`),
    `start to ready   p50 ${at(0.5)} ms, p99 ${at(0.99)} ms`,
    `requests         ${ledger.entries.length}, ${resent} of them sent again after a lost response`,
    `acknowledged     ${ledger.accepted("message").length} messages, ${
      ledger.accepted("task").length
    } tasks, ` +
    `${ledger.accepted("upload").length} uploads`,
    `runs             ${runs.total}: ${runs.completed} completed, ${runs.failed} failed (lost with the server, or by instruction)`,
    `tasks            ${overview.tasks.completed} completed, ${overview.tasks.failed} failed, ${overview.tasks.cancelled} cancelled`,
    `streams          ${followers.reduce((sum, one) => sum + one.replies, 0)} replies, each once, over ` +
    `${followers.reduce((sum, one) => sum + one.connections, 0)} connections`,
    `came to rest in  ${(drainMs / 1_000).toFixed(1)} s`,
  ];
  console.log(lines.map((line) => `  ${line}`).join("\n"));
}
