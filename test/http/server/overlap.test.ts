import { describe, expect, it } from "vitest";
import type { EventKind } from "../../../src/domain/call/vocabulary.ts";
import { type App, openApp, type Reply } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";

const NOW = Date.parse("2026-01-05T08:00:00Z");
const MINUTE_MS = 60_000;

// deno-lint-ignore no-explicit-any
type Json = any;

/** Runs `work` until it would write this event, and blocks the write until `resume` is called. */
async function blockBefore(app: App, kind: EventKind, work: () => Promise<Reply<Json>>) {
  const write = app.db.write.bind(app.db);
  const reached = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  app.db.write = async (statements, ...more) => {
    if (!statements.some(({ args }) => args.includes(kind))) return await write(statements, ...more);
    app.db.write = write;
    reached.resolve();
    await free.promise;
    return await app.db.write(statements, ...more);
  };
  const done = work();
  await reached.promise;
  return {
    resume: () => {
      free.resolve();
      return done;
    },
  };
}

/** Lets both changes read before the first write. Writes happen in order. */
async function overlapping(app: App, kind: EventKind, route: string, changes: readonly [object, object]) {
  const [first, second] = changes;
  const one = await blockBefore(app, kind, () => app.send(route, first));
  const other = await blockBefore(app, kind, () => app.send(route, second));
  const replies = [await one.resume(), await other.resume()];
  expect(replies.map(({ status, body }) => [status, body.detail])).toEqual(Array(2).fill([200, undefined]));
}

/** A pair of changes in both orders. */
function bothOrders<T>(one: T, other: T): [T, T][] {
  return [[one, other], [other, one]];
}

describe("simultaneous PUT /api/webhooks/:id_or_name", () => {
  const hook = { name: "out", url: "https://example.org/hook", events: ["budget.hard"] };

  it.each([
    ...bothOrders<object>({ enabled: false }, { events: ["budget.soft"] }),
    ...bothOrders<object>({ enabled: false }, { url: "https://example.org/other" }),
  ])("applies both changes: %j and %j", async (...changes) => {
    await using app = await openApp({ inMemory: true });
    await app.call("POST /api/webhooks", hook);
    await overlapping(app, "webhook.updated", "PUT /api/webhooks/out", changes);
    expect(await app.call("GET /api/webhooks/out")).toMatchObject(Object.assign({}, hook, ...changes));
  });

  it("a webhook that the service disables meanwhile stays disabled with its reason", async () => {
    await using app = await openApp({ inMemory: true });
    await app.call("POST /api/webhooks", hook);
    const events = ["budget.soft"];
    const put = (change: object) => app.send("PUT /api/webhooks/out", change);
    const change = await blockBefore(app, "webhook.updated", () => put({ events }));
    const off = "update webhook set enabled = 0, disabled_reason = 'it answered 410'";
    await app.db.write([{ sql: off, args: [] }]);
    const switchedOff = { events, enabled: false, disabled_reason: "it answered 410" };
    expect((await change.resume()).body).toMatchObject(switchedOff);
    expect((await put({ enabled: false })).body).toMatchObject(switchedOff);
    expect((await put({ enabled: true })).body).toMatchObject({ events, enabled: true, disabled_reason: "" });
  });
});

it("simultaneous PUT /api/local/sessions/:id apply both changes", async () => {
  await using app = await openApp({ inMemory: true });
  const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
  for (const changes of bothOrders<object>({ name: "Plans" }, { worker_id })) {
    const { id } = await app.call("POST /api/local/sessions", { name: "Ideas" });
    await overlapping(app, "chat.updated", `PUT /api/local/sessions/${id}`, changes);
    expect(await app.call(`GET /api/local/sessions/${id}`)).toMatchObject({ name: "Plans", worker_id });
  }
});

describe("simultaneous PUT /api/tasks/:id (contract 15)", () => {
  const open = () => openApp({ clock: new TestClock(NOW), inMemory: true });

  async function make(app: App, more: object): Promise<string> {
    const { id: worker_id } = await app.call("POST /api/workers", { name: "Ada" });
    const task = { message_id: "m", worker_id, instruction: "say hi", ...more };
    return (await app.call("POST /api/tasks", task)).id;
  }

  const daily = { type: "scheduled", cron: "0 12 * * *" };
  const paused = { ...daily, paused: true };
  const once = { type: "countdown", scheduled_at: NOW + 20 * MINUTE_MS, paused: true };
  const ten = { cron: "0 10 * * *" };

  it.each([
    // Ten in Berlin is nine in UTC.
    ...bothOrders<object>(ten, { time_zone: "Europe/Berlin" }).map((pair) => [daily, pair, 60] as const),
    ...bothOrders<object>(ten, { paused: false }).map((pair) => [paused, pair, 120] as const),
    ...bothOrders<object>(ten, { until: NOW + 150 * MINUTE_MS }).map((pair) =>
      [{ ...daily, cron: "0 9 * * *" }, pair, 120] as const
    ),
    ...bothOrders<object>({ scheduled_at: NOW + 30 * MINUTE_MS }, { paused: false }).map((pair) =>
      [once, pair, 30] as const
    ),
  ])("apply both changes, also to the next time: %j, %j", async (task, changes, minutes) => {
    await using app = await open();
    const id = await make(app, task);
    await overlapping(app, "task.updated", `PUT /api/tasks/${id}`, changes);
    expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({
      ...Object.assign({}, ...changes),
      next_run_at: NOW + minutes * MINUTE_MS,
    });
    const events = await app.call("GET /api/events?kind=task.updated", undefined, {
      accept: "application/json",
    });
    expect(events).toHaveLength(2);
  });

  it("a change that contradicts an earlier one is refused", async () => {
    await using app = await open();
    const id = await make(app, { ...daily, ...ten });
    const put = (change: object) => app.send(`PUT /api/tasks/${id}`, change);
    const late = await blockBefore(app, "task.updated", () => put({ cron: "0 11 * * *" }));
    expect((await put({ until: NOW + 150 * MINUTE_MS })).status).toBe(200);
    const { status, body } = await late.resume();
    expect([status, body.errors?.[0].path]).toEqual([400, "until"]);
    expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({
      ...ten,
      next_run_at: NOW + 120 * MINUTE_MS,
    });
  });

  it("a task that ends meanwhile does not change", async () => {
    await using app = await open();
    const id = await make(app, daily);
    const change = await blockBefore(app, "task.updated", () => app.send(`PUT /api/tasks/${id}`, ten));
    await app.call(`POST /api/tasks/${id}/cancel`, {});
    const { status, body } = await change.resume();
    expect([status, body.detail]).toEqual([409, expect.stringContaining(`Cannot change task ${id}`)]);
    expect(await app.call(`GET /api/tasks/${id}`)).toMatchObject({ cron: daily.cron, status: "cancelled" });
  });

  it("a change that loses every race gives up", async () => {
    await using app = await open();
    const id = await make(app, daily);
    const write = app.db.write.bind(app.db);
    let tries = 0;
    app.db.write = (statements, ...more) => {
      if (!statements.some(({ args }) => args.includes("task.updated"))) return write(statements, ...more);
      tries++;
      return Promise.resolve({ won: false, rows: [] });
    };
    const { status, body } = await app.send(`PUT /api/tasks/${id}`, ten);
    expect([status, body.detail, tries]).toEqual([
      409,
      `Cannot change task ${id}: another request changed, started or ended it. Get the task and try again.`,
      5,
    ]);
  });
});
