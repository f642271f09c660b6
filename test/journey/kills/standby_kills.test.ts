import { expect, it } from "vitest";
import { readLedger } from "../../harness/fakes/agents.ts";
import { type Client, openClient } from "../../harness/service/client.ts";
import type { ServerProcess } from "../../harness/service/process.ts";
import { createRandom } from "../../harness/model/schedule.ts";
import { createWorkers, pause } from "../../harness/model/workload.ts";
import { SQLD } from "../../harness/fakes/sqld.ts";
import { Machines, readState } from "../../harness/fakes/standby.ts";
import { waitUntil } from "../../harness/wait.ts";

// CI kills three times, .ci/long fifty times.
const KILLS = Number(Deno.env.get("SVC_TEST_TAKEOVERS") ?? 1);
const HANDOVERS = Math.ceil(KILLS / 5);
const TASKS_PER_ROUND = 12;
const SENDERS = 3;
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);
const TAKEOVER_MAX_MS = 45_000;
const HANDOVER_MAX_MS = 3_000;

/** Sends tasks to the current server, each with a separate key and until it is acknowledged. */
class Load {
  /** Keys and ids of acknowledged tasks. */
  readonly accepted = new Map<string, string>();
  /** The time when each server accepted its first task. */
  readonly firstBy = new Map<string, number>();
  urls: string[] = [];
  #budget = 0;
  #ended = false;
  #sent = 0;
  readonly #token: string;
  readonly #worker: () => string;
  readonly #chance: () => number;

  constructor(token: string, worker: () => string, chance: () => number) {
    this.#token = token;
    this.#worker = worker;
    this.#chance = chance;
  }

  /** Allows `tasks` more tasks. */
  allow(tasks: number): void {
    this.#budget += tasks;
  }

  async send(): Promise<void> {
    while (!this.#ended) {
      if (this.#budget <= 0) await pause(10);
      else {
        this.#budget--;
        await this.#sendOne(`key-${this.#sent++}`);
      }
    }
  }

  end(): void {
    this.#ended = true;
  }

  async #sendOne(key: string): Promise<void> {
    const instruction = `sleep ${(this.#chance() * 0.4).toFixed(2)}`;
    const body = JSON.stringify({
      message_id: "takeover",
      worker_id: this.#worker(),
      instruction,
      type: "immediate",
    });
    const headers = {
      authorization: `Bearer ${this.#token}`,
      "content-type": "application/json",
      "idempotency-key": key,
    };
    while (true) {
      for (const url of this.urls) {
        const response = await fetch(`${url}/api/tasks`, { method: "POST", headers, body }).catch(() => null);
        const answer = await response?.json().catch(() => null);
        if (response?.status !== 201 || answer === null) continue;
        if (!this.firstBy.has(url)) this.firstBy.set(url, performance.now());
        this.accepted.set(key, answer.id);
        return;
      }
      await pause();
    }
  }
}

it.skipIf(SQLD === undefined)(
  `${KILLS} kills and ${HANDOVERS} orderly stops of the one that serves, under load, with a standby: nothing acknowledged is ` +
    `lost, nothing runs twice at once (seed ${SEED}) [RUN-4]`,
  async () => {
    await using machines = await Machines.open();
    // A single login lasts for the whole test.
    machines.env.SVC_AUTH__ACCESS_TTL = "1d";
    // All tasks are of one conversation.
    machines.env.SVC_LIMITS__MAX_RUNS_PER_HOUR = "1000000";
    const chance = createRandom(SEED);
    const { first, second, api } = await machines.startPair();
    let [serving, waiting] = [first, second];
    const workers = await createWorkers(api, 4);
    const load = new Load(api.token, () => workers[Math.floor(chance() * workers.length)] ?? "", chance);
    load.urls = [serving.url, waiting.url];
    const senders = Array.from({ length: SENDERS }, () => load.send());
    const names = new Map<ServerProcess, string>([[serving, "one"], [waiting, "two"]]);
    const taken: Record<"SIGKILL" | "SIGTERM", number[]> = { SIGKILL: [], SIGTERM: [] };
    for (let round = 0; round < KILLS + HANDOVERS; round++) {
      const signal = round % 6 === 5 || round >= KILLS + HANDOVERS - 1 && taken.SIGTERM.length < HANDOVERS
        ? "SIGTERM"
        : "SIGKILL";
      load.allow(TASKS_PER_ROUND);
      await pause(300 + chance() * 1_500);
      // The server has to die with unanswered requests.
      load.allow(SENDERS);
      const began = performance.now();
      await serving.end(signal);
      // A server that stops in order may still accept these tasks.
      load.allow(SENDERS);
      const { url } = waiting;
      await waitUntil("the standby accepts a request", () => load.firstBy.has(url), TAKEOVER_MAX_MS);
      taken[signal].push((load.firstBy.get(url) ?? 0) - began);
      const name = names.get(serving) ?? "";
      [serving, waiting] = [waiting, await machines.start(name, { standby: true })];
      names.set(waiting, name);
      load.urls = [serving.url, waiting.url];
    }
    load.end();
    await Promise.all(senders);
    const other = await openClient(serving.url);
    await waitUntil("all work is done", async () => (await countOpenTasks(other)) === 0, 120_000);
    console.info(
      `took over after SIGKILL ${formatTimes(taken.SIGKILL)}; after SIGTERM ${formatTimes(taken.SIGTERM)}`,
    );

    expect(load.accepted.size).toBeGreaterThan(KILLS * SENDERS);
    expect(new Set(load.accepted.values()).size).toBe(load.accepted.size);
    const completed = await countCompletedRuns(other);
    for (const id of load.accepted.values()) {
      // The token of the first login is valid on every machine.
      const task = await other.call(`GET /api/tasks/${id}`);
      expect(task.status, JSON.stringify(task)).toBe("completed");
      expect(completed.get(id), id).toBe(1);
    }
    const lines = await readLedger(machines.ledger);
    expect(lines.filter(({ word }) => word === "OVERLAP")).toEqual([]);
    expect(await readState(waiting.url)).toBe("standby");
    expect(Math.max(...taken.SIGKILL)).toBeLessThan(TAKEOVER_MAX_MS);
    expect(Math.max(...taken.SIGTERM)).toBeLessThan(HANDOVER_MAX_MS);
  },
  240_000 + KILLS * 120_000,
);

async function countOpenTasks(api: Client): Promise<number> {
  const { tasks } = await api.call("GET /api/system/overview");
  return tasks.pending + tasks.running;
}

/** Counts the completed runs of each task. */
async function countCompletedRuns(api: Client): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let page = 1;; page++) {
    const runs: { task_id: string; status: string }[] = await api.call(
      `GET /api/executions?status=completed&page_size=100&page=${page}`,
    );
    for (const { task_id } of runs) counts.set(task_id, (counts.get(task_id) ?? 0) + 1);
    if (runs.length < 100) return counts;
  }
}

function formatTimes(times: number[]): string {
  const sorted = [...times].sort((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const seconds = (ms: number) => (ms / 1_000).toFixed(2);
  return `${times.length} times: p50 ${seconds(middle)} s, max ${seconds(sorted.at(-1) ?? 0)} s`;
}
