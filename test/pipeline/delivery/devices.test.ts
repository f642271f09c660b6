import { describe, expect, it } from "vitest";
import { type App, openApp, PASSWORD, type TestSettings } from "../../harness/service/app.ts";
import type { Json } from "../../harness/service/client.ts";
import { buildBearer, logIn, type TestCaller } from "../../harness/model/people.ts";
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

describe("pushes to devices", () => {
  it("say that a run finished, encrypted for the device of the user who asked", async () => {
    await using service = new PushService();
    await using app = await openApp({ config: LOOPBACK });
    await app.call("POST /api/workers", { name: "Ada" });
    const { authorization } = await logInOperator(app);
    service.serverKey = (await app.call("GET /api/push/key")).public_key;
    await addDevice(app, service, { authorization }, { tell: { finished: true } });
    await ask(app, authorization, "@Ada hello");
    await waitUntil("the push arrives", () => service.got.length === 1 || service.faults.length > 0);
    expect(service.faults).toEqual([]);
    const [run] = await app.call("GET /api/executions");
    expect(service.got[0]?.message).toEqual({
      title: "Ada",
      body: "Finished",
      path: `/console/executions/${run.id}`,
      tag: service.got[0]?.topic,
    });
  });
});
