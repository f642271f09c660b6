import { describe, expect, it } from "vitest";
import { type App, openApp, PASSWORD, PASSWORD_HASH, type TestSettings } from "../../harness/service/app.ts";
import type { Json } from "../../harness/service/client.ts";
import { createFastClock } from "../../harness/clock.ts";
import { buildBearer, createUser, logIn, type TestCaller } from "../../harness/model/people.ts";
import { World } from "../../harness/model/scenario.ts";
import { waitUntil } from "../../harness/wait.ts";
import { PushService } from "../../platform/fakes/push_service.ts";

const LOOPBACK: TestSettings = { push: { allow_private: true } };

/** Logs in as the operator, which a device needs. */
async function logInOperator(app: App): Promise<TestCaller["headers"] & { refresh: string }> {
  const { access_token, refresh_token } = await logIn(app, "admin", PASSWORD);
  return Object.assign(buildBearer(access_token), { refresh: refresh_token });
}

async function addDevice(
  app: App,
  service: PushService,
  headers: { authorization: string },
  { name = "phone", tell = {} }: { name?: string; tell?: Json } = {},
): Promise<Json> {
  const { authorization } = headers;
  return await app.call("POST /api/push/devices", { ...service.subscribe(name), tell, name }, {
    authorization,
  });
}

async function ask(app: App, authorization: string, content: string): Promise<void> {
  const session = await app.call("POST /api/local/sessions", { name: "talk" });
  await app.call(`POST /api/local/sessions/${session.id}/messages`, { content }, { authorization });
}

/** Returns the stored pushes, oldest first. */
function listPushes(app: App): Promise<Json[]> {
  return app.db.read("select kind, items, status, response, error, attempt from device_push order by id");
}

async function openQuestion(app: App, text: string): Promise<void> {
  await app.call("POST /api/questions", { message_id: crypto.randomUUID(), text });
}

/** Makes a secret unreadable, as another signing key does. */
async function loseSecret(app: App): Promise<void> {
  await app.call("PUT /api/secrets/deploy-key", { value: "a secret value" });
  await app.db.write([{ sql: "update secret set key_id = 'other'", args: [] }]);
}

