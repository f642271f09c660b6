// Kills the server at each fault point and starts it again (docs/reliability.md).
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { FAULT_POINTS, type FaultPoint } from "../../../src/base/fault_point.ts";
import { createId } from "../../../src/base/id.ts";
import { Database } from "../../../src/store/db/database.ts";
import { PASSWORD, PASSWORD_HASH } from "../../harness/service/app.ts";
import { type Client, waitUntilQuiet } from "../../harness/service/client.ts";
import { insertRows } from "../../harness/model/counters.ts";
import { svc } from "../../harness/service/process.ts";
import { World } from "../../harness/model/scenario.ts";
import { checkAtAnyMoment, checkAtRest, type Evidence } from "../../torture/checker.ts";
import { createSchedule, readRows } from "../../harness/model/workload.ts";

// The daily run omits these points: CI passes each one in a separate step, the nightly run twenty times.
const LEFT_OUT = !Deno.env.has("SVC_TEST_FAULT_SEEDS");
const SEEDS = Number(Deno.env.get("SVC_TEST_FAULT_SEEDS") ?? 1);
// Number of kills between commit and response. CI runs fifty.
const RETRIES = Number(Deno.env.get("SVC_TEST_FAULT_RETRIES") ?? 2);

const OPTIONS = {
  password: PASSWORD,
  env: { SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH, SVC_LIMITS__MAX_ATTEMPTS: "5" },
};

/** A world with one conversation, and the evidence of every acknowledgment in it. */
class Talk implements AsyncDisposable {
  readonly world: World;
  readonly evidence: Evidence & { messages: string[]; once: string[]; uploads: string[] };
  sessionId = "";

  private constructor(world: World) {
    this.world = world;
    this.evidence = {
      dataDir: world.dataDir,
      messages: [],
      once: [],
      uploads: [],
      agentLedger: world.ledger,
      maxAttempts: 5,
      secrets: [PASSWORD],
    };
  }

  static async open(): Promise<Talk> {
    return new Talk(await World.open(OPTIONS));
  }

  /** Creates a worker and a session without faults, and `due` tasks that are due at the next start. */
  async prepare(due = 0): Promise<void> {
    const { server, api } = await this.world.start();
    const worker = await api.call("POST /api/workers", { name: "Ada" });
    this.sessionId = (await api.call("POST /api/local/sessions", { worker_id: worker.id })).id;
    await server.end("SIGTERM");
    await using db = await Database.open(`file:${this.world.database}`);
    const now = Date.now();
    for (let i = 0; i < due; i++) {
      await db.write(insertRows("task", [{
        id: createId(),
        message_id: "due",
        worker_id: worker.id,
        session_key: "cli:due",
        instruction: "ok",
        type: "scheduled",
        cron: "0 0 1 1 *",
        status: "scheduled",
        next_run_at: now - 60_000,
        created_by: "x",
        created_at: now,
        updated_at: now,
      }]));
      // No platform accepts this message, so the outbox fails it after the first attempt.
      await db.write(insertRows("outbound_message", [{
        id: createId(),
        session_key: "elsewhere:1",
        platform: "elsewhere",
        message_id: "m",
        content: "hello",
        status: "failed",
        source_type: "system",
        due_at: now,
        created_at: now,
      }]));
    }
  }

  /** Sends a message with a key, and repeats it until a server responds. */
  async say(api: Client, content: string): Promise<boolean> {
    this.evidence.once.push(content);
    return await this.sayAgain(api, content);
  }

