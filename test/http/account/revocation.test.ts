import { describe, expect, it } from "vitest";
import { buildLogResponse } from "../../../src/http/stream/log_stream.ts";
import { buildEventStream, encodeFrames, formatFrame } from "../../../src/http/stream/event_source.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { createToken, createUser, logIn, type TestCaller, WORD } from "../../harness/model/people.ts";
import { type ActiveRun, startRun } from "../../harness/service/run.ts";

const ENDS_WITHIN_MS = 1_000;
// Tolerance for a busy machine.
const LATE_MS = 2_000;

/** Opens one connection of each kind. Each resolves with its last text at its end. */
async function openAll(app: App, { headers }: TestCaller, run: ActiveRun): Promise<Promise<string>[]> {
  const paths = [
    "/api/events",
    `/api/local/sessions/${run.sessionId}/stream`,
    `/api/executions/${run.executionId}/logs?follow=true`,
    `/api/tasks/${run.taskId}/wait?timeout_ms=60000`,
  ];
  const open: Promise<string>[] = [];
  for (const path of paths) {
    const response = await fetch(app.url + path, { headers });
    expect([path, response.status]).toEqual([path, 200]);
    // An interrupted wait has no last text.
    open.push(response.text().catch(() => "broken off"));
  }
  await new Promise((resolve) => setTimeout(resolve, 300));
  return open;
}

/** Returns the last texts when all connections end soon after `end`. */
async function endedBy(open: Promise<string>[], end: () => Promise<unknown>): Promise<string[]> {
  await end();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error("a connection stayed open")), ENDS_WITHIN_MS + LATE_MS);
  });
  return await Promise.race([Promise.all(open), late]).finally(() => clearTimeout(timer));
}

describe("open connections after a loss of rights (contract 9) [USR-2]", () => {
  it("streams, logs and waits end within a second: user disabled, role or password changed, token revoked [USR-2]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const run = await startRun(app);
    const ada = await createUser(app, "Ada", "admin");
    const token = await createToken(app, "ci", ["read:*"], ada.headers);
    const ways: [string, TestCaller, () => Promise<unknown>][] = [
      ["token revoked", token, () => app.call(`DELETE /api/tokens/${token.id}`)],
      ["role changed", ada, () => app.call("PUT /api/users/Ada", { role: "operator" })],
      ["disabled", ada, () => app.call("PUT /api/users/Ada", { disabled: true })],
    ];
    for (const [way, who, end] of ways) {
      const [events, chat] = await endedBy(await openAll(app, who, run), end);
      expect([way, events?.trimEnd().split("\n").slice(-2)]).toEqual([
        way,
        ["event: end", 'data: {"reason":"revoked"}'],
      ]);
      expect([way, chat]).toEqual([way, expect.stringContaining('data: {"reason":"revoked"}')]);
    }
    await app.call("PUT /api/users/Ada", { disabled: false });
    const { access_token } = await logIn(app, "Ada");
    const again = { ...ada, headers: { authorization: `Bearer ${access_token}` } };
    const fresh = { password: `${WORD}, and another` };
    await endedBy(await openAll(app, again, run), () => app.call("PUT /api/users/Ada/password", fresh));
    expect((await app.send("GET /api/workers", undefined, again.headers)).status).toBe(401);
  });

  it("a stream and a log send nothing to a reader without rights [USR-2]", async () => {
    await using app = await openApp();
    const { wakeups } = app.server.parts;
    const deps = { ...app.server.parts, maskOfRun: (_id: string, value: unknown) => value };
    const before = wakeups.size;
    const stream = buildEventStream(deps, {
      whyEnded: () => Promise.resolve("revoked"),
      wakeup: "x",
      after: 0,
      opening: "",
      step: () => Promise.resolve({ frames: encodeFrames([formatFrame("told", {})]), after: 1 }),
    });
    const said = await stream.text();
    expect(said).toContain('data: {"reason":"revoked"}');
    expect(said).not.toContain("told");
    const path = await Deno.makeTempFile({ prefix: "svc-test-log-" });
    await Deno.writeTextFile(path, "x".repeat(200_000));
    let asked = 0;
    const log = await buildLogResponse(deps, {
      ...{ path, text: null, executionId: "x", ended: false, follow: true, tail: undefined },
      again: () => Promise.resolve(++asked === 1 ? { ended: false, text: null } : null),
    });
    expect((await log.text()).length).toBe(65_536);
    expect(wakeups.size).toBe(before);
    await Deno.remove(path);
  });

  it("a change by another program in the database is effective within a second [USR-2]", async () => {
    await using app = await openApp();
    const ada = await createUser(app, "Ada", "viewer");
    const status = async () => (await app.send("GET /api/workers", undefined, ada.headers)).status;
    expect(await status()).toBe(200);
    await app.db.write([{ sql: "update user set disabled = 1 where name = 'Ada'", args: [] }]);
    await new Promise((resolve) => setTimeout(resolve, ENDS_WITHIN_MS + 20));
    expect(await status()).toBe(401);
  });
});
