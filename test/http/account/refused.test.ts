import { describe, expect, it } from "vitest";
import { createId } from "../../../src/base/id.ts";
import { digest } from "../../../src/base/bytes.ts";
import { signNamedToken } from "../../../src/base/token.ts";
import { checkHost, isLoopback } from "../../../src/http/authenticate.ts";
import { insertToken } from "../../../src/store/account/token.ts";
import { insertPairing } from "../../../src/store/chat/platform.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { TestClock } from "../../harness/clock.ts";
import { buildBearer, createToken, createUser } from "../../harness/model/people.ts";
import { createFakeRunner, createRemoteWorker } from "../../harness/service/runner.ts";
import { startRun } from "../../harness/service/run.ts";
import { upload } from "../requests.ts";

const CHECK = { command: ["true"], timeout_ms: 1_000 };

describe("a code for the console", () => {
  it("is refused to every token of every owner, with any scopes", async () => {
    await using app = await openApp({ inMemory: true });
    const owners = [{}, (await createUser(app, "ann", "admin")).headers];
    const scopes = [["read:tasks"], ["*:*"], ["write:system", "write:users", "write:tokens"]];
    for (const [at, owner] of owners.entries()) {
      for (const [no, held] of scopes.entries()) {
        const token = await createToken(app, `t${at}${no}`, held, owner);
        const { status, body } = await app.send("POST /api/auth/console", {}, token.headers);
        expect([at, held, status, body.code]).toEqual([at, held, 403, "forbidden"]);
        expect(body).not.toHaveProperty("url");
      }
      expect((await app.send("POST /api/auth/console", {}, owner)).status).toBe(201);
    }
  });
});

describe("a named token", () => {
  it("is refused when it names a user who does not own it", async () => {
    await using app = await openApp({ inMemory: true });
    const [ann, bob] = [await createUser(app, "ann", "operator"), await createUser(app, "bob", "operator")];
    const { id } = await createToken(app, "t", ["read:workers"], ann.headers);
    const row = { id, scopes: ["read:workers"], created_at: Date.now(), expires_at: null };
    const statuses = [];
    for (const user_id of [ann.id, bob.id, ""]) {
      const token = await signNamedToken(app.server.parts.authority.key, { ...row, user_id });
      statuses.push((await app.send("GET /api/workers", undefined, buildBearer(token))).status);
    }
    expect(statuses).toEqual([200, 401, 401]);
  });

  it("is refused to a user who has the maximum number of tokens", async () => {
    await using app = await openApp({ inMemory: true });
    const [ann, bob] = [await createUser(app, "ann", "viewer"), await createUser(app, "bob", "viewer")];
    const insert = (user_id: string, name: string) => {
      const times = { created_at: 0, expires_at: null, last_used_at: null };
      const token = { id: createId(), name, user_id, user_name: "", scopes: ["read:*"], ...times };
      return app.db.writeOr(insertToken(token, 2), () => new Error("full"));
    };
    await insert(bob.id, "b1");
    await insert(ann.id, "a1");
    await insert(ann.id, "a2");
    await expect(insert(ann.id, "a3")).rejects.toThrow("full");
    await insert(bob.id, "b2");
    await expect(insert(bob.id, "b3")).rejects.toThrow("full");
  });

  it("is valid until the millisecond of its end", async () => {
    const clock = new TestClock();
    await using app = await openApp({ inMemory: true, clock });
    const expires_at = clock.now() + 10_500;
    const { token } = await app.call("POST /api/tokens", { name: "t", scopes: ["read:workers"], expires_at });
    const get = async () => (await app.send("GET /api/workers", undefined, buildBearer(token))).status;
    clock.advance(10_499);
    expect(await get()).toBe(200);
    clock.advance(1);
    expect(await get()).toBe(401);
  });
});

