import { describe, expect, it } from "vitest";
import type { Authentication, Authority } from "../../../src/api/call/authority.ts";
import type { Rule } from "../../../src/domain/call/access.ts";
import { ServiceError } from "../../../src/domain/call/error.ts";
import type { Caller, Person } from "../../../src/domain/call/scope.ts";
import {
  authenticate,
  checkHost,
  findClientAddress,
  isLoopback,
  readToken,
} from "../../../src/http/authenticate.ts";
import { authorize, isAuthorized } from "../../../src/http/authorize.ts";

const PROXIES = ["127.0.0.1", "10.0.0.2"];

describe("readToken()", () => {
  const of = (authorization: string | null, query = "") => {
    const url = new URL(`http://localhost/${query}`);
    return readToken(new Request(url, authorization === null ? {} : { headers: { authorization } }), url);
  };

  it("is null without a token, and the header comes before the query (interface 5) [AUT-9]", () => {
    expect(of(null)).toBeNull();
    expect(of(null, "?token=q")).toBe("q");
    expect(of("Bearer h", "?token=q")).toBe("h");
    expect(of("bearer   h")).toBe("h");
  });

  it("is an empty token for an unknown authorization header", () => {
    for (const odd of ["Basic h", "Bearer", "Bearer a b", "xBearer h"]) {
      expect([odd, of(odd, "?token=q")]).toEqual([odd, ""]);
    }
  });
});

it("authenticate() finds the caller of a valid token, and distinguishes a missing token from an invalid one (interface 5)", async () => {
  const found = {} as Authentication;
  const asked: string[] = [];
  const authority = {
    authenticate(token: string) {
      asked.push(token);
      return Promise.resolve(token === "good" ? found : null);
    },
  } as unknown as Authority;
  const by = (query: string) => {
    const url = new URL(`http://localhost/${query}`);
    return authenticate(authority, new Request(url), url);
  };
  expect(await by("?token=good")).toBe(found);
  const refusals: [query: string, words: RegExp][] = [["?token=bad", /expired, revoked/], [
    "",
    /has no token/,
  ]];
  for (const [query, words] of refusals) {
    await expect(by(query)).rejects.toMatchObject({
      code: "unauthenticated",
      message: expect.stringMatching(words),
    });
  }
  expect(asked).toEqual(["good", "bad"]);
});

describe("findClientAddress() (contract 2) [AUT-4]", () => {
  const cases: [socket: string, header: string | null, address: string][] = [
    ["203.0.113.9", null, "203.0.113.9"],
    ["203.0.113.9", "198.51.100.1", "203.0.113.9"],
    ["127.0.0.1", null, "127.0.0.1"],
    ["127.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"],
    ["::ffff:203.0.113.9", null, "203.0.113.9"],
    // A client can forge the first entries. The nearest proxy adds the last one.
    ["127.0.0.1", "6.6.6.6, 198.51.100.1", "198.51.100.1"],
    ["127.0.0.1", "198.51.100.1 , 10.0.0.2", "198.51.100.1"],
    ["127.0.0.1", "2001:db8::1", "2001:db8::1"],
    ["127.0.0.1", "10.0.0.2", "127.0.0.1"],
    ["127.0.0.1", "unknown", "127.0.0.1"],
    ["127.0.0.1", "198.51.100.1, unknown", "198.51.100.1"],
  ];
  for (const [socket, header, address] of cases) {
    it(`${socket} with ${header === null ? "no header" : `"${header}"`} is ${address}`, () => {
      expect(findClientAddress(socket, header, PROXIES)).toBe(address);
    });
  }
});

describe("checkHost (contract 2) [AUT-11]", () => {
  const lets = (host: string, allowed: string[], loopback: boolean) => {
    try {
      checkHost(host, allowed, loopback);
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: "forbidden" });
      return false;
    }
  };

  it("accepts addresses and localhost with any port and bind address", () => {
    for (const host of ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "192.0.2.7", "[::1]", "[::1]:8080"]) {
      for (const loopback of [true, false]) {
        expect([host, lets(host, [], loopback), lets(host, ["svc.example"], loopback)]).toEqual([
          host,
          true,
          true,
        ]);
      }
    }
  });

  it("accepts only listed names in any case; without a list every name if bound to a network", () => {
    expect(lets("evil.example", [], true)).toBe(false);
    expect(lets("evil.example", [], false)).toBe(true);
    for (const loopback of [true, false]) {
      expect(lets("evil.example", ["Svc.example", "other"], loopback)).toBe(false);
      expect(lets("SVC.example:443", ["Svc.example", "other"], loopback)).toBe(true);
      expect(lets("other", ["Svc.example", "other"], loopback)).toBe(true);
    }
  });
});

