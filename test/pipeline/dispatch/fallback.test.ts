import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { waitUntil } from "../../harness/wait.ts";
import { openPlatforms } from "../../platform/worlds/open.ts";
import { TelegramWorld } from "../../platform/worlds/telegram.ts";

const FAKE_CLAUDE = new URL("../../harness/fakes/fake_claude.sh", import.meta.url).pathname;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const FIRST_LINE = "second replaces first, which is rate limited or cannot be used.\n\n";

function buildEngine(name: string, more: object = {}) {
  return { kind: "claude", command: FAKE_CLAUDE, env: { ANTHROPIC_API_KEY: "x", FAKE_NAME: name }, ...more };
}

interface Engines {
  first?: object;
  second?: object;
  third?: object;
}

async function open({ first, second, third }: Engines = {}) {
  const clock = new TestClock(Date.now());
  const app = await openApp({
    clock,
    config: {
      engines: {
        default: "first",
        first: buildEngine("first", {
          fallback: third === undefined ? ["second"] : ["second", "third"],
          ...first,
        }),
        second: buildEngine("second", second),
        ...(third === undefined ? {} : { third: buildEngine("third", third) }),
      },
    },
  });
  return { app, clock };
}

async function setUp(app: App, more: object = {}) {
  const worker = await app.call("POST /api/workers", { name: "Ada", fallback: true, ...more });
  const session = await app.call("POST /api/local/sessions", { worker_id: worker.id });
  const key = `local:${session.id}`;
  const path = (name: string) => join(worker.work_dir, name);
  const messages = () => app.call(`GET /api/local/sessions/${session.id}/messages`);
  return {
    worker,
    key,
    messages,
    tasks: () => app.call(`GET /api/tasks?worker_id=${worker.id}`),
    /** Sends a message, waits until nothing can run, and returns the last message of the conversation. */
    async ask(content: string): Promise<string> {
      await app.call(`POST /api/local/sessions/${session.id}/messages`, { content });
      await app.settle();
      return (await messages()).at(-1).content;
    },
    limit: (engine: string, seconds = "") => Deno.writeTextFile(path(`limited.${engine}`), seconds),
    refuse: (engine: string) => Deno.writeTextFile(path(`refused.${engine}`), ""),
    free: (engine: string) => Deno.remove(path(`limited.${engine}`)),
    prompt: (engine: string) => Deno.readTextFile(path(`prompt.${engine}`)),
    sessions: async (engine: string) =>
      (await Deno.readTextFile(path(`sessions.${engine}`)).catch(() => "")).split("\n").filter(Boolean),
    runs: async () =>
      (await app.call("GET /api/executions")).reverse().map((
        { engine, fallback_from, status }: Record<string, string>,
      ) => [engine, fallback_from, status].filter(Boolean).join(" ")),
  };
}

