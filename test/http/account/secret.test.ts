import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp } from "../../harness/service/app.ts";
import { startRun } from "../../harness/service/run.ts";
import { createUser } from "../../harness/model/people.ts";
import { findSecret } from "../../../src/store/account/secret.ts";

const CANARY = "canary-value-of-a-secret";

describe("secrets (contract-3 22)", () => {
  it("a value is stored encrypted and shown by no answer", async () => {
    await using app = await openApp();
    const created = await app.send("PUT /api/secrets/github-token", { value: CANARY });
    expect(created.status).toBe(200);
    expect(created.body).toMatchObject({
      name: "github-token",
      workers: [],
      lost: false,
      last_used_at: null,
    });
    const all = await app.send("GET /api/secrets");
    expect(JSON.stringify([created, all, await app.send("GET /api/secrets/github-token")])).not.toContain(
      CANARY,
    );
    const row = await findSecret(app.server.parts.db, "github-token");
    expect(JSON.stringify(row)).not.toContain(CANARY);
    expect(await app.server.parts.secrets.read("github-token")).toEqual({ state: "value", value: CANARY });
  });

  it("a value that was moved to another name does not open, because the name is authenticated", async () => {
    await using app = await openApp();
    await app.call("PUT /api/secrets/a", { value: "value of a" });
    await app.call("PUT /api/secrets/b", { value: "value of b" });
    const { db, secrets } = app.server.parts;
    await db.write([{
      sql: "update secret set sealed = (select sealed from secret where name = 'a')",
      args: [],
    }]);
    expect(await secrets.read("a")).toEqual({ state: "value", value: "value of a" });
    expect(await secrets.read("b")).toEqual({ state: "lost" });
    expect(await secrets.read("c")).toEqual({ state: "missing" });
  });

  it("no run reaches secrets, whatever its scopes", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    await app.call("PUT /api/secrets/x", { value: CANARY });
    const { headers } = await startRun(app, ["*:*", "write:secrets", "read:secrets"]);
    const requests: [string, unknown?][] = [
      ["GET /api/secrets"],
      ["GET /api/secrets/x"],
      ["PUT /api/secrets/x", { value: "other" }],
      ["DELETE /api/secrets/x"],
    ];
    for (const [operation, body] of requests) {
      expect([operation, (await app.send(operation, body, headers)).status]).toEqual([operation, 403]);
    }
    expect(await app.server.parts.secrets.read("x")).toEqual({ state: "value", value: CANARY });
  });

  it("only admins reach secrets; an error does not repeat the value", async () => {
    await using app = await openApp();
    const operator = await createUser(app, "Ada", "operator");
    for (const operation of ["GET /api/secrets", "GET /api/secrets/x", "DELETE /api/secrets/x"]) {
      expect((await app.send(operation, undefined, operator.headers)).status).toBe(403);
    }
    expect((await app.send("PUT /api/secrets/x", { value: CANARY }, operator.headers)).status).toBe(403);
    const wrong = await app.send("PUT /api/secrets/x", {
      value: `${CANARY}\0`,
      [CANARY]: CANARY,
      workers: [CANARY],
    });
    expect(wrong.status).toBe(400);
    expect((await app.send("PUT /api/secrets/x", { workers: [] })).body.detail).toContain("value");
    expect((await app.send("PUT /api/secrets/Wrong_Name", { value: CANARY })).status).toBe(400);
  });
});
