import { expect, it } from "vitest";
import { type App, openApp, PASSWORD } from "../harness/service/app.ts";
import { ctl } from "../harness/terminal.ts";

const LINES = Array.from({ length: 20 }, (_, no) => `line ${no + 1}`);

/** Starts a service whose access tokens expire after one second, and a run that writes a line every 0.2 s. */
async function open(): Promise<{ app: App; id: string }> {
  const script = "i=0; while [ $i -lt 20 ]; do i=$((i+1)); echo line $i >&2; sleep 0.2; done; echo done";
  const slow = { kind: "command" as const, command: "sh", args: ["-c", script] };
  const app = await openApp({ config: { auth: { access_ttl: "1s" }, engines: { default: "slow", slow } } });
  const worker = await app.call("POST /api/workers", { name: "Ada" });
  const task = { message_id: "m", worker_id: worker.id, instruction: "go", type: "immediate" };
  await app.call("POST /api/tasks", task);
  await app.until("execution.started");
  const [{ id }] = await app.call("GET /api/executions");
  return { app, id };
}

it("execution logs -f continues with a new token after a login token expires, and prints each line once (contract 9)", async () => {
  const { app, id } = await open();
  await using _ = app;
  const env = { SVC_DATA_DIR: "/nowhere" };
  const login = await ctl(app, ["login", app.url, "--password-stdin"], { stdin: `${PASSWORD}\n`, env });
  expect(login.code).toBe(0);
  const followed = await ctl(app, `execution logs -f ${id}`, {
    env: { ...env, XDG_CONFIG_HOME: `${app.dataDir}/config` },
  });
  expect([followed.code, followed.err]).toEqual([0, ""]);
  expect([...followed.out.matchAll(/\bline \d+$/gm)].map(([line]) => line)).toEqual(LINES);
  expect(followed.out).toContain("[completed]");
});

it("execution logs -f fails when its token expires before the run ends", async () => {
  const { app, id } = await open();
  await using _ = app;
  const { access_token } = await app.call("POST /api/auth/login", { username: "admin", password: PASSWORD });
  const env = { SVC_URL: app.url, SVC_TOKEN: access_token };
  const followed = await ctl(app, `execution logs -f ${id}`, { env });
  expect(followed.code).toBe(4);
  expect(followed.out).not.toContain("[completed]");
});

it("execution logs -f prints lines written between the end of the connection and the end of the run once (contract 8)", async () => {
  const { app, id } = await open();
  await using _ = app;
  let logs = 0;
  // The first response ends after three lines, and the run ends before the client reconnects.
  await using between = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    async (request) => {
      const { pathname, search } = new URL(request.url);
      const { headers } = request;
      if (!pathname.endsWith("/logs") || logs++ > 0) {
        return await fetch(app.url + pathname + search, { headers });
      }
      await app.until("execution.completed");
      const whole = await app.send(`GET ${pathname}`);
      return new Response(/^(?:.*\n){3}/.exec(whole.body)?.[0]);
    },
  );
  const { token } = await app.call("POST /api/tokens", { name: "reader", scopes: ["read:executions"] });
  const env = { SVC_URL: `http://127.0.0.1:${between.addr.port}`, SVC_TOKEN: token };
  const followed = await ctl(app, `execution logs -f ${id}`, { env });
  expect([followed.code, followed.err]).toEqual([0, ""]);
  expect([...followed.out.matchAll(/\bline \d+$/gm)].map(([line]) => line)).toEqual(LINES);
  expect(followed.out.match(/\[completed\]/g)).toHaveLength(1);
});
