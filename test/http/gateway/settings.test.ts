import { afterAll, beforeAll, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { startRun } from "../../harness/service/run.ts";

let app: App;

beforeAll(async () => {
  app = await openApp({
    config: {
      engines: { ...buildFakeEngines(), claude: { gateway: "anthropic", command: "/bin/false" } },
      gateways: { anthropic: { kind: "anthropic", secret: "key" } },
    },
  });
});

afterAll(async () => {
  await app[Symbol.asyncDispose]();
});

const GATEWAYS = { gateways: ["anthropic"] };

it("a worker names gateways of the configuration only", async () => {
  const refused = await app.send("POST /api/workers", { name: "A", gateways: ["anthropic", "github"] });
  expect(refused).toMatchObject({
    status: 400,
    body: { detail: /^gateways\.1: no gateway is called "github"\. Gateways of config\.yaml: anthropic\.$/ },
  });
  const worker = await app.call("POST /api/workers", { name: "A", ...GATEWAYS });
  expect(worker).toMatchObject(GATEWAYS);
  expect(await app.call(`PUT /api/workers/${worker.id}`, { gateways: [] })).toMatchObject({ gateways: [] });
  const file = { fleet: { workers: [{ name: "B", gateways: ["github"] }] } };
  expect((await app.send("POST /api/fleet/plan", file)).body).toMatchObject({
    detail: /^fleet\.workers\.0\.gateways\.0: no gateway/,
  });
});

it("no run and no caller without write:commands sets or clears them", async () => {
  const run = await startRun(app, ["*:*"]);
  await app.call(`PUT /api/workers/${run.workerId}`, GATEWAYS);
  const { token } = await app.call("POST /api/tokens", { name: "t", scopes: ["*:workers", "write:fleet"] });
  for (const headers of [run.headers, { authorization: `Bearer ${token}` }]) {
    const attempts = [
      await app.send(`PUT /api/workers/${run.workerId}`, { gateways: [] }, headers),
      await app.send("POST /api/workers", { name: "B", ...GATEWAYS }, headers),
      await app.send("POST /api/fleet/apply", { fleet: { workers: [{ name: "B", ...GATEWAYS }] } }, headers),
    ];
    expect(attempts.map(({ status }) => status)).toEqual([403, 403, 403]);
  }
});

it("a run without the secret of its gateway fails with setup, and doctor names the gateway", async () => {
  const worker = await app.call("POST /api/workers", { name: "C", engine: "claude" });
  await app.call("POST /api/tasks", {
    type: "immediate",
    worker_id: worker.id,
    message_id: "go",
    instruction: "go",
  });
  await app.until("task.failed");
  const [execution] = await app.call(`GET /api/workers/${worker.id}/executions`);
  expect(execution).toMatchObject({
    failure: "setup",
    error: "Cannot use the gateway anthropic: no secret is called key. Run svc ctl secret set key.",
  });
  const findCheck = async () =>
    (await app.call("GET /api/system/doctor")).checks.find(({ name }: { name: string }) =>
      name === "gateways"
    );
  expect(await findCheck()).toMatchObject({ status: "fail", detail: /^anthropic: no secret is called key/ });
  await app.call("PUT /api/secrets/key", { value: "two\nlines" });
  expect(await findCheck()).toMatchObject({ status: "fail", detail: /characters that a header cannot have/ });
  await app.call("PUT /api/secrets/key", { value: "sk-canary-0123456789" });
  expect(await findCheck()).toMatchObject({ status: "ok" });
  expect(await app.call("GET /api/engines/claude")).toMatchObject({ gateway: "anthropic" });
});
