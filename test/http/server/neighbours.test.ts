// Operations on one conversation, worker or login must not affect others. Tests with one object would not notice a missing condition.
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp, PASSWORD } from "../../harness/service/app.ts";
import { createUser } from "../../harness/model/people.ts";
import { startRun } from "../../harness/service/run.ts";

const SESSIONS = "/api/local/sessions";
const LOGIN = "POST /api/auth/login";
const right = { username: "admin", password: PASSWORD };

async function upload(app: App, id: string, text: string): Promise<string> {
  const form = new FormData();
  form.append("file", new File([text], "a.txt"));
  const headers = { authorization: `Bearer ${await app.token()}` };
  const response = await fetch(`${app.url}${SESSIONS}/${id}/media`, { method: "POST", headers, body: form });
  expect(response.status).toBe(200);
  return (await response.json()).path;
}

const remember = (sessionKey: string, workerId: string) => ({
  sql: `insert into session_context (session_key, worker_id, engine, session_id, work_dir, updated_at)
    values (?, ?, 'e', 's', '/', 1)`,
  args: [sessionKey, workerId],
});

/** Refreshes with this token and returns the status. */
async function refreshed(app: App, refresh_token: string): Promise<number> {
  return (await app.send("POST /api/auth/refresh", { refresh_token }, { authorization: "" })).status;
}

describe("conversations", () => {
  it("are deleted, and other conversations keep their objects (interface 3)", async () => {
    await using app = await openApp();
    const worker = await app.call("POST /api/workers", { name: "Ada" });
    const make = async (text: string) => {
      const { id } = await app.call(`POST ${SESSIONS}`);
      const media_path = await upload(app, id, text);
      const { message_id } = await app.call(`POST ${SESSIONS}/${id}/messages`, { content: text, media_path });
      await app.settle();
      await app.call("POST /api/questions", { message_id, text: "Go on?" });
      await app.call("PUT /api/memory/entry", { scope: `local:${id}`, key: "k", value: text });
      await app.db.write([remember(`local:${id}`, worker.id)]);
      return id as string;
    };
    const [gone, stays] = [await make("one"), await make("two")];
    const all = () =>
      Promise.all([
        ...["inbound_message", "outbound_message", "session_context", "question"].map((table) =>
          app.db.read(`select * from ${table} where session_key = ?`, [`local:${stays}`])
        ),
        app.db.read("select * from memory where scope = ?", [`local:${stays}`]),
        app.db.read("select * from upload where session_id = ?", [stays]),
      ]);
    const before = await all();
    expect(before.map((rows) => rows.length > 0)).toEqual([true, true, true, true, true, true]);
    await app.call(`DELETE ${SESSIONS}/${gone}`);
    expect(await all()).toEqual(before);
  });

  it("are cleared, and other conversations keep their messages", async () => {
    await using app = await openApp({ config: { bee: { quiet_window: "1h" } } });
    const [one, two] = [await app.call(`POST ${SESSIONS}`), await app.call(`POST ${SESSIONS}`)];
    for (const { id } of [one, two]) await app.call(`POST ${SESSIONS}/${id}/messages`, { content: "hello" });
    await app.call(`DELETE /api/contexts?session_key=local:${one.id}`);
    expect(await app.db.read("select session_key, status from inbound_message order by id")).toEqual([
      { session_key: `local:${one.id}`, status: "failed" },
      { session_key: `local:${two.id}`, status: "received" },
    ]);
  });
});

describe("contexts (contract 3, Session context)", () => {
  it("of a worker are deleted when its engine changes, and other workers keep theirs", async () => {
    await using app = await openApp();
    const ada = await app.call("POST /api/workers", { name: "Ada" });
    const bob = await app.call("POST /api/workers", { name: "Bob" });
    await app.db.write([ada, bob].map(({ id }) => remember("k", id)));
    await app.call(`PUT /api/workers/${bob.id}`, { engine: "echo" });
    expect(await app.call("GET /api/contexts?session_key=k")).toMatchObject([{ worker_id: ada.id }]);
  });

  it("of a run are not stored if they are cleared during the run, and contexts of other runs are stored", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const one = await startRun(app, [], "A");
    await startRun(app, [], "B");
    const idle = await app.call("POST /api/workers", { name: "C", engine: "echo", runs_on: ["x"] });
    const kept = async () =>
      (await app.db.read<{ keeps_context: number }>("select keeps_context from execution order by id")).map(
        (row) => row.keeps_context,
      );
    await app.call(`PUT /api/workers/${idle.id}`, { runs_on: ["y"] });
    expect(await kept()).toEqual([1, 1]);
    await app.call(`DELETE /api/contexts/${one.workerId}?session_key=${one.sessionKey}`);
    expect(await kept()).toEqual([0, 1]);
  });
});

describe("logins (contract 9)", () => {
  it("end when their own user gets a new password or is deleted", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "viewer");
    const bob = await createUser(app, "Bob", "viewer");
    const eve = await createUser(app, "Eve", "viewer");
    await app.call("PUT /api/users/Ada/password", { password: "another long word" });
    await app.call("DELETE /api/users/Bob");
    const after = [];
    for (const { refresh } of [ada, bob, eve]) after.push(await refreshed(app, refresh));
    expect(after).toEqual([401, 401, 200]);
  });

  it("end only with their own logout", async () => {
    await using app = await openApp();
    const [one, two] = [await app.call(LOGIN, right), await app.call(LOGIN, right)];
    await app.send("POST /api/auth/logout", { refresh_token: one.refresh_token });
    expect([await refreshed(app, one.refresh_token), await refreshed(app, two.refresh_token)]).toEqual([
      401,
      200,
    ]);
  });
});