describe("fallback [FBK-1]", () => {
  it("lets the next engine run what the first one cannot for an hour, and then gives the first what it missed", async () => {
    const { app, clock } = await open();
    await using _app = app;
    const ada = await setUp(app);
    expect(await ada.ask("as one")).toBe("first says one");
    await ada.limit("first", "3600");
    expect(await ada.ask("as two")).toBe(`${FIRST_LINE}second says two`);
    expect(await ada.prompt("second")).toMatch(
      /# The conversation so far\n\n.*user: as one\n.*answer: first says one\n\n# The message/,
    );
    // The second engine has a separate session, which it continues.
    expect(await ada.ask("as three")).toBe(`${FIRST_LINE}second says three`);
    expect(await ada.prompt("second")).not.toContain("The conversation so far");
    expect(new Set(await ada.sessions("second")).size).toBe(1);
    expect(await ada.runs()).toEqual([
      "first completed",
      "first failed",
      "second first completed",
      "second first completed",
    ]);
    const [own] = await ada.sessions("first");
    expect(await app.call(`GET /api/contexts?session_key=${ada.key}`)).toMatchObject([
      { engine: "first", session_id: own },
    ]);
    // No message says that the worker has to wait.
    expect((await ada.messages()).map(({ content }: { content: string }) => content)).toEqual([
      ...["as one", "first says one", "as two", `${FIRST_LINE}second says two`, "as three"],
      `${FIRST_LINE}second says three`,
    ]);
    await ada.free("first");
    clock.advance(HOUR_MS + MINUTE_MS);
    expect(await ada.ask("as four")).toBe("first says four");
    const prompt = await ada.prompt("first");
    expect(prompt).toMatch(
      /so far\n\n.*user: as two\n.*answer: second replaces.*\n\nsecond says two\n.*user: as three\n.*answer: .*\n\nsecond says three\n\n# The message/,
    );
    expect(prompt).not.toContain("as one");
    expect(new Set(await ada.sessions("first"))).toEqual(new Set([own]));
    expect(await ada.ask("as five")).toBe("first says five");
    expect(await ada.prompt("first")).not.toContain("The conversation so far");
  });

  it("counts for the budgets of both engines", async () => {
    const { app } = await open();
    await using _app = app;
    const ada = await setUp(app);
    const createBudget = (engine: string, limit: number) =>
      app.call("POST /api/budgets", {
        name: engine,
        target: `engine:${engine}`,
        unit: "runs",
        limit,
        period: "24h",
      });
    await createBudget("first", 3);
    await createBudget("second", 10);
    await ada.limit("first", "3600");
    expect(await ada.ask("as one")).toBe(`${FIRST_LINE}second says one`);
    expect(await ada.ask("as two")).toBe(`${FIRST_LINE}second says two`);
    const used = (await app.call("GET /api/budgets")).map(({ name, used }: Record<string, unknown>) => [
      name,
      used,
    ]);
    // The first engine has the run that met its limit, too.
    expect(Object.fromEntries(used)).toEqual({ first: 3, second: 2 });
    // Another engine is no way around the budget of the first.
    await ada.ask("as three");
    const [task] = await ada.tasks();
    expect(task).toMatchObject({ status: "pending", held_by: { kind: "budget" } });
  });

  it("waits for a short limit, and for one whose end is unknown until fallback_after has passed", async () => {
    const { app, clock } = await open({ first: { fallback_after: "3m" } });
    await using _app = app;
    const ada = await setUp(app);
    await ada.limit("first", "100");
    await ada.ask("as short");
    expect(await ada.runs()).toEqual(["first failed"]);
    await ada.free("first");
    clock.advance(2 * MINUTE_MS);
    await app.settle();
    await ada.limit("first");
    await ada.ask("as unknown");
    clock.advance(MINUTE_MS);
    await app.until("engine.limited", 3);
    expect((await ada.runs()).slice(1)).toEqual(["first completed", "first failed", "first failed"]);
    clock.advance(2 * MINUTE_MS);
    await app.until("task.completed", 2);
    expect((await ada.runs()).at(-1)).toBe("second first completed");
  });

  it("skips an engine that is limited, and waits when each one is", async () => {
    const { app, clock } = await open({ third: {} });
    await using _app = app;
    const ada = await setUp(app);
    await ada.limit("first", "7200");
    await ada.limit("second", "3600");
    expect(await ada.ask("as one")).toMatch(/^third replaces first, .*\n\nthird says one$/s);
    await ada.limit("third", "7200");
    expect(await ada.ask("as two")).toMatch(/^Ada has to wait: third is rate limited; resumes at/);
    const [task] = await ada.tasks();
    expect(task).toMatchObject({ status: "pending", attempt: 0 });
    await ada.free("second");
    clock.advance(HOUR_MS + MINUTE_MS);
    await app.until("task.completed", 2);
    expect((await ada.runs()).slice(-2)).toEqual(["third first failed", "second first completed"]);
  });

  it("keeps an attempt that has said something on its engine", async () => {
    const { app, clock } = await open();
    await using _app = app;
    const ada = await setUp(app);
    await ada.limit("first", "3600");
    expect(await ada.ask("as speak")).toMatch(/^Ada has to wait: first is rate limited/);
    expect(await ada.runs()).toEqual(["first failed"]);
    await ada.free("first");
    clock.advance(HOUR_MS + MINUTE_MS);
    await app.until("task.completed");
    expect(await ada.runs()).toEqual(["first failed", "first completed"]);
  });

  it("replaces an engine whose program or login is missing, until it is back", async () => {
    const { app } = await open({ first: { command: "/nowhere/claude" } });
    await using _app = app;
    const ada = await setUp(app);
    expect(await ada.ask("as one")).toBe(`${FIRST_LINE}second says one`);
    expect(await ada.runs()).toEqual(["second first completed"]);
    // The worker is usable, and its status names the engine that runs it.
    await app.call("GET /api/engines");
    const route = `GET /api/workers/${ada.worker.id}`;
    expect((await app.call(route)).status).toBe("idle");
    expect(await app.call(`${route}/status`)).toMatchObject({
      ...{ status: "idle", engine: "first", usable: true },
      detail: expect.stringMatching(/^second runs it: \/nowhere\/claude/),
    });
    const { app: other } = await open({ first: { env: { FAKE_NAME: "first" } } });
    await using _other = other;
    const bob = await setUp(other);
    expect(await bob.ask("as two")).toBe(`${FIRST_LINE}second says two`);
    const login = join(other.server.parts.paths.state, bob.worker.id, "first");
    await Deno.mkdir(login, { recursive: true });
    await Deno.writeTextFile(join(login, ".credentials.json"), "{}");
    expect(await bob.ask("as three")).toBe("first says three");
    expect(await bob.prompt("first")).toMatch(/so far\n\n.*user: as two\n/);
  });

  it("replaces an engine whose login the provider refuses, in the same attempt", async () => {
    const { app } = await open({ third: {} });
    await using _app = app;
    const ada = await setUp(app);
    await ada.refuse("first");
    await ada.refuse("second");
    expect(await ada.ask("as one")).toMatch(/^third replaces first, .*\n\nthird says one$/s);
    expect(await ada.runs()).toEqual(["first failed", "second first failed", "third first completed"]);
    expect((await ada.tasks())[0]).toMatchObject({ status: "completed", attempt: 1 });
    await ada.refuse("third");
    expect(await ada.ask("as two")).toMatch(
      /^third replaces first, .*\n\nAda failed: engine_error, auth: Invalid API key/,
    );
    expect((await ada.runs()).length).toBe(6);
  });

  it("lets the next engine run a schedule that meets a limit", async () => {
    const { app } = await open();
    await using _app = app;
    const ada = await setUp(app);
    await ada.limit("first", "3600");
    const task = await app.call("POST /api/tasks", {
      ...{ message_id: "script", worker_id: ada.worker.id, instruction: "as one" },
      ...{ type: "scheduled", cron: "0 0 1 1 *" },
    });
    await app.call(`POST /api/tasks/${task.id}/run`);
    await app.until("execution.completed");
    await app.settle();
    expect(await ada.runs()).toEqual(["first failed", "second first completed"]);
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({
      ...{ status: "scheduled", last_status: "completed", failures_in_row: 0 },
    });
  });

  it("leaves a worker alone that has not opted in", async () => {
    const { app } = await open();
    await using _app = app;
    const ada = await setUp(app, { fallback: false });
    await ada.limit("first", "3600");
    expect(await ada.ask("as one")).toMatch(/^Ada has to wait/);
    expect(await ada.runs()).toEqual(["first failed"]);
  });

  it("forgets the session of the second engine with a clear", async () => {
    const { app } = await open();
    await using _app = app;
    const ada = await setUp(app);
    await ada.limit("first", "3600");
    await ada.ask("as one");
    const cleared = await app.call(`DELETE /api/contexts?session_key=${ada.key}`);
    expect(cleared.cleared_contexts).toBe(1);
    expect(await app.db.read("select * from session_context")).toEqual([]);
    await ada.ask("as two");
    expect(await ada.prompt("second")).not.toContain("as one");
    expect(new Set(await ada.sessions("second")).size).toBe(2);
  });

  it("forgets the session of the second engine with /new and keeps it from the first", async () => {
    await using world = new TelegramWorld();
    const clock = new TestClock(Date.now());
    const engines = {
      default: "first",
      first: buildEngine("first", { fallback: ["second"] }),
      second: buildEngine("second"),
    };
    const phone = { ...world.config, worker: "Ada", allow: ["*"] };
    await using app = await openPlatforms({ phone }, {
      clock,
      config: { engines, bee: { quiet_window: "0ms" } },
    });
    const [worker] = await app.call("GET /api/workers");
    await app.call(`PUT /api/workers/${worker.id}`, { fallback: true });
    const path = (name: string) => join(worker.work_dir, name);
    const hear = async (content: string, answer: string) => {
      await world.say(content);
      await waitUntil(answer, () => world.sent().some(({ text }) => text.endsWith(answer)));
    };
    await Deno.writeTextFile(path("limited.first"), "3600");
    await hear("as one", "second says one");
    clock.advance(1);
    await hear("/new", "Running tasks continue.");
    expect(await app.db.read("select * from session_context")).toEqual([]);
    clock.advance(1);
    await hear("as two", "second says two");
    expect(await Deno.readTextFile(path("prompt.second"))).not.toContain("as one");
    await Deno.remove(path("limited.first"));
    clock.advance(HOUR_MS + MINUTE_MS);
    await hear("as three", "first says three");
    const prompt = await Deno.readTextFile(path("prompt.first"));
    expect([prompt.includes("as two"), prompt.includes("as one")]).toEqual([true, false]);
  });
});