it("isLoopback() recognizes loopback addresses", () => {
  const known = ["localhost", "::1", "127.0.0.1", "127.1.2.3"];
  const others = ["0.0.0.0", "::", "192.0.2.7", "1127.0.0.1", "svc.example"];
  expect([...known, ...others].filter(isLoopback)).toEqual(known);
});

describe("isAuthorized() and authorize() (contract 9) [USR-1]", () => {
  const run = {
    execution_id: "e",
    attempt: 1,
    task_id: "t",
    worker_id: "w",
    session_key: "local:s",
    message_id: "m",
    depth: 0,
  };
  const operator: Caller = { subject: "operator:admin", scopes: ["*:*"], run: null, person: null };
  const agent = (...scopes: string[]): Caller => ({ subject: "worker:w", scopes, run, person: null });
  // Callers: the operator, an agent with *:*, one with the scope, one without scopes.
  const cases: [rule: Rule, operator: boolean, all: boolean, scoped: boolean, none: boolean][] = [
    [{ access: "public" }, true, true, true, true],
    [{ access: "token" }, true, true, true, true],
    [{ access: "token", only: "people" }, true, false, false, false],
    [{ access: "write:chat" }, true, true, true, false],
    [{ access: "write:chat", only: "people" }, true, false, false, false],
    [{ access: "write:chat", only: "own" }, true, false, false, false],
    [{ access: "write:chat", only: "unbound" }, true, true, false, false],
    [{ access: "write:users" }, true, false, false, false],
    [{ access: "write:users", only: "own" }, true, false, false, false],
  ];
  for (const [rule, ...expected] of cases) {
    it(`${rule.access} for ${rule.only ?? "all"}`, () => {
      const callers = [operator, agent("*:*"), agent(rule.access), agent()];
      expect(callers.map((caller) => isAuthorized(caller, rule))).toEqual(expected);
      for (const [index, caller] of callers.entries()) {
        const enter = () => authorize(caller, rule);
        if (expected[index]) expect(enter).not.toThrow();
        else expect(enter).toThrow(expect.objectContaining({ code: "forbidden" }));
      }
    });
  }

  it("a rule with `own` accepts a login without the scope, and a token only with the scope", () => {
    const person = (by: Person["by"]): Caller => ({
      subject: "user:ada",
      scopes: [],
      run: null,
      person: { userId: "p", name: "ada", by },
    });
    const own: Rule = { access: "write:tokens", only: "own" };
    const plain: Rule = { access: "write:tokens" };
    const callers = [person("login"), person("token"), { ...person("token"), scopes: ["write:tokens"] }];
    expect(callers.map((caller) => isAuthorized(caller, own))).toEqual([true, false, true]);
    expect(callers.map((caller) => isAuthorized(caller, plain))).toEqual([false, false, true]);
  });

  it("names the missing scope, or says that runs are excluded", () => {
    const refusal = (caller: Caller, rule: Rule) => {
      try {
        authorize(caller, rule);
      } catch (error) {
        if (error instanceof ServiceError) return [error.message, error.extras.required_scope];
      }
      return [];
    };
    const unbound: Rule = { access: "write:chat", only: "unbound" };
    const nobody = { ...operator, scopes: [] };
    const cases: [caller: Caller, rule: Rule, words: string, scope: string | undefined][] = [
      [agent(), { access: "write:chat" }, "lacks the scope write:chat", "write:chat"],
      [nobody, { access: "write:users" }, "lacks the scope write:users", "write:users"],
      [nobody, unbound, "lacks the scope write:chat", "write:chat"],
      [agent("write:chat"), unbound, "bound to its conversation", "write:chat"],
      [agent("*:*"), { access: "write:users" }, "only people may", "write:users"],
      [agent("*:*"), { access: "token", only: "people" }, "only people may", undefined],
    ];
    for (const [caller, rule, words, scope] of cases) {
      expect(refusal(caller, rule)).toEqual([expect.stringContaining(words), scope]);
    }
  });
});