describe("pushes to devices (contract 32)", () => {
  it("say that a run finished, encrypted for the device of the user who asked", async () => {
    await using service = new PushService();
    await using app = await openApp({ config: LOOPBACK });
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const { authorization } = await logInOperator(app);
    const eve = await createUser(app, "eve", "admin");
    service.serverKey = (await app.call("GET /api/push/key")).public_key;
    await addDevice(app, service, { authorization }, { tell: { finished: true } });
    await addDevice(app, service, eve.headers, { name: "other", tell: { finished: true } });
    const plan = {
      message_id: "m",
      worker_id: ada.id,
      instruction: "x",
      type: "scheduled",
      cron: "0 0 1 1 *",
    };
    const schedule = await app.call("POST /api/tasks", plan, { authorization });
    await app.call(`POST /api/tasks/${schedule.id}/run`, {}, { authorization });
    await app.until("execution.completed");
    await ask(app, authorization, "@Ada hello");
    await waitUntil("the push arrives", () => service.got.length > 0 || service.faults.length > 0);
    await app.settle();
    expect([service.faults, service.got.length]).toEqual([[], 1]);
    const [run] = await app.call("GET /api/executions");
    const [push] = service.got;
    expect(push?.path).toBe("/phone");
    expect(push?.message).toEqual({
      ...{ title: "Ada", body: "Finished", path: `/console/executions/${run.id}`, tag: push?.topic },
    });
    expect(push?.headers).toMatchObject({ ttl: "86400", urgency: "normal" });
    expect(push?.contact).toBe("mailto:svc@localhost");
    // The outcome is stored after the push service has answered.
    await waitUntil("the outcome is stored", async () => (await listPushes(app))[0]?.status === "sent");
    const [, device] = await app.call("GET /api/push/devices");
    expect(device).toMatchObject({ name: "phone", last_push: "sent", last_error: "" });
  });

  it("say that something needs the user, with its text only for a device that asked for it", async () => {
    await using service = new PushService();
    await using app = await openApp({ config: LOOPBACK });
    await openQuestion(app, "An earlier question?");
    const admin = await logInOperator(app);
    await addDevice(app, service, admin, { name: "brief", tell: { needs_you: true } });
    await addDevice(app, service, admin, { name: "whole", tell: { needs_you: true, text: true } });
    await addDevice(app, service, admin, { name: "off", tell: { text: true } });
    await openQuestion(app, "Which color?");
    await waitUntil("both pushes arrive", () => service.got.length >= 2 || service.faults.length > 0);
    expect(service.faults).toEqual([]);
    const bodies = service.got.map(({ path, message }) => [path, message.title, message.body, message.path]);
    expect(bodies.sort()).toEqual([
      ["/brief", "svc", "Question", "/console/"],
      ["/whole", "svc", "Question: Which color?", "/console/"],
    ]);
    // An item that is no longer in the inbox when its push is due is not sent.
    service.modes.set("/brief", 503);
    await openQuestion(app, "And now?");
    await waitUntil(
      "one push failed",
      async () =>
        (await listPushes(app)).some(({ response, status }) => response === 503 && status === "waiting"),
    );
    for (const { id } of await app.call("GET /api/questions?status=open")) {
      await app.call(`POST /api/questions/${id}/cancel`, {});
    }
    await app.db.write([{ sql: "update device set retry_at = 0", args: [] }]);
    await waitUntil(
      "it is skipped",
      async () => (await listPushes(app)).some(({ error }) => error === "the item is no longer in the inbox"),
    );
  });

  it("of many items are one push with their number", async () => {
    await using service = new PushService();
    await using app = await openApp({ config: LOOPBACK });
    const admin = await logInOperator(app);
    await addDevice(app, service, admin, { tell: { needs_you: true } });
    for (let i = 0; i < 8; i++) await app.call("POST /api/workers", { name: `W${i}` });
    await app.settle();
    await app.db.write([{ sql: "update worker set paused = 1", args: [] }]);
    await waitUntil("the push arrives", () => service.got.length > 0);
    expect(service.got.map(({ message }) => message.body)).toEqual(["8 items need you"]);
  });

  it("end with the device when its push service answers 404 or 410", async () => {
    await using service = new PushService();
    await using app = await openApp({ config: LOOPBACK });
    const admin = await logInOperator(app);
    for (const status of [404, 410]) {
      const name = `gone-${status}`;
      service.modes.set(`/${name}`, status);
      await addDevice(app, service, admin, { name, tell: { needs_you: true } });
    }
    await openQuestion(app, "Which color?");
    await app.until("device.deleted", 2);
    expect(await app.call("GET /api/push/devices")).toEqual([]);
    expect((await listPushes(app)).map(({ status, response }) => [status, response]).sort()).toEqual([
      ["failed", 404],
      ["failed", 410],
    ]);
    const reasons = await app.db.readColumn<string>(
      "select data ->> '$.reason' from journal where kind = 'device.deleted' and actor = 'system'",
    );
    expect(reasons.sort()).toEqual(["the push service answered 404", "the push service answered 410"]);
  });

  it("to dead endpoints delay no other device, and are sent again later with the same topic", async () => {
    await using service = new PushService();
    await using app = await openApp({ config: LOOPBACK, clock: createFastClock(20) });
    const admin = await logInOperator(app);
    const refusing = { ...service.subscribe("refused"), endpoint: "http://127.0.0.1:1/refused" };
    const { authorization } = admin;
    await app.call("POST /api/push/devices", { ...refusing, tell: { needs_you: true } }, { authorization });
    service.modes.set("/silent", "silent").set("/busy", 503);
    for (const name of ["silent", "busy", "good"]) {
      await addDevice(app, service, admin, { name, tell: { needs_you: true } });
    }
    const count = (name: string) => service.got.filter(({ path }) => path === `/${name}`).length;
    await openQuestion(app, "One?");
    await waitUntil(
      "the good device got it",
      () => count("good") === 1 && service.countTries("silent") === 1,
    );
    await openQuestion(app, "Two?");
    await waitUntil("the good device got it, too", () => count("good") === 2);
    // A device has one push in flight at most.
    expect(service.countTries("silent")).toBe(1);
    service.modes.set("/busy", 201);
    const listTopics = () => service.got.filter(({ path }) => path === "/busy").map(({ topic }) => topic);
    await waitUntil("the busy device got both", () => new Set(listTopics()).size === 2);
    const [topic, ...later] = listTopics();
    expect(later.filter((one) => one === topic).length).toBeGreaterThanOrEqual(1);
    expect(later.at(-1)).not.toBe(topic);
    await waitUntil("the refused one pauses", async () => {
      const row = await app.db.first<{ failures: number }>(
        "select failures from device where endpoint like '%refused'",
      );
      return (row?.failures ?? 0) >= 2;
    });
    expect(service.faults).toEqual([]);
  });

  it("reach only users who may read the item at that moment", async () => {
    await using service = new PushService();
    await using app = await openApp({ config: LOOPBACK });
    for (const [name, role] of [["ada", "admin"], ["bob", "operator"], ["eve", "admin"]] as const) {
      const user = await createUser(app, name, role);
      await addDevice(app, service, user.headers, { name, tell: { needs_you: true, text: true } });
    }
    service.modes.set("/eve", 503);
    await loseSecret(app);
    await waitUntil("ada gets it, and eve's is tried", () => service.got.length === 2);
    await app.call("PUT /api/users/eve", { role: "viewer" });
    service.modes.set("/eve", 201);
    await app.db.write([{ sql: "update device set retry_at = 0", args: [] }]);
    await waitUntil(
      "none waits",
      async () => (await listPushes(app)).every(({ status }) => status !== "waiting"),
    );
    expect(service.got.map(({ path }) => path).sort()).toEqual(["/ada", "/eve"]);
    expect((await listPushes(app)).map(({ status, error }) => [status, error]).sort()).toEqual([
      ["sent", ""],
      ["skipped", "its user lacks the scope write:secrets"],
      ["skipped", "its user lacks the scope write:secrets"],
    ]);
  });

  it("never reach a private address, unless the configuration allows it", async () => {
    await using service = new PushService();
    await using app = await openApp();
    const { authorization } = await logInOperator(app);
    const plain = { ...service.subscribe("plain"), tell: { needs_you: true } };
    const refused = await app.send("POST /api/push/devices", plain, { authorization });
    expect([refused.status, refused.body.detail]).toEqual([400, "endpoint: must start with https://"]);
    const inside = { ...plain, endpoint: plain.endpoint.replace("http:", "https:") };
    await app.call("POST /api/push/devices", inside, { authorization });
    await openQuestion(app, "Which color?");
    await waitUntil("it failed", async () => (await listPushes(app))[0]?.status === "failed");
    const [push] = await listPushes(app);
    expect([push.attempt, push.error]).toEqual([
      1,
      "127.0.0.1 is at 127.0.0.1, which is not a public address",
    ]);
    expect(service.tries.size).toBe(0);
  });

  it("to a device that subscribed with another signing key remove it", async () => {
    await using service = new PushService();
    await using app = await openApp({ config: LOOPBACK });
    await addDevice(app, service, await logInOperator(app), { tell: { needs_you: true } });
    await app.db.write([{ sql: "update device set server_key = 'other'", args: [] }]);
    await openQuestion(app, "Which color?");
    await app.until("device.deleted");
    expect(await listPushes(app)).toMatchObject([{ status: "skipped", error: "the device was removed" }]);
    expect(service.tries.size).toBe(0);
  });
});

describe("a push whose service is killed before it stored the outcome", () => {
  it("is sent again with the same topic, once", async () => {
    await using service = new PushService();
    await using world = await World.open({
      password: PASSWORD,
      env: { SVC_AUTH__PASSWORD_HASH: PASSWORD_HASH, SVC_PUSH__ALLOW_PRIVATE: "true" },
    });
    const { server, api } = await world.start("device.post:1:kill");
    await api.call("POST /api/push/devices", { ...service.subscribe("phone"), tell: { needs_you: true } });
    await api.call("POST /api/questions", { message_id: "m", text: "Which color?" });
    await server.ended;
    expect([server.stderr.includes("SVC_FAULT fired: device.post"), service.got.length]).toEqual([true, 1]);
    await world.start();
    const last = async () => (await world.api.call("GET /api/push/devices"))[0]?.last_push;
    await waitUntil("the outcome is stored", async () => await last() === "sent");
    expect(service.faults).toEqual([]);
    expect(service.got.map(({ topic }) => topic)).toEqual(Array(2).fill(service.got[0]?.topic));
  });
});
