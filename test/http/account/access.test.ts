import { describe, expect, it } from "vitest";
import { RULES } from "../../../src/domain/call/access.ts";
import { signToken } from "../../../src/base/token.ts";
import { checkRules, ROUTES } from "../../../src/http/app.ts";
import type { AnyRoute } from "../../../src/http/route.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { buildBearer, createToken, createUser, type TestCaller } from "../../harness/model/people.ts";
import { startRun } from "../../harness/service/run.ts";

const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";

/** Scopes that no run gets, listed independently of the code (contract 9). */
const NEVER_A_RUN =
  /:(users|tokens|platforms|webhooks|notices|fleet|runners|runs|secrets)$|^write:(budgets|engines|commands)$/;
const FIRST_PART =
  /^read:(workers|tasks|memory|sessions|executions|departments|messages|chat|system|questions)$/;

interface Kind {
  name: string;
  headers: Record<string, string>;
  may: (access: string, only: string | undefined) => boolean;
}

/** Lists the operations below /api in the OpenAPI document. Others have no rule in the table. */
async function operations(app: App): Promise<[method: string, path: string][]> {
  const { paths } = await app.call("GET /openapi.json") as { paths: Record<string, Record<string, unknown>> };
  return Object.entries(paths).filter(([path]) => path.startsWith("/api/")).flatMap(([path, methods]) =>
    Object.keys(methods).filter((name) => /^(get|post|put|delete|patch|head|options)$/.test(name))
      .map((name): [string, string] => [name.toUpperCase(), path.replace(/\{(\w+)\}/g, ":$1")])
  );
}

function run(name: string, headers: Record<string, string>, may: (access: string) => boolean): Kind {
  return {
    name,
    headers,
    may: (access, only) =>
      access === "token" && only === undefined ||
      (only === undefined || only === "unbound" && name === "a run with *:*") &&
        !NEVER_A_RUN.test(access) && may(access),
  };
}

function login(name: string, headers: Record<string, string>, may: (access: string) => boolean): Kind {
  return { name, headers, may: (access, only) => access === "token" || only === "own" || may(access) };
}

function named(name: string, { headers }: TestCaller, may: (access: string) => boolean): Kind {
  return { name, headers, may: (access) => access === "token" || may(access) };
}

async function listKinds(app: App): Promise<Kind[]> {
  const worker = await startRun(app, [], "Plain");
  const wide = await startRun(app, ["*:*"], "Wide");
  const reader = await startRun(app, ["read:*"], "Reader");
  const narrow = await startRun(app, ["read:tasks", "write:memory"], "Narrow");
  const ops = ["tasks", "sessions", "memory", "messages", "executions", "chat", "questions"]
    .map((resource) => `write:${resource}`);
  const viewer = await createUser(app, "Vera", "viewer");
  const operator = await createUser(app, "Otto", "operator");
  const admin = await createUser(app, "Anna", "admin");
  const token = await createToken(app, "ci", ["read:tasks", "write:memory"], admin.headers);
  const all = await createToken(app, "all", ["*:*"], admin.headers);
  const lent = await createToken(app, "lent", ["read:*"], viewer.headers);
  const { token: runner } = await app.call("POST /api/runners", { name: "mac1", allow_admin: true });
  const read = ["workers", "departments", "tasks", "memory", "questions"].map((resource) =>
    `read:${resource}`
  );
  const defaults = [...read, "write:memory", "write:messages", "write:questions"];
  const bee = ["write:tasks", "write:memory", "write:sessions", "write:messages"];
  const others: Kind[] = [
    { name: "nobody", headers: {}, may: () => false },
    { name: "ctl with the signing key", headers: buildBearer(await app.token()), may: () => true },
    login("a viewer", viewer.headers, (access) => /^read:/.test(access)),
    login("an operator", operator.headers, (access) => /^read:/.test(access) || ops.includes(access)),
    login("an admin", admin.headers, () => true),
    named("a token with two scopes", token, (access) => ["read:tasks", "write:memory"].includes(access)),
    named("a token with *:*", all, () => true),
    named("a viewer's token", lent, (access) => /^read:/.test(access)),
    run("a run with default scopes", worker.headers, (access) => defaults.includes(access)),
    run("a run with *:*", wide.headers, () => true),
    run("a run with read:*", reader.headers, (access) => FIRST_PART.test(access)),
    run("a run with two scopes", narrow.headers, (access) => ["read:tasks", "write:memory"].includes(access)),
    run("the bee", await beeHeaders(app), (access) => bee.includes(access) || FIRST_PART.test(access)),
  ];
  // Only runners may call their routes, and no others (reliability RUN-2).
  return [
    ...others.map((kind) => ({
      ...kind,
      may: (access: string, only: string | undefined) =>
        only === "runs" ? /^(a run|the bee)/.test(kind.name) : only !== "runners" && kind.may(access, only),
    })),
    { name: "a runner", headers: buildBearer(runner), may: (_access, only) => only === "runners" },
  ];
}

