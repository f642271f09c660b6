import { describe, expect, it } from "vitest";
import { isPublicAddress } from "../../src/base/address.ts";
import { callOutside, RefusedAddressError } from "../../src/base/guarded_fetch.ts";
import { type App, openApp, type TestSettings } from "../harness/service/app.ts";
import { TestClock } from "../harness/clock.ts";
import { waitUntil } from "../harness/wait.ts";
import { Receiver } from "./fakes/receiver.ts";

const SECRET = `whsec_${btoa("a secret of twenty-four bytes and more")}`;

function settings(receiver: Receiver, events = ["memory.*"]): TestSettings {
  return { webhooks: [{ name: "out", url: receiver.url, secret: SECRET, events, allow_private: true }] };
}

async function save(app: App, key: string): Promise<void> {
  await app.call("PUT /api/memory/entry", { scope: "global", key, value: key });
}

function keys(receiver: Receiver): string[] {
  return receiver.got.map(({ body }) => body.data.data.key);
}

describe("webhooks out (contract 11)", () => {
  it("are signed, verified by the npm package, in order, and only of the chosen kinds", async () => {
    await using receiver = new Receiver(SECRET);
    await using app = await openApp({ config: settings(receiver, ["memory.saved"]) });
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
      await waitUntil("it is switched off", async () => !(await state()).enabled);
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
    await using receiver = new Receiver(SECRET);
    const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
    const open = () => openApp({ dataDir, config: settings(receiver) });
    const placeOf = async (app: App): Promise<number> => (await app.call("GET /api/webhooks/out")).cursor;
    let place = 0;
    {
      await using app = await open();
      await save(app, "a");
      await waitUntil("it arrives", () => receiver.got.length === 1);
      place = receiver.got[0]?.body.data.seq;
      await waitUntil("its place is stored", async () => await placeOf(app) === place);
      receiver.otherwise = "lost";
      await save(app, "b");
      await waitUntil("it is tried", () => receiver.got.length === 2);
    }
    receiver.otherwise = "ok";
    {
      await using app = await open();
      expect(await placeOf(app)).toBeGreaterThanOrEqual(place);
      await waitUntil("what was lost comes again", () => keys(receiver).slice(2).join() === "b");
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
    await Deno.remove(dataDir, { recursive: true }).catch(() => {});
  }, 60_000);

  it("that are no longer in the configuration get nothing after a start", async () => {
    const clock = new TestClock();
    await using receiver = new Receiver(SECRET, () => clock.now());
    const dataDir = await Deno.makeTempDir({ prefix: "svc-test-" });
    receiver.otherwise = 503;
    {
      await using app = await openApp({ clock, dataDir, config: settings(receiver) });
      await save(app, "a");
      await waitUntil("it is owed", async () => (await app.call("GET /api/webhooks/out")).attempt === 1);
    }
    clock.advance(3_600_000);
    await using other = new Receiver(SECRET, () => clock.now());
    const { webhooks = [] } = settings(other);
    const config = { webhooks: webhooks.map((one) => ({ ...one, name: "other" })) };
    await using app = await openApp({ clock, dataDir, config });
    await save(app, "b");
    await waitUntil("the other one works", () => keys(other).includes("b"));
    expect(keys(receiver)).toEqual(["a"]);
    await Deno.remove(dataDir, { recursive: true }).catch(() => {});
  }, 60_000);

  it(
    "keep a change from during a try, whatever the result of the try is",
    async () => {
      const asked: ((status: number) => void)[] = [];
      await using server = Deno.serve(
        { port: 0, hostname: "127.0.0.1", onListen: () => {} },
        () =>
          new Promise<Response>((resolve) => asked.push((status) => resolve(new Response(null, { status })))),
      );
      const clock = new TestClock();
      const hook = { name: "out", secret: SECRET, events: ["memory.*"], allow_private: true };
      const url = `http://127.0.0.1:${server.addr.port}/`;
      await using app = await openApp({ clock, config: { webhooks: [{ ...hook, url }] } });
      const put = (enabled: boolean) => {
        clock.advance(1);
        return app.call("PUT /api/webhooks/out", { enabled });
      };
      const tries = async () => (await app.call("GET /api/webhooks/out/deliveries")).length;
      await put(false);
      for (const key of ["a", "b"]) await save(app, key);
      await put(true);
      await waitUntil("the first is tried", () => asked.length === 1);
      await put(false);
      asked[0]?.(200);
      await waitUntil("the try is noted", async () => await tries() === 1);
      // The webhook is disabled, so the second event waits.
      await put(true);
      await waitUntil("it goes on", () => asked.length === 2);
      await put(true);
      asked[1]?.(503);
      // The webhook is enabled again: the try has no pause.
      await waitUntil("it is tried at once", () => asked.length === 3);
      expect(await app.call("GET /api/webhooks/out")).toMatchObject({ attempt: 0 });
      asked[2]?.(200);
      await waitUntil("the other one comes", () => asked.length === 4);
      asked[3]?.(200);
      const [last, ...earlier] = await app.call("GET /api/webhooks/out/deliveries");
      expect([last, ...earlier].every(({ attempt }: { attempt: number }) => attempt === 1)).toBe(true);
      await waitUntil("all is delivered", async () => await tries() === 4);
    },
    60_000,
  );

  it("of a receiver that hangs delay no other", async () => {
    await using quick = new Receiver(SECRET);
    const slow = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const hook = { url: quick.url, secret: SECRET, events: ["memory.*"], allow_private: true };
    await using app = await openApp({
      config: {
        webhooks: [{ ...hook, name: "slow", url: `http://127.0.0.1:${slow.addr.port}/` }, {
          ...hook,
          name: "quick",
        }],
      },
    });
    for (const key of ["a", "b", "c"]) await save(app, key);
    await waitUntil("the other one gets all", () => quick.got.length === 3, 9_000);
    slow.close();
  }, 60_000);

  it("that the API created get later events, show their secret once, and reach no private address [WHK-2]", async () => {
    await using receiver = new Receiver(SECRET);
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

describe("addresses that a caller can make the service call (contract 11) [WHK-2]", () => {
  it.each([
    ...[
      "127.0.0.1",
      "127.8.8.8",
      "10.1.2.3",
      "172.16.0.1",
      "172.31.255.255",
      "192.168.1.1",
      "169.254.169.254",
      "100.64.0.1",
    ],
    ...[
      "0.0.0.0",
      "224.0.0.1",
      "255.255.255.255",
      "198.18.0.1",
      "192.0.2.1",
      "::",
      "::1",
      "fe80::1",
      "fe80::1%eth0",
      "fc00::1",
    ],
    ...[
      "fd12::1",
      "ff02::1",
      "::ffff:127.0.0.1",
      "::ffff:7f00:1",
      "::127.0.0.1",
      "64:ff9b::7f00:1",
      "64:ff9b::10.0.0.1",
    ],
    ...[
      "64:ff9b:1::a00:1",
      "2002:7f00:1::",
      "2001:db8::1",
      "2001::1",
      "100::1",
      "[::1]",
      "",
      "localhost",
      "1.2.3",
      "fec0::1",
    ],
  ])("%s is not public [WHK-2]", (address) => expect(isPublicAddress(address)).toBe(false));

  it.each([
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "2a00::1",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
  ])(
    "%s is public",
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  const call = (url: string, resolve: (name: string) => Promise<string[]> = () => Promise.resolve([])) =>
    callOutside({ url, body: "", timeoutMs: 1_000, answerMaxBytes: 10, allowPrivate: false, resolve });

  it.each([
    ...[
      "http://127.0.0.1/",
      "http://2130706433/",
      "http://0x7f000001/",
      "http://0177.0.0.1/",
      "http://127.1/",
      "http://0/",
    ],
    ...[
      "http://[::1]/",
      "http://[::ffff:127.0.0.1]/",
      "http://[64:ff9b::7f00:1]/",
      "http://169.254.169.254/latest/meta-data",
    ],
    ...["ftp://example.org/", "file:///etc/passwd", "http://user:word@example.org/", "nothing"],
  ])("%s is refused [WHK-2]", async (url) => {
    await expect(call(url)).rejects.toThrow(RefusedAddressError);
  });

  it("a name with one private address among others is refused [WHK-2]", async () => {
    const both = () => Promise.resolve(["93.184.216.34", "127.0.0.1"]);
    await expect(call("http://both.example/", both)).rejects.toThrow(/127\.0\.0\.1, which is not/);
  });

  it("a name is resolved once: the service connects to the checked address [WHK-2]", async () => {
    const came: string[] = [];
    const listen = (hostname: string, port: number) =>
      Deno.serve({ port, hostname, onListen: () => {} }, () => {
        came.push(hostname);
        return new Response("ok");
      });
    await using checked = listen("127.0.0.1", 0);
    await using other = listen("127.0.0.2", checked.addr.port);
    let asked = 0;
    const answer = await callOutside({
      url: `http://rebinding.example:${other.addr.port}/`,
      body: "",
      timeoutMs: 5_000,
      answerMaxBytes: 10,
      // In place of public addresses.
      allowPrivate: true,
      resolve: () => Promise.resolve([asked++ === 0 ? "127.0.0.1" : "127.0.0.2"]),
    });
    expect([answer.status, asked, came]).toEqual([200, 1, ["127.0.0.1"]]);
  });

  it("a name server that does not answer takes no longer than the time limit of the call", async () => {
    await expect(call("http://silent.example/", () => new Promise(() => {}))).rejects.toThrow(
      /silent\.example has no address: no answer within 1 s/,
    );
  });

  it("a redirect is not followed [WHK-2]", async () => {
    const server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      () => new Response(null, { status: 302, headers: { location: "http://127.0.0.1:1/" } }),
    );
    const url = `http://127.0.0.1:${server.addr.port}/`;
    const answer = await callOutside({
      url,
      body: "",
      timeoutMs: 5_000,
      answerMaxBytes: 10,
      allowPrivate: true,
    });
    expect(answer.status).toBe(302);
    await server.shutdown();
  });
});
