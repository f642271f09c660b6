import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { findBoxFault } from "../../src/engine/process/box_fault.ts";
import { BOX_SETTINGS } from "../harness/box.ts";
import { Upstream } from "../harness/fakes/upstream.ts";
import { type App, openApp } from "../harness/service/app.ts";
import { createRemoteWorker, createTask, startRunner, waitUntilOnline } from "../harness/service/runner.ts";
import { waitUntil } from "../harness/wait.ts";

vi.setConfig({ testTimeout: 180_000 });

const fault = await findBoxFault(BOX_SETTINGS);
const hasCurl =
  (await new Deno.Command("sh", { args: ["-c", "command -v curl"], stdout: "null" }).output()).success;
const missing = fault ?? (hasCurl ? null : "curl is not installed");
const why = missing === null ? "" : ` (skipped: ${missing})`;
const SECRET = "ghp-canary-0123456789";

/** Starts the runner r1, whose engine `sh` runs this script. `box` are bounds of its boxes. */
async function start(app: App, script: string, isolation: object = {}, box: object = {}) {
  const { token } = await app.call("POST /api/runners", { name: "r1", labels: ["x"] });
  const config = {
    isolation: { ...isolation, box: { ...BOX_SETTINGS.box, ...box } },
    engines: { default: "sh", sh: { kind: "command", command: "bash", args: ["-c", script] } },
  };
  const lines = Object.entries(config).map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`).join("");
  const root = join(app.dataDir, "..", `${app.dataDir.split("/").at(-1)}-r1`, "root");
  const runner = await startRunner({ token, url: app.url, root, config: lines });
  await waitUntilOnline(app, "r1");
  return runner;
}

// deno-lint-ignore no-explicit-any
async function waitForEnd(app: App, worker: string): Promise<any> {
  const list = () => app.call(`GET /api/executions?worker_id=${worker}`);
  await waitUntil(
    "the run ends",
    async () => ["completed", "failed"].includes((await list())[0]?.status),
  );
  return (await list())[0];
}

async function run(app: App, worker: string) {
  await createTask(app, worker, "look");
  return await waitForEnd(app, worker);
}

const REQUEST =
  'ask() { curl -sSi --path-as-is -m 20 -H "authorization: Bearer $SVC_TOKEN" "$SVC_URL$1"; echo; }; ';

describe(`a worker in a box on a runner${why} [BOX-1]`, () => {
  it.skipIf(missing !== null)(
    "reads its files, calls the service and its gateway through the runner, and reaches neither the runner's files nor closed paths",
    async () => {
      await using upstream = await Upstream.start();
      await using app = await openApp({
        config: {
          gateways: {
            github: {
              kind: "http",
              secret: "github-key",
              upstream: upstream.url,
              header: "authorization: Bearer {secret}",
              allow: ["GET /issues"],
            },
          },
        },
      });
      await app.call("PUT /api/secrets/github-key", { value: SECRET });
      const root = join(app.dataDir, "..", `${app.dataDir.split("/").at(-1)}-r1`, "root");
      const script = `cat > /dev/null; ${REQUEST} touch made; grep CapEff /proc/self/status; ` +
        `cat ${root}/files/*/*; svc ctl worker get $SVC_WORKER_ID --json; ask /gateway/github/issues; ` +
        'for path in /metrics /api/auth/whoami /api%2fauth/whoami /console; do echo "$path: $(ask $path | head -1)"; done; ' +
        `ls ${root} ${root}/.. ${root}/../root.token ${root}/../root.yaml 2>&1; ls ${root}/place && echo bad; ` +
        'echo "interfaces: $(tail -n +3 /proc/net/dev | cut -d: -f1 | xargs)"; env';
      await using runner = await start(app, script);
      const worker = await createRemoteWorker(app, "sh", { isolation: "box", gateways: ["github"] });
      const session = await app.call("POST /api/local/sessions", { worker_id: worker });
      const form = new FormData();
      form.set("file", new File(["what is in it"], "note.txt"));
      const uploaded = await fetch(`${app.url}/api/local/sessions/${session.id}/media`, {
        method: "POST",
        headers: { authorization: `Bearer ${await app.token()}` },
        body: form,
      });
      await app.call(`POST /api/local/sessions/${session.id}/messages`, {
        content: "look",
        media_path: (await uploaded.json()).path,
      });
      const { status, error, result } = await waitForEnd(app, worker);
      expect([status, error], `${result}\n${runner.stderr}`).toEqual(["completed", ""]);
      expect(result).toMatch(/CapEff:\t0+\n/);
      expect(result).toContain("what is in it");
      expect(result).toContain(`"id":"${worker}"`);
      expect(result).toMatch(/HTTP\/1.1 200[^]*ok/);
      for (const path of ["/metrics", "/api/auth/whoami", "/api%2fauth/whoami", "/console"]) {
        expect(result).toContain(`${path}: HTTP/1.1 403`);
      }
      expect(result).toContain("interfaces: lo\n");
      expect(result).not.toMatch(/^(bad|place|svc.lock|root\.token|root\.yaml)$/m);
      expect(upstream.received.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${SECRET}`]);
      expect(result).not.toContain(SECRET);
      expect(await Deno.stat(join(root, "workers", worker, "made")).then(() => true)).toBe(true);
      expect((await app.call("GET /api/runners/r1")).box).toBe(true);
    },
  );

  it.skipIf(missing !== null)(
    "has no more than the runner's own bounds allow, and a box where the runner has one for every run",
    async () => {
      await using app = await openApp();
      const script =
        'echo "interfaces: $(tail -n +3 /proc/net/dev | cut -d: -f1 | xargs)"; ls $HOME/.. | wc -l; ls / ';
      await using _runner = await start(app, `cat > /dev/null; ${script}`, { default: "box" }, {
        max_network: "none",
      });
      const wide = await createRemoteWorker(app, "sh", { isolation: { box: { network: "host" } } });
      expect((await run(app, wide)).result).toContain("interfaces: lo\n");
      const open = await createRemoteWorker(app, "sh", { isolation: "namespace" });
      const { status, result } = await run(app, open);
      expect(status).toBe("completed");
      expect(result).toContain("interfaces: lo\n");
      expect(result).not.toMatch(/^boot$/m);
      const reader = await createRemoteWorker(app, "sh");
      await app.db.write([{
        sql: "update worker set isolation = ? where id = ?",
        args: [JSON.stringify({ box: { read: ["/srv"] } }), reader],
      }]);
      expect(await run(app, reader)).toMatchObject({
        status: "failed",
        failure: "isolation",
        error: expect.stringContaining("/srv is not in isolation.box.read"),
      });
    },
  );
});
