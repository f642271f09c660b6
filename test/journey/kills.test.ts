import { join } from "node:path";
import { expect, it } from "vitest";
import { FAKE_AGENT } from "../harness/agents.ts";
import { type ServerProcess, startServer, tempDir } from "../harness/process.ts";
import { random } from "../harness/schedule.ts";
import { PASS_HASH } from "../harness/client.ts";

// CI runs fifty kills and three hundred tasks.
const KILLS = Number(Deno.env.get("SVC_TEST_KILLS") ?? 4);
const TASKS = KILLS * 6;
const WORKERS = 6;
const SEED = Number(Deno.env.get("SVC_TEST_SEED") ?? Date.now() % 100_000);

it(
  `${KILLS} kills at random during ${TASKS} tasks of all types: nothing is lost, doubled or stuck (seed ${SEED}) [DUR-1, DSP-1]`,
  async () => {
    await using folder = await tempDir();
    const dataDir = join(folder.path, "data");
    const ledger = join(folder.path, "ledger");
    await Deno.mkdir(dataDir);
    await Deno.writeTextFile(ledger, "");
    const env = {
      SVC_AUTH__PASSWORD_HASH: PASS_HASH,
      SVC_ENGINES__DEFAULT: "fake",
      SVC_ENGINES__FAKE__KIND: "command",
      SVC_ENGINES__FAKE__COMMAND: FAKE_AGENT,
      SVC_ENGINES__FAKE__ENV__FAKE_LEDGER: ledger,
      SVC_LIMITS__MAX_ATTEMPTS: "5",
    };
    const chance = random(SEED);
    let server = await startServer({ dataDir, env });
    let token = await login(server);
    const workers: string[] = [];
    for (let i = 0; i < WORKERS; i++) {
      workers.push((await call(server, token, "POST /api/workers", { name: `w${i}` })).id);
    }

    const accepted = new Map<string, string>();
    let sent = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const until = performance.now() + 150 + chance() * 700;
      const working = (async () => {
        while (performance.now() < until && sent < TASKS * (kill + 1) / KILLS) {
          const key = `task-${sent}`;
          const body = taskBody(workers[sent % WORKERS] ?? "", chance());
          try {
            const task = await call(server, token, "POST /api/tasks", body, { "idempotency-key": key });
            accepted.set(task.id, body.type);
            sent++;
          } catch {
            // The server was killed before it answered: the same key is sent again to the next one.
            return;
          }
        }
      })();
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, until - performance.now())));
      await server.end("SIGKILL");
      await working;
      server = await startServer({ dataDir, env });
      token = await login(server);
    }
    await settled(server, token, workers);

    const statuses = new Map<string, number>();
    for (const worker of workers) {
      for (const task of await all(server, token, `/api/tasks?worker_id=${worker}`)) {
        statuses.set(task.id, (statuses.get(task.id) ?? 0) + 1);
        if (task.type === "scheduled") {
          expect(task, task.id).toMatchObject({ status: "scheduled", next_run_at: expect.any(Number) });
        } else if (task.type === "countdown" && task.status === "scheduled") {
          expect(task.next_run_at).toBeGreaterThan(Date.now() - 2_000);
        } else expect(["completed", "failed"], JSON.stringify(task)).toContain(task.status);
        if (task.status === "failed") expect(task.reason).toMatch(/server_lost/);
        expect(task.attempt).toBeLessThanOrEqual(5);
      }
    }
    for (const id of accepted.keys()) expect(statuses.get(id), id).toBe(1);
    expect(statuses.size).toBeGreaterThanOrEqual(accepted.size);

    const lines = (await Deno.readTextFile(ledger)).trim().split("\n");
    expect(lines.filter((line) => line.startsWith("start")).length).toBeGreaterThanOrEqual(accepted.size / 2);
    expect(lines.filter((line) => line.startsWith("OVERLAP"))).toEqual([]);
    expect(await server.end("SIGTERM")).toMatchObject({ code: 0 });
  },
  180_000 + KILLS * 4_000,
);

function taskBody(worker_id: string, dice: number) {
  const base = { message_id: "kills", worker_id, instruction: `sleep ${(dice * 0.4).toFixed(2)}` };
  if (dice < 0.6) return { ...base, type: "immediate" };
  if (dice < 0.85) {
    return { ...base, type: "countdown", scheduled_at: Date.now() + 5_200 + Math.floor(dice * 1_000) };
  }
  return { ...base, type: "scheduled", cron: "* * * * *" };
}

async function login(server: ServerProcess): Promise<string> {
  const response = await fetch(`${server.url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ username: "admin", password: "pass" }),
  });
  return (await response.json()).access_token;
}

async function call(
  server: ServerProcess,
  token: string,
  route: string,
  body?: unknown,
  headers: Record<string, string> = {},
) {
  const [method = "GET", path = ""] = route.split(" ");
  const response = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(JSON.stringify(answer));
  return answer;
}

async function all(server: ServerProcess, token: string, path: string) {
  const found = [];
  for (let page = 1;; page++) {
    const rows = await call(server, token, `GET ${path}&page=${page}&page_size=100`);
    found.push(...rows);
    if (rows.length < 100) return found;
  }
}

/** Waits until no task of these workers is pending or running, or due. */
async function settled(server: ServerProcess, token: string, workers: string[]): Promise<void> {
  const until = performance.now() + 60_000;
  while (performance.now() < until) {
    let open = 0;
    for (const worker of workers) {
      const { pending, running } = await call(server, token, `GET /api/workers/${worker}/status`);
      const soon =
        (await all(server, token, `/api/tasks?worker_id=${worker}&status=scheduled&type=countdown`)).length;
      open += pending + running + soon;
    }
    // Schedules of every minute may start at any time; only they may be left.
    if (open === 0) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  throw new Error("the tasks did not settle");
}
