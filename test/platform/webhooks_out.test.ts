import { describe, expect, it } from "vitest";
import { type App, openApp, type TestSettings } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { createTempDir } from "../harness/service/process.ts";
import { waitUntil } from "../harness/wait.ts";
import { Receiver, SECRET } from "./fakes/receiver.ts";

function buildHook(url: string, more: { name?: string; events?: string[] } = {}) {
  return { name: "out", url, secret: SECRET, events: ["memory.*"], allow_private: true, ...more };
}

function settings(receiver: Receiver, more: { name?: string; events?: string[] } = {}): TestSettings {
  return { webhooks: [buildHook(receiver.url, more)] };
}

async function save(app: App, key: string): Promise<void> {
  await app.call("PUT /api/memory/entry", { scope: "global", key, value: key });
}

function keys(receiver: Receiver): string[] {
  return receiver.got.map(({ body }) => body.data.data.key);
}

describe("webhooks out (contract 11)", () => {
  it("are signed, verified by the npm package, in order, and only of the chosen kinds", async () => {
    await using receiver = new Receiver();
    await using app = await openApp({ config: settings(receiver, { events: ["memory.saved"] }) });
    for (const key of ["a", "b", "c"]) await save(app, key);
    await app.call("DELETE /api/memory/entry?scope=global&key=a");
    await save(app, "d");
    await waitUntil("all arrive", () => receiver.got.length === 4);
    expect(receiver.faults).toEqual([]);
    expect(keys(receiver)).toEqual(["a", "b", "c", "d"]);
    expect(receiver.got[0]?.body).toMatchObject({
      type: "memory.saved",
      timestamp: expect.stringMatching(/^\d{4}-.*Z$/),
      data: { actor: "user:admin", seq: expect.any(Number) },
    });
    expect(new Set(receiver.got.map(({ id }) => id)).size).toBe(4);
  });

  it(
    "of a receiver that is down for two days arrive in order with the same ids; later it is disabled with a notice [WHK-3]",
    async () => {
      const clock = new TestClock();
      await using receiver = new Receiver(SECRET, () => clock.now());
      await using app = await openApp({ clock, config: settings(receiver) });
      receiver.otherwise = 503;
      for (const key of ["a", "b", "c"]) await save(app, key);
      const state = () => app.call("GET /api/webhooks/out");
      // Waits for the next try, then advances the clock.
      const tries = async (most: number) => {
        for (let attempt = 1; attempt <= most; attempt++) {
          await waitUntil(`try ${attempt}`, async () => {
            const { enabled, attempt: made } = await state();
            return !enabled || made >= attempt;
          });
          const { next_attempt_at } = await state();
          if (attempt < most) clock.advance(Math.max(0, next_attempt_at - clock.now()));
        }
      };
      await tries(8);
      expect(new Set(receiver.got.map(({ id }) => id)).size).toBe(1);
      receiver.otherwise = "ok";
      clock.advance((await state()).next_attempt_at - clock.now());
      expect(clock.now() - new TestClock().now()).toBeGreaterThan(48 * 3_600_000);
      await waitUntil("all arrive", () => receiver.got.length === 8 + 3);
      expect(keys(receiver).slice(7)).toEqual(["a", "a", "b", "c"]);
      receiver.otherwise = 503;
      await save(app, "d");
      await tries(10);
      await waitUntil("the webhook is disabled", async () => !(await state()).enabled);
      expect((await state()).disabled_reason).toContain("it answered 503");
      await app.until("webhook.disabled");
      // A webhook that is enabled again continues at its place.
      receiver.otherwise = "ok";
      await app.call("PUT /api/webhooks/out", { enabled: true });
      await waitUntil(
        "the last one arrives",
        () => keys(receiver).at(-1) === "d" && receiver.modes.length === 0,
      );
    },
    60_000,
  );

  it("keep their place over restarts, and are disabled by 410 [WHK-3]", async () => {
    await using receiver = new Receiver();
    await using folder = await createTempDir();
    const open = () => openApp({ dataDir: folder.path, config: settings(receiver) });
    const placeOf = async (app: App): Promise<number> => (await app.call("GET /api/webhooks/out")).cursor;
    let place = 0;
    {
      await using app = await open();
      await save(app, "a");
      await waitUntil("it arrives", () => receiver.got.length === 1);
      place = receiver.got[0]?.body.data.seq;
      await waitUntil("the cursor is stored", async () => await placeOf(app) === place);
      receiver.otherwise = "lost";
      await save(app, "b");
      await waitUntil("the event is sent", () => receiver.got.length === 2);
    }
    receiver.otherwise = "ok";
    {
      await using app = await open();
      expect(await placeOf(app)).toBeGreaterThanOrEqual(place);
      await waitUntil("the lost event arrives", () => keys(receiver).slice(2).join() === "b");
      await app.call("POST /api/webhooks/out/replay", { after: 0 });
      await waitUntil("all arrive again", () => keys(receiver).slice(3).join() === "a,b");
      receiver.otherwise = 410;
      await save(app, "c");
      await app.until("webhook.disabled");
      expect((await app.call("GET /api/webhooks/out")).disabled_reason).toContain("410");
      const [last] = await app.call("GET /api/webhooks/out/deliveries");
      expect(last).toMatchObject({ status: 410, attempt: 1, error: "it answered 410" });
    }
    await using app = await open();
    expect((await app.call("GET /api/webhooks/out")).enabled).toBe(false);
  }, 60_000);

  it("that are no longer in the configuration get no events after a start", async () => {
    const clock = new TestClock();
    await using receiver = new Receiver(SECRET, () => clock.now());
    await using folder = await createTempDir();
    receiver.otherwise = 503;
    {
      await using app = await openApp({ clock, dataDir: folder.path, config: settings(receiver) });
      await save(app, "a");
      await waitUntil("the try failed", async () => (await app.call("GET /api/webhooks/out")).attempt === 1);
    }
    clock.advance(3_600_000);
    await using other = new Receiver(SECRET, () => clock.now());
    const config = settings(other, { name: "other" });
    await using app = await openApp({ clock, dataDir: folder.path, config });
    await save(app, "b");
    await waitUntil("the other webhook gets the event", () => keys(other).includes("b"));
    expect(keys(receiver)).toEqual(["a"]);
  }, 60_000);

  it(
    "keep a change that a person makes during a try, after its success and its failure",
    async () => {
      const asked: ((status: number) => void)[] = [];
      await using server = Deno.serve(
        { port: 0, hostname: "127.0.0.1", onListen: () => {} },
        () =>
          new Promise<Response>((resolve) => asked.push((status) => resolve(new Response(null, { status })))),
      );
      const clock = new TestClock();
      const hook = buildHook(`http://127.0.0.1:${server.addr.port}/`);
      await using app = await openApp({ clock, config: { webhooks: [hook] } });
      const put = (enabled: boolean) => {
        clock.advance(1);
        return app.call("PUT /api/webhooks/out", { enabled });
      };
      const tries = async () => (await app.call("GET /api/webhooks/out/deliveries")).length;
      await put(false);
      for (const key of ["a", "b"]) await save(app, key);
      await put(true);
      await waitUntil("the first event is sent", () => asked.length === 1);
      await put(false);
      asked[0]?.(200);
      await waitUntil("the try is stored", async () => await tries() === 1);
      // The webhook is disabled, so the second event waits.
      await put(true);
      await waitUntil("the service continues", () => asked.length === 2);
      await put(true);
      asked[1]?.(503);
      // The webhook is enabled again: the try has no pause.
      await waitUntil("the event is sent immediately", () => asked.length === 3);
      expect(await app.call("GET /api/webhooks/out")).toMatchObject({ attempt: 0 });
      asked[2]?.(200);
      await waitUntil("the other event", () => asked.length === 4);
      asked[3]?.(200);
      const [last, ...earlier] = await app.call("GET /api/webhooks/out/deliveries");
      expect([last, ...earlier].every(({ attempt }: { attempt: number }) => attempt === 1)).toBe(true);
      await waitUntil("all is delivered", async () => await tries() === 4);
    },
    60_000,
  );

  it("to a receiver that hangs delay no others", async () => {
    await using quick = new Receiver();
    const slow = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const hanging = buildHook(`http://127.0.0.1:${slow.addr.port}/`, { name: "slow" });
    const webhooks = [hanging, buildHook(quick.url, { name: "quick" })];
    await using app = await openApp({ config: { webhooks } });
    for (const key of ["a", "b", "c"]) await save(app, key);
    await waitUntil("the other receiver gets all events", () => quick.got.length === 3, 9_000);
    slow.close();
  }, 60_000);

  it("that the API created get later events, show their secret once, and reach no private address [WHK-2]", async () => {
    await using receiver = new Receiver();
    await using app = await openApp();
    const made = await app.call("POST /api/webhooks", { name: "ci", url: receiver.url, events: ["*"] });
    expect(made.secret).toMatch(/^whsec_/);
    expect(JSON.stringify(await app.call("GET /api/webhooks"))).not.toContain(made.secret);
    const tried = await app.call("POST /api/webhooks/ci/test");
    expect(tried).toMatchObject({
      status: 0,
      error: expect.stringContaining("not a public address"),
    });
    expect(receiver.got).toEqual([]);
    for (
      const [url, event] of [["https://a.example", "nothing.*"], ["https://me:word@a.example", "task.*"]]
    ) {
      expect([url, (await app.send("POST /api/webhooks", { name: "x", url, events: [event] })).status])
        .toEqual([url, 400]);
    }
    expect(
      (await app.send("POST /api/webhooks", { name: "CI", url: "https://a.example", events: ["*"] })).status,
    ).toBe(409);
  });
});