describe("a caller without write:commands", () => {
  it("can neither set nor replace nor remove a gate or a check", async () => {
    await using app = await openApp({ inMemory: true });
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "echo", verify: CHECK });
    const schedule = { type: "scheduled", instruction: "i", cron: "0 7 * * *", message_id: "m" };
    const task = await app.call("POST /api/tasks", {
      ...schedule,
      worker_id: worker.id,
      gate: CHECK,
      verify: CHECK,
    });
    const { headers } = await createToken(app, "narrow", ["write:tasks", "write:workers", "read:*"]);
    const other = { ...CHECK, command: ["false"] };
    const routes = [
      [`PUT /api/tasks/${task.id}`, ["gate", "verify"]],
      [`PUT /api/workers/${worker.id}`, ["verify"]],
    ] as const;
    for (const [route, names] of routes) {
      for (const name of names) {
        for (const value of [null, other]) {
          const { status, body } = await app.send(route, { [name]: value }, headers);
          expect([route, name, value, status]).toEqual([route, name, value, 403]);
          expect(body).toMatchObject({ required_scope: "write:commands", errors: [{ path: name }] });
        }
      }
    }
    expect(await app.call(`GET /api/tasks/${task.id}`)).toMatchObject({ gate: CHECK, verify: CHECK });
    expect(await app.call(`GET /api/workers/${worker.id}`)).toMatchObject({ verify: CHECK });
    const created = { ...schedule, worker_id: worker.id };
    for (const given of [{ gate: CHECK }, { verify: CHECK }]) {
      const { status } = await app.send("POST /api/tasks", { ...created, ...given }, headers);
      expect([given, status]).toEqual([given, 403]);
    }
    expect((await app.send(`PUT /api/tasks/${task.id}`, { instruction: "new" }, headers)).status).toBe(200);
  });
});

describe("a run with *:*", () => {
  it("can neither set nor remove a gate or a check", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app, ["*:*"]);
    const worker = await app.call("POST /api/workers", { name: "Ada", engine: "echo", verify: CHECK });
    const other = { ...CHECK, command: ["false"] };
    const plan = { type: "scheduled", cron: "0 7 * * *", instruction: "x" };
    const body = { ...plan, worker_id: run.workerId, message_id: run.messageId };
    for (
      const [route, rest, names] of [
        ["POST /api/tasks", body, ["gate", "verify"]],
        [`PUT /api/workers/${worker.id}`, {}, ["verify"]],
      ] as const
    ) {
      for (const name of names) {
        const { status, body } = await app.send(route, { ...rest, [name]: other }, run.headers);
        expect([route, name, status, body.required_scope]).toEqual([route, name, 403, "write:commands"]);
      }
    }
    const { status } = await app.send(`PUT /api/workers/${worker.id}`, { verify: null }, run.headers);
    expect(status).toBe(403);
    expect((await app.send("POST /api/tasks", body, run.headers)).status).toBe(201);
  });
});

describe("a pairing code", () => {
  async function insertCode(app: App, sender: string, code: string): Promise<void> {
    const row = { platform: "alerts", sender, name: `User ${sender}`, code_hash: digest(code) };
    await app.db.write(insertPairing({ ...row, created_at: Date.now(), expires_at: Date.now() + 60_000 }));
  }

  it("gives access only to the sender that it was made for, and stays valid after a wrong one", async () => {
    await using app = await openApp({ inMemory: true });
    await insertCode(app, "7", "ABCD2345");
    await insertCode(app, "8", "EFGH2345");
    for (const sender of ["8", "07", "7 ", "77", "User 7", "９"]) {
      const { status, body } = await app.send("POST /api/platforms/pair", { code: "ABCD-2345", sender });
      expect([sender, status, body.paired]).toEqual([sender, 400, undefined]);
    }
    expect(await app.db.read("select 1 from journal where kind = 'platform.paired'")).toEqual([]);
    expect(await app.call("POST /api/platforms/pair", { code: "ABCD-2345" })).toMatchObject({
      sender: "7",
      paired: false,
    });
    expect(await app.call("POST /api/platforms/pair", { code: "ABCD-2345", sender: "7" })).toMatchObject({
      sender: "7",
      paired: true,
    });
  });
});