  async sayAgain(api: Client, content: string): Promise<boolean> {
    try {
      const route = `POST /api/local/sessions/${this.sessionId}/messages`;
      const answer = await api.call(route, { content }, { "idempotency-key": content.replaceAll(" ", "-") });
      this.evidence.messages.push(answer.message_id);
      return true;
    } catch (error) {
      if (error instanceof TypeError) return false;
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.world[Symbol.asyncDispose]();
  }
}

/** Repeats requests that pass the fault point until the server is dead. */
const WAYS: Partial<Record<FaultPoint, (talk: Talk, api: Client, gone: () => boolean) => Promise<void>>> = {
  "upload.part": async (talk, api, gone) => {
    for (let i = 0; !gone(); i++) {
      const form = new FormData();
      form.append("file", new Blob([new Uint8Array(300_000).fill(i)]), `file-${i}`);
      const media = await api.upload(`/api/local/sessions/${talk.sessionId}/media`, form).catch(() => null);
      if (media?.path !== undefined) talk.evidence.uploads.push(media.path);
    }
  },
  "gate.pre-commit": async (_talk, api, gone) => {
    const worker = await api.call("POST /api/workers", { name: "Gus", engine: "echo" });
    const gate = { command: ["sh", "-c", "echo asked >>asked"] };
    const id = await createSchedule(api, worker.id, "ok", { gate });
    while (!gone()) {
      try {
        const { run_no } = await api.call(`POST /api/tasks/${id}/run`, {});
        await api.call(`GET /api/tasks/${id}/wait?run_no=${run_no}`);
      } catch {
        if (gone()) return;
      }
    }
  },
  "cancel.mid": async (talk, api, gone) => {
    for (let i = 0; !gone(); i++) {
      if (!await talk.say(api, `sleep 60 # ${i}`)) return;
      let run: { id: string } | undefined;
      while (run === undefined) [run] = await api.call("GET /api/executions?status=running");
      await api.send(`POST /api/executions/${run.id}/cancel`, {}).catch(() => {});
    }
  },
  "backup.mid": async (talk, api, gone) => {
    for (let i = 0; !gone(); i++) {
      const env = { SVC_URL: api.url, SVC_TOKEN: api.token };
      const made = await svc(["ctl", "system", "backup", talk.world.path(`${i}.tar`)], {
        dataDir: talk.world.dataDir,
        env,
      });
      expect(await Deno.stat(talk.world.path(`${i}.tar`)).then(() => true, () => false)).toBe(
        made.code === 0,
      );
    }
    expect([...Deno.readDirSync(talk.world.path("."))].filter((entry) => entry.name.includes(".part")))
      .toEqual([]);
  },
};

async function sayAll(talk: Talk, api: Client, gone: () => boolean): Promise<void> {
  for (let i = 0; !gone(); i++) if (!await talk.say(api, `say hello ${i}`)) return;
}

vi.setConfig({ testTimeout: 120_000 + SEEDS * 60_000 + RETRIES * 6_000 });

describe.skipIf(LEFT_OUT)(
  `kill -9 at each of ${FAULT_POINTS.length} places, ${SEEDS} times each [DUR-2, DUR-3, BAK-3, UPL-5]`,
  () => {
    // Other tests pass the points of key rotation and of words to a run.
    for (
      const point of FAULT_POINTS.filter((one) =>
        !/^(migrate|rotate|steer|tree|repo|push|device|launch)\./.test(one)
      )
    ) {
      it(`${point}: no state is half done after the kill, and all work is done after the next start [DUR-3]`, async () => {
        for (let round = 1; round <= SEEDS; round++) {
          // A cancelled run takes seconds to end, so only the first passages are tried.
          const seed = point === "cancel.mid" ? 1 + (round - 1) % 3 : round;
          await using talk = await Talk.open();
          const early = point === "cron.tick" || point === "outbox.post";
          await talk.prepare(early ? SEEDS : 0);
          if (early) {
            // Due work kills the server before a client can connect.
            const dead = await svc(["serve"], {
              dataDir: talk.world.dataDir,
              env: { ...talk.world.env, SVC_FAULT: `${point}:${seed}:kill` },
            });
            expect([point, seed, dead.err]).toEqual([
              point,
              seed,
              expect.stringContaining("SVC_FAULT fired"),
            ]);
          } else {
            const { server, api } = await talk.world.start(`${point}:${seed}:kill`);
            let ended = false;
            void server.ended.then(() => ended = true);
            await (WAYS[point] ?? sayAll)(talk, api, () => ended);
            const { signal } = await server.end("SIGTERM");
            expect([point, seed, signal, server.stderr]).toEqual([
              point,
              seed,
              "SIGKILL",
              expect.stringContaining(`SVC_FAULT fired: ${point}:${seed}:kill\n`),
            ]);
          }
          expect([point, seed, await checkAtAnyMoment(talk.world.dataDir)]).toEqual([point, seed, []]);
          const again = await talk.world.start();
          for (const content of talk.evidence.once) await talk.sayAgain(again.api, content);
          await waitUntilQuiet(again.api);
          expect(await again.server.end("SIGTERM")).toMatchObject({ code: 0 });
          expect([point, seed, await checkAtRest(talk.evidence)]).toEqual([point, seed, []]);
        }
      });
    }

    it("migrate.step: the next start continues the migration, and does nothing twice [BAK-5, SHD-9]", async () => {
      for (let step = 1; step <= 3; step++) {
        await using talk = await Talk.open();
        const dead = await svc(["serve"], {
          dataDir: talk.world.dataDir,
          env: { ...talk.world.env, SVC_FAULT: `migrate.step:${step}:kill` },
        });
        expect(dead.err).toContain(`SVC_FAULT fired: migrate.step:${step}:kill`);
        await talk.prepare();
        const { server, api } = await talk.world.start();
        await talk.say(api, "say hello");
        await waitUntilQuiet(api);
        await server.end("SIGTERM");
        expect([step, await checkAtRest(talk.evidence)]).toEqual([step, []]);
        const db = await Database.open(`file:${talk.world.database}`);
        const schema = await readSchema(db);
        await db.close();
        expect([step, schema]).toEqual([step, await buildSchema()]);
      }
    });
  },
);

it(`${RETRIES} kills between commit and response, with a retry under the same key: each message exists once [DUR-2]`, async () => {
  await using talk = await Talk.open();
  await talk.prepare();
  for (let k = 1; k <= RETRIES; k++) {
    const { server, api } = await talk.world.start("accept.post-commit:1:kill");
    expect(await talk.say(api, `say number ${k}`)).toBe(false);
    expect((await server.end("SIGKILL")).signal).toBe("SIGKILL");
    expect(server.stderr).toContain("SVC_FAULT fired");
  }
  const { server, api } = await talk.world.start();
  const before = await api.call("GET /api/messages/inbound?page_size=100");
  expect(before).toHaveLength(Math.min(RETRIES, 100));
  for (const content of talk.evidence.once) expect(await talk.sayAgain(api, content)).toBe(true);
  expect(await api.call("GET /api/messages/inbound?page_size=100")).toHaveLength(Math.min(RETRIES, 100));
  await waitUntilQuiet(api);
  await server.end("SIGTERM");
  expect(await checkAtRest(talk.evidence)).toEqual([]);
});

it("the log of a run is on the disk before its outcome [DUR-9]", async () => {
  await using talk = await Talk.open();
  await talk.prepare();
  for (let k = 1; k <= RETRIES; k++) {
    const { server, api } = await talk.world.start("outcome.post-commit:1:kill");
    await talk.say(api, `say the last words ${k}`);
    await server.ended;
    expect(server.stderr).toContain("SVC_FAULT fired: outcome.post-commit:1:kill");
    const [run] = await readRows<{ id: string; result: string }>(
      talk.world.dataDir,
      "select id, result from execution where status = 'completed' and completed_at is not null order by completed_at desc, id desc limit 1",
    );
    const id = run?.id ?? "";
    const log = await Deno.readTextFile(join(talk.world.dataDir, "logs", id.slice(-2), `${id}.log`));
    expect(log).toMatch(new RegExp(`Z ${run?.result || "ok"}\n.*\\[completed\\]\n$`));
  }
});

it("a stored reply that was not delivered reaches a reconnecting client once [DUR-4]", async () => {
  await using talk = await Talk.open();
  await talk.prepare();
  const { server, api } = await talk.world.start("outcome.post-commit:1:kill");
  const before = await api.stream(talk.sessionId);
  await talk.say(api, "say hello");
  await server.ended;
  await before.close();
  expect(server.stderr).toContain("SVC_FAULT fired: outcome.post-commit:1:kill");
  expect(before.named("message")).toEqual([]);
  const lastId = before.events.findLast((event) => event.id !== undefined)?.id ?? "0";
  const again = await talk.world.start();
  const after = await again.api.stream(talk.sessionId, { "last-event-id": lastId });
  await after.until((one) => one.named("message").length > 0);
  await waitUntilQuiet(again.api);
  expect(after.named("message").map(({ data }) => data.content)).toEqual(["hello"]);
  await after.close();
  await again.server.end("SIGTERM");
  expect(await checkAtRest(talk.evidence)).toEqual([]);
});

it("SVC_FAULT with an invalid value returns exit 2; without SVC_FAULT no fault code is loaded", async () => {
  await using talk = await Talk.open();
  for (const wrong of ["nowhere:1:kill", "claim.post:0:kill", "claim.post:1:explode", "claim.post", ","]) {
    const refused = await svc(["serve"], { dataDir: talk.world.dataDir, env: { SVC_FAULT: wrong } });
    expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("SVC_FAULT") });
  }
  await talk.prepare(20);
  const { server, api } = await talk.world.start();
  const { tasks } = await api.call("GET /api/system/overview");
  expect(tasks.total).toBe(20);
  await server.end("SIGTERM");
  expect(server.stderr).not.toContain("SVC_FAULT");
});

async function readSchema(db: Database): Promise<unknown[]> {
  return await db.read(
    "select type, name, sql from sqlite_master where name not like 'sqlite_%' order by type, name",
  );
}

async function buildSchema(): Promise<unknown[]> {
  const { migrate } = await import("../../../src/store/db/migrate.ts");
  const db = await Database.open(":memory:");
  await migrate(db, 0);
  const schema = await readSchema(db);
  await db.close();
  return schema;
}
