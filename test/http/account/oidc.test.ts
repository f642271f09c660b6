import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/base/clock.ts";
import { type App, openApp } from "../../harness/service/app.ts";
import { TestClock } from "../../harness/clock.ts";
import { CLIENT, type Lies, startLyingProvider, type TestProvider } from "../../harness/fakes/openid.ts";
import { findFreePort } from "../../harness/service/port.ts";

async function appWith(
  { issuer }: TestProvider,
  roles: Record<string, string> = { staff: "operator" },
  clock: Clock = systemClock,
): Promise<App> {
  const port = findFreePort();
  return await openApp({
    clock,
    config: {
      server: { port },
      auth: { oidc: { issuer, ...CLIENT, roles: roles as Record<string, "operator"> } },
    },
  });
}

interface Ended {
  status: number;
  detail: string;
  location: string | null;
  cookie: string;
  callback: string;
}

/** Starts a sign-in, follows the redirects, and returns the result. */
async function signIn(app: App, change: (callback: URL) => void = () => {}): Promise<Ended> {
  const begun = await fetch(`${app.url}/api/auth/oidc/start?return=/work`, { redirect: "manual" });
  await begun.body?.cancel();
  const cookie = begun.headers.get("set-cookie")?.split(";")[0] ?? "";
  const sent = await fetch(begun.headers.get("location") ?? "", { redirect: "manual" });
  await sent.body?.cancel();
  const callback = new URL(sent.headers.get("location") ?? "");
  change(callback);
  return { ...await finish(callback.href, cookie), cookie, callback: callback.href };
}

async function finish(
  callback: string,
  cookie: string,
): Promise<Pick<Ended, "status" | "detail" | "location">> {
  const done = await fetch(callback, { redirect: "manual", headers: { cookie } });
  const text = await done.text();
  return {
    status: done.status,
    detail: text === "" ? "" : JSON.parse(text).detail,
    location: done.headers.get("location"),
  };
}

const getCode = ({ location }: Pick<Ended, "location">) =>
  new URL(location ?? "").hash.slice("#code=".length);

