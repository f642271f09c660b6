import { describe, expect, it } from "vitest";
import {
  type Caller,
  findIdleScopes,
  getBoundSessionKey,
  grants,
  mayCall,
  scope,
} from "../../src/domain/call/scope.ts";
import { RESOURCES, type Scope, VERBS } from "../../src/domain/call/vocabulary.ts";

describe("scopes (contract 2)", () => {
  it("grants matches verb and resource, * in a held scope matches all", () => {
    expect(grants(["read:workers"], "read:workers")).toBe(true);
    expect(grants(["read:workers"], "write:workers")).toBe(false);
    expect(grants(["read:workers"], "read:tasks")).toBe(false);
    expect(grants(["read:*"], "read:tasks")).toBe(true);
    expect(grants(["*:tasks"], "write:tasks")).toBe(true);
    expect(grants(["*:*"], "write:system")).toBe(true);
    expect(grants([], "read:workers")).toBe(false);
    expect(grants(["read:work"], "read:workers")).toBe(false);
  });

  it("the syntax is <verb>:<resource>, lower case", () => {
    for (const good of ["read:workers", "*:*", "write:some-thing", "fly:moon"]) {
      expect(scope.safeParse(good).success).toBe(true);
    }
    for (const bad of ["", ":", "read", "read:", ":x", "Read:x", "read:x y", "read:x:y", "read:ä", "a1:b"]) {
      expect(scope.safeParse(bad).success, bad).toBe(false);
    }
  });

  it("findIdleScopes() returns scopes that no route requires", () => {
    expect(findIdleScopes(["read:workers", "fly:moon", "read:moon", "*:chat", "write:*"])).toEqual([
      "fly:moon",
      "read:moon",
    ]);
  });

  it("mayCall() gives people what their scopes cover, and runs nothing that is reserved for people", () => {
    const run = {
      ...{ execution_id: "e", attempt: 1, worker_id: "w", session_key: "k" },
      ...{ message_id: "m", task_id: "t", depth: 0 },
    };
    const caller = { subject: "x", scopes: ["*:*"], person: null };
    const all = RESOURCES.flatMap((resource) => VERBS.map((verb): Scope => `${verb}:${resource}`));
    expect(all.filter((one) => !mayCall({ ...caller, run: null }, one))).toEqual([]);
    const refused = all.filter((one) => !mayCall({ ...caller, run }, one));
    const closed = [
      "users",
      "tokens",
      "platforms",
      "webhooks",
      "notices",
      "fleet",
      "runners",
      "runs",
      "secrets",
    ];
    expect(refused.sort()).toEqual([
      ...closed.flatMap((resource) => [`read:${resource}`, `write:${resource}`]),
      ...["budgets", "engines", "commands"].map((resource) => `write:${resource}`),
    ].sort());
  });

  it("getBoundSessionKey() binds a run to its conversation unless it holds *:*", () => {
    const run = {
      execution_id: "e",
      attempt: 1,
      worker_id: "w",
      session_key: "k",
      message_id: "m",
      task_id: "t",
      depth: 0,
    };
    const caller = (scopes: string[], bound = true): Caller => ({
      subject: "x",
      scopes,
      run: bound ? run : null,
      person: null,
    });
    expect(getBoundSessionKey(caller(["read:*"]))).toBe("k");
    expect(getBoundSessionKey(caller(["*:memory", "read:*", "write:*"]))).toBe("k");
    expect(getBoundSessionKey(caller(["*:*"]))).toBeNull();
    expect(getBoundSessionKey(caller(["*:*"], false))).toBeNull();
  });
});