describe("the files of a run", () => {
  it("go only to the runner that holds the lease, until the lease ends", async () => {
    await using app = await openApp();
    const [mine, other] = [await createFakeRunner(app), await createFakeRunner(app, "r2")];
    const worker = await createRemoteWorker(app, "echo");
    const session = await app.call("POST /api/local/sessions", { name: "s" });
    const media = await upload(app, session.id, "content");
    const name = media.path.split("/").at(-1);
    const { name: to } = await app.call(`GET /api/workers/${worker}`);
    await app.call(`POST /api/local/sessions/${session.id}/messages`, {
      content: `@${to} read it`,
      media_path: media.path,
    });
    await app.settle();
    const id = (await mine.claim()).body.run.execution.execution_id;
    await other.claim({ wait_ms: 0 });
    const get = (runner: { token: string }) =>
      app.send(`GET /api/runs/${id}/media/${name}`, undefined, buildBearer(runner.token));
    expect([(await get(mine)).status, (await get(other)).status]).toEqual([200, 409]);
    await app.db.write([{ sql: "update remote_run set lease_until = 0 where execution_id = ?", args: [id] }]);
    expect((await get(mine)).status).toBe(409);
    await app.db.write([{
      sql: "update remote_run set lease_until = null where execution_id = ?",
      args: [id],
    }]);
    expect((await get(mine)).status).toBe(409);
  });
});

describe("the Host header", () => {
  const FOREIGN = [
    "evil-localhost",
    "evil.localhost",
    "notlocalhost",
    "localhost.evil.example",
    "localhost.",
    "1localhost:80",
  ];

  it("is refused when it only starts or ends like localhost", () => {
    for (const host of FOREIGN) {
      for (const [allowed, loopback] of [[[], true], [["svc.example"], false]] as const) {
        expect(() => checkHost(host, allowed, loopback), host).toThrow("not allowed");
      }
    }
    for (const host of ["a.svc.example", "evilsvc.example", "svc.example.evil", "svc.exampl"]) {
      expect(() => checkHost(host, ["svc.example"], false), host).toThrow("not allowed");
    }
  });

  it("is checked by the service on every path", async () => {
    await using app = await openApp({ inMemory: true });
    for (const path of ["/api/workers", "/metrics", "/livez", "/api/auth/login"]) {
      for (const host of FOREIGN) {
        const { status } = await app.send(`GET ${path}`, undefined, { host });
        expect([path, host, status]).toEqual([path, host, 403]);
      }
    }
  });

  it("must name this machine for metrics without a token, when the service is bound to a network", async () => {
    await using app = await openApp({ inMemory: true, config: { server: { host: "0.0.0.0", port: 0 } } });
    const port = new URL(app.url).port;
    const get = async (host: string) => {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port: Number(port) });
      using _ = connection;
      await connection.write(
        new TextEncoder().encode(`GET /metrics HTTP/1.1\r\nhost: ${host}\r\nconnection: close\r\n\r\n`),
      );
      const head = new Uint8Array(64);
      await connection.read(head);
      return Number(new TextDecoder().decode(head).split(" ")[1]);
    };
    expect([await get("localhost"), await get(`127.0.0.1:${port}`)]).toEqual([200, 200]);
    expect([await get("evil.example"), await get("evil.localhost")]).toEqual([401, 401]);
  });
});

it("isLoopback() refuses addresses that only look like loopback", () => {
  for (const address of ["128.0.0.1", "12.7.0.1", "::2", "::ffff:10.0.0.1", "0.0.0.0", "::"]) {
    expect([address, isLoopback(address)]).toEqual([address, false]);
  }
});