/** Logs a browser in with the code of a sign-in. */
function logIn(app: App, code: string, cookie: string, origin = app.url): Promise<Response> {
  return fetch(`${app.url}/api/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json", origin, cookie },
    body: JSON.stringify({ code, browser: true }),
  });
}

const users = (app: App) => app.db.read("select name, origin, issuer from user order by name");

describe("a malicious provider (contract 9) [USR-4]", () => {
  it("is accepted with valid answers", async () => {
    await using provider = await startLyingProvider({});
    await using app = await appWith(provider);
    const { status, location, cookie } = await signIn(app);
    expect(status).toBe(303);
    const to = new URL(location ?? "");
    expect([to.origin, to.pathname, to.hash]).toEqual([
      app.url,
      "/work",
      expect.stringMatching(/^#code=[\w-]{43}$/),
    ]);
    const login = await logIn(app, getCode({ location }), cookie);
    expect(login.status).toBe(200);
    const { access_token } = await login.json();
    const me = await app.call("GET /api/auth/whoami", undefined, { authorization: `Bearer ${access_token}` });
    expect(me).toMatchObject({ name: "mallory", role: "operator" });
    const [row] = await app.db.read<{ left: number }>(
      "select expires_at - created_at as left from refresh_token where kind = 'browser'",
    );
    expect(row?.left).toBe(12 * 60 * 60 * 1000);
  });

  const lies: [string, Lies][] = [
    ["another nonce", { claims: { nonce: "of another sign-in" } }],
    ["no nonce", { claims: { nonce: null } }],
    ["an identity of another issuer", { claims: { iss: "https://elsewhere.example" } }],
    ["an identity for another client", { claims: { aud: "another" } }],
    ["an identity that has expired", { claims: { exp: 1_000_000_000 } }],
    ["a signature by a key that is not published", { otherKey: true }],
    ["an answer of another issuer (mix-up)", { iss: "https://elsewhere.example" }],
    ["an answer without its issuer (mix-up)", { iss: null }],
    ["userinfo of another user", { claims: { roles: null }, userinfo: { sub: "admin", roles: ["staff"] } }],
  ];
  for (const [what, lie] of lies) {
    it(`${what} is refused with a message and stores nothing [USR-4]`, async () => {
      await using provider = await startLyingProvider(lie);
      await using app = await appWith(provider);
      const { status, detail } = await signIn(app);
      expect([status, detail]).toEqual([403, expect.stringMatching(/^Cannot sign in: .*Start again\.$/)]);
      expect(await users(app)).toEqual([{ name: "admin", origin: "operator", issuer: "" }]);
      const [event] = await app.call("GET /api/events?kind=auth.refused", undefined, {
        accept: "application/json",
      });
      expect(event.data).toMatchObject({ by: "oidc" });
    });
  }
});

describe("a malicious browser (contract 9) [USR-4]", () => {
  it("stores nothing without a started sign-in, and has a limit of failures per minute [USR-4]", async () => {
    await using provider = await startLyingProvider({});
    await using app = await appWith(provider, undefined, new TestClock("2026-01-05T08:00:10Z"));
    const callback = `${app.url}/api/auth/oidc/callback?code=x&state=x`;
    for (let i = 0; i < 30; i++) expect((await finish(callback, "")).status).toBe(403);
    expect((await finish(callback, "")).status).toBe(429);
    expect(await app.db.read("select kind from journal where kind = 'auth.refused'")).toEqual([]);
  });

  it("another state, no cookie, a forged cookie, a repeated answer, an error: refused without storing anything [USR-4]", async () => {
    await using provider = await startLyingProvider({});
    await using app = await appWith(provider);
    const state = await signIn(app, (url) => url.searchParams.set("state", "another"));
    expect([state.status, state.detail]).toEqual([403, expect.stringContaining("does not match")]);
    // A failed sign-in stays failed, also with the right answer.
    const right = new URL(state.callback);
    expect((await finish(right.href, state.cookie)).detail).toContain("was used before");
    const denied = await signIn(app, (url) => {
      url.searchParams.delete("code");
      url.searchParams.set("error", "access_denied");
    });
    expect([denied.status, denied.detail]).toEqual([403, expect.stringContaining("does not match")]);
    const begun = await signIn(app, (url) => url.searchParams.set("code", "x".repeat(3_000)));
    expect(begun.status).toBe(303);
    const fresh = await signIn(app);
    expect((await finish(fresh.callback, "")).detail).toContain("this browser did not start it");
    const [name = "", value = ""] = fresh.cookie.split("=");
    const [head, body] = value.split(".");
    for (const forged of [`${head}.${body}.AAAA`, `eyJhbGciOiJub25lIn0.${body}.`, await app.token(), "x"]) {
      expect((await finish(fresh.callback, `${name}=${forged}`)).status).toBe(403);
    }
    expect((await finish(fresh.callback, fresh.cookie)).detail).toContain("was used before");
    expect(await users(app)).toHaveLength(2);
  });

  it("a code is valid once, for a minute, in the browser that signed in", async () => {
    await using provider = await startLyingProvider({});
    await using app = await appWith(provider);
    const statusOf = async (signedIn: Ended, cookie = signedIn.cookie, origin = app.url) => {
      const reply = await logIn(app, getCode(signedIn), cookie, origin);
      await reply.body?.cancel();
      return reply.status;
    };
    const stolen = await signIn(app);
    expect(await statusOf(stolen, "")).toBe(401);
    expect(await statusOf(stolen)).toBe(401);
    const own = await signIn(app);
    expect(await statusOf(own, own.cookie, "http://127.0.0.1:1")).toBe(403);
    expect(await statusOf(own)).toBe(200);
    expect(await statusOf(own)).toBe(401);
  });

  it("is never redirected to another host", async () => {
    await using provider = await startLyingProvider({});
    await using app = await appWith(provider);
    const targets = ["//evil.example", "/\\evil.example", "https://evil.example", "evil", "/a#b", "/\tb", ""];
    for (const to of targets) {
      const reply = await app.send(`GET /api/auth/oidc/start?return=${encodeURIComponent(to)}`);
      expect([to, reply.status]).toEqual([to, 400]);
    }
  });
});

describe("users of a provider (contract 9)", () => {
  it("an unmapped role is refused, and each login sets the highest of several roles", async () => {
    const lies: Lies = { claims: { roles: ["nobody"] } };
    await using provider = await startLyingProvider(lies);
    await using app = await appWith(provider, { staff: "viewer", boss: "admin" });
    expect((await signIn(app)).detail).toContain(
      "your roles claim at the provider maps to no role. Ask an administrator",
    );
    lies.claims = { roles: ["boss", "staff"] };
    expect((await signIn(app)).status).toBe(303);
    expect(await app.call("GET /api/users/mallory")).toMatchObject({ role: "admin", origin: "oidc" });
    lies.claims = { roles: "staff", preferred_username: "renamed" };
    expect((await signIn(app)).status).toBe(303);
    expect(await app.call("GET /api/users/mallory")).toMatchObject({ role: "viewer" });
    await app.call("PUT /api/users/mallory", { disabled: true });
    expect((await signIn(app)).detail).toContain("disabled");
  });

  it("a sign-in with the name of an existing user or the operator is 409 and never linked [USR-4]", async () => {
    const lies: Lies = { claims: { preferred_username: "Admin" } };
    await using provider = await startLyingProvider(lies);
    await using app = await appWith(provider);
    const { status, detail } = await signIn(app);
    expect([status, detail]).toEqual([409, expect.stringContaining("is not linked to you")]);
    for (const preferred_username of ["аdmin", "adm1n", "ＡＤＭＩＮ"]) {
      lies.claims = { preferred_username };
      const alike = await signIn(app);
      expect([alike.status, alike.detail]).toEqual([409, expect.stringContaining("is not linked to you")]);
    }
    for (const preferred_username of ["mal\u3164lory", "mal\u{e0061}lory", "\u2800"]) {
      lies.claims = { preferred_username };
      expect((await signIn(app)).status).toBe(403);
    }
    expect(await users(app)).toHaveLength(1);
    // The same subject of another issuer is another user.
    lies.claims = { preferred_username: "mallory" };
    expect((await signIn(app)).status).toBe(303);
    await app.db.write([{
      sql: "update user set issuer = 'https://before.example' where origin = 'oidc'",
      args: [],
    }]);
    expect((await signIn(app)).status).toBe(409);
  });

  it("an unreachable or slow provider gives a clear error, and password logins work", async () => {
    const lies: Lies = { delayMs: 20_000 };
    await using provider = await startLyingProvider(lies);
    await using app = await appWith(provider);
    const started = performance.now();
    const slow = await signIn(app);
    expect([slow.status, slow.detail]).toEqual([
      503,
      expect.stringContaining("log in with a name and a password"),
    ]);
    expect(performance.now() - started).toBeLessThan(15_000);
    await provider.stop();
    await using other = await openApp({
      config: { auth: { oidc: { issuer: provider.issuer, ...CLIENT, roles: { staff: "viewer" } } } },
    });
    const down = await other.send("GET /api/auth/oidc/start");
    expect([down.status, down.headers.get("retry-after")]).toEqual([503, "5"]);
    expect((await other.send("GET /api/workers")).status).toBe(200);
  });
});