// A coordinator's run in progress.
async function beeHeaders(app: App): Promise<Record<string, string>> {
  const { authority, clock } = app.server.parts;
  await app.db.write([{
    sql: `insert into bee_run (id, message_id, session_key, engine, status, attempt, created_at)
      values (?, 'm', 'k', 'fake', 'running', 1, ?)`,
    args: [UNKNOWN, clock.now()],
  }]);
  const claims = { typ: "run" as const, sub: "bee", scope: "", ver: 1, execution_id: UNKNOWN, attempt: 1 };
  return { authorization: `Bearer ${await signToken(authority.key, claims, 600, clock.now())}` };
}

describe("access rules (contract 9) [USR-1]", () => {
  it("every operation of /openapi.json has a rule, which decides for each kind of caller [USR-1, RUN-2]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const kinds = await listKinds(app);
    const all = await operations(app);
    expect(all.length).toBeGreaterThan(50);
    const wrong: string[] = [];
    for (const [method, path] of all) {
      const rule = RULES.get(`${method} ${path}`);
      if (rule === undefined) {
        wrong.push(`${method} ${path} is not in the table`);
        continue;
      }
      for (const { name, headers, may } of kinds) {
        // The unknown parameter gives an allowed caller 400 without an effect.
        const known = path.replace(":kind", "worker_paused").replace(/:\w+/g, UNKNOWN);
        const url = `http://localhost${known}?nothing=1`;
        const reply = await app.server.fetch(new Request(url, { method, headers }));
        const { required_scope } = await reply.json();
        const expected = rule.access === "public" || may(rule.access, rule.only)
          ? 400
          : name === "nobody"
          ? 401
          : 403;
        const scope = expected === 403 && rule.access !== "token" ? rule.access : undefined;
        if (reply.status !== expected || required_scope !== scope) {
          wrong.push(`${method} ${path} for ${name}: ${reply.status} and not ${expected}`);
        }
      }
    }
    expect(wrong).toEqual([]);
  });

  it("a run never deletes a worker, and only a run with *:* creates or renames a local session (contract 8.5)", () => {
    expect(RULES.get("DELETE /api/workers/:id")?.only).toBe("people");
    for (const operation of ["POST /api/local/sessions", "PUT /api/local/sessions/:id"]) {
      expect(RULES.get(operation)?.only).toBe("unbound");
    }
  });

  it("the rules of planned routes already exclude runs", () => {
    const rules = [...RULES.entries()];
    const open = rules.filter(([, { access, only }]) => only === undefined && !NEVER_A_RUN.test(access));
    const pattern = /users|tokens|platforms|webhooks|notices|fleet|runners|backup|key|lift|answer/;
    expect(open.filter(([operation]) => pattern.test(operation)).map(([operation]) => operation)).toEqual([]);
    expect(new Set(rules.map(([operation]) => operation)).size).toBe(rules.length);
  });

  it("checkRules() throws for a route without a rule, and for one whose rule differs from the table [AUT-10]", () => {
    const app = { routes: [{ method: "GET", path: "/api/workers" }] } as never;
    const [list] = (ROUTES as readonly AnyRoute[]).filter(({ operation }) => operation === "worker.list");
    if (list === undefined) throw new Error("there is no such route");
    expect(() => checkRules(app, [list])).not.toThrow();
    expect(() => checkRules(app, [{ ...list, access: "read:system" }])).toThrow(
      /the table of rules does not/,
    );
    const backdoor = { routes: [{ method: "GET", path: "/api/backdoor" }] } as never;
    expect(() => checkRules(backdoor)).toThrow(/\/api\/backdoor declares no access rule/);
    const later = { routes: [{ method: "GET", path: "/api/later" }] } as never;
    expect(() => checkRules(later, [{ ...list, path: "/api/later" }])).toThrow(/not in the table of rules/);
  });
});
