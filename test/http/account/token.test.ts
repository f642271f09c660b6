import { createHmac, generateKeyPairSync, sign } from "node:crypto";
import { describe, expect, it } from "vitest";
import { buildFakeEngines } from "../../harness/fakes/agents.ts";
import { openApp, PASSWORD } from "../../harness/service/app.ts";
import { startRun } from "../../harness/service/run.ts";

const LOGIN = "POST /api/auth/login";
const UNKNOWN = "01a1fd23-4a4c-746f-99ac-8860e2641168";

const part = (value: unknown) =>
  btoa(typeof value === "string" ? value : JSON.stringify(value)).replaceAll("+", "-").replaceAll("/", "_")
    .replace(/=+$/, "");

/** Forges a token: the given header and claims, signed with `key` by HMAC. */
function forge(header: unknown, claims: unknown, key: Uint8Array | string, hash = "sha256"): string {
  const text = `${part(header)}.${part(claims)}`;
  return `${text}.${createHmac(hash, key).update(text).digest("base64url")}`;
}

describe("forged tokens [AUT-1]", () => {
  it("are refused with every claim [AUT-1]", async () => {
    await using app = await openApp();
    const { authority } = app.server.parts;
    const [key, version] = [authority.key, await authority.getOperatorVersion()];
    const now = Math.floor(Date.now() / 1000);
    const good = {
      iss: "svc",
      sub: "operator:admin",
      typ: "access",
      scope: "*:*",
      ver: version,
      iat: now,
      exp: now + 60,
      jti: "j",
    };
    const alg = { alg: "HS256" };
    const own = forge(alg, good, key);
    const [head = "", body = "", signature = ""] = own.split(".");
    const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
    const rsaText = `${part({ alg: "RS256" })}.${part(good)}`;
    const publicPem = rsa.publicKey.export({ type: "spki", format: "pem" }).toString();
    const without = (name: keyof typeof good) => {
      const { [name]: _left, ...rest } = good;
      return forge(alg, rest, key);
    };
    const attacker = new Uint8Array(32).fill(7);
    const jwk = { kty: "oct", k: Buffer.from(attacker).toString("base64url"), alg: "HS256" };
    const forged: Record<string, string> = {
      "no algorithm": `${part({ alg: "none" })}.${body}.`,
      "no algorithm, with the signature of another token": `${part({ alg: "none" })}.${body}.${signature}`,
      "None": `${part({ alg: "None" })}.${body}.`,
      "nOnE": forge({ alg: "nOnE" }, good, key),
      "an empty algorithm": forge({ alg: "" }, good, key),
      "no alg in the header": forge({ typ: "JWT" }, good, key),
      "alg as a list": forge({ alg: ["HS256"] }, good, key),
      "alg in small letters": forge({ alg: "hs256" }, good, key),
      "HS384": forge({ alg: "HS384" }, good, key, "sha384"),
      "HS512": forge({ alg: "HS512" }, good, key, "sha512"),
      "RS256 with another key": `${rsaText}.${
        sign("sha256", Buffer.from(rsaText), rsa.privateKey).toString("base64url")
      }`,
      "HMAC with a public key": forge(alg, good, publicPem),
      "another key": forge(alg, good, attacker),
      "an empty key": forge(alg, good, ""),
      "a key in the header": forge({ ...alg, jwk }, good, attacker),
      "the address of a key": forge({ ...alg, jku: "http://127.0.0.1:1/keys.json" }, good, attacker),
      "the address of a certificate": forge(
        { ...alg, x5u: "http://127.0.0.1:1/cert.pem" },
        good,
        attacker,
      ),
      "a kid that is a path": forge({ ...alg, kid: "../../../../dev/null" }, good, ""),
      "a kid that is SQL": forge({ ...alg, kid: "x' union select 'AAAA" }, good, "AAAA"),
      "an unknown crit": forge({ ...alg, crit: ["exp"], exp: 1 }, good, key),
      "an unencoded payload": forge({ ...alg, b64: false, crit: ["b64"] }, good, key),
      "expired": forge(alg, { ...good, iat: now - 60, exp: now - 1 }, key),
      "expires at this second": forge(alg, { ...good, exp: now }, key),
      "exp as text": forge(alg, { ...good, exp: String(now + 60) }, key),
      "exp null": forge(alg, { ...good, exp: null }, key),
      "exp below zero": forge(alg, { ...good, exp: -1 }, key),
      "valid later": forge(alg, { ...good, nbf: now + 600 }, key),
      "nbf as text": forge(alg, { ...good, nbf: "soon" }, key),
      "another issuer": forge(alg, { ...good, iss: "another" }, key),
      "issuers": forge(alg, { ...good, iss: ["svc", "another"] }, key),
      "for another audience": forge(alg, { ...good, aud: "another service" }, key),
      "no exp": without("exp"),
      "no iat": without("iat"),
      "no iss": without("iss"),
      "no sub": without("sub"),
      "no jti": without("jti"),
      "no typ": without("typ"),
      "no ver": without("ver"),
      "no scope": without("scope"),
      "scope as a list": forge(alg, { ...good, scope: ["*:*"] }, key),
      "ver as text": forge(alg, { ...good, ver: String(version) }, key),
      "an older password": forge(alg, { ...good, ver: version - 1, exp: now + 900 }, key),
      "a newer password": forge(alg, { ...good, ver: version + 1 }, key),
      "ctl's own, for an hour": forge(alg, { ...good, ver: 0, exp: now + 3_600 }, key),
      "typ refresh": forge(alg, { ...good, typ: "refresh" }, key),
      "typ ACCESS": forge(alg, { ...good, typ: "ACCESS" }, key),
      "a run without an execution": forge(alg, { ...good, typ: "run", sub: "worker:x" }, key),
      "a run that does not exist": forge(
        alg,
        { ...good, typ: "run", ver: 1, sub: `worker:${UNKNOWN}`, execution_id: UNKNOWN, attempt: 1 },
        key,
      ),
      "an operator's run": forge(alg, { ...good, typ: "run", execution_id: "x", attempt: 1 }, key),
      "a worker's login": forge(alg, { ...good, sub: `worker:${UNKNOWN}` }, key),
      "claims that are a list": forge(alg, [good], key),
      "claims that are no JSON": forge(alg, "{", key),
      "a signature cut short": own.slice(0, -4),
      "no signature": `${head}.${body}.`,
      "two parts": `${head}.${body}`,
      "four parts": `${own}.${signature}`,
      "five parts, as if encrypted": `${head}..${body}.${signature}.x`,
      "claims of one, signature of another": `${head}.${
        part({ ...good, sub: "operator:root" })
      }.${signature}`,
      "not base64": `${head}.${body}.%%%`,
      "empty": "",
      "a megabyte": "x".repeat(8_000),
    };
    const statusOf = async (token: string) =>
      (await app.send("GET /api/workers", undefined, { authorization: `Bearer ${token}` })).status;
    expect(await statusOf(own)).toBe(200);
    expect(Object.keys(forged).length).toBeGreaterThanOrEqual(40);
    for (const [what, token] of Object.entries(forged)) {
      expect([what, await statusOf(token)]).toEqual([what, 401]);
    }
    const headers = [own, `Basic ${own}`, `Bearer ${own} x`, `Bearer`, `Bearer,${own}`, `Token ${own}`];
    for (const header of headers) {
      const reply = await app.send(`GET /api/workers?token=${own}`, undefined, { authorization: header });
      expect([header.slice(0, 8), reply.status]).toEqual([header.slice(0, 8), 401]);
    }
  });
});

describe("a token of one kind used as another [AUT-2]", () => {
  it("is refused in all six combinations [AUT-2]", async () => {
    await using app = await openApp({ config: { engines: buildFakeEngines() } });
    const login = await app.call(LOGIN, { username: "admin", password: PASSWORD });
    const run = await startRun(app);
    const asBearer = async (token: string, route = "GET /api/workers") =>
      (await app.send(route, undefined, { authorization: `Bearer ${token}` })).status;
    const asRefresh = async (refresh_token: string) =>
      (await app.send("POST /api/auth/refresh", { refresh_token })).status;
    expect(await asBearer(login.refresh_token), "refresh as access").toBe(401);
    expect(await asRefresh(login.access_token), "access as refresh").toBe(401);
    expect(await asRefresh(run.token), "run as refresh").toBe(401);
    expect(await asBearer(run.token, "GET /api/system/doctor"), "run as access: its own scopes only").toBe(
      403,
    );
    const { authority } = app.server.parts;
    const [key, version] = [authority.key, await authority.getOperatorVersion()];
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: "svc", scope: "*:*", iat: now, exp: now + 60, jti: "j" };
    const bound = { execution_id: run.executionId, attempt: 1 };
    const alg = { alg: "HS256" };
    const asAccess = { ...claims, ...bound, typ: "access", sub: `worker:${run.workerId}`, ver: version };
    expect(await asBearer(forge(alg, asAccess, key)), "run with the typ of an access").toBe(401);
    const asRun = { ...claims, ...bound, typ: "run", sub: "operator:admin", ver: version };
    expect(await asBearer(forge(alg, asRun, key)), "access with the typ of a run").toBe(401);
    expect(await asBearer(login.access_token)).toBe(200);
    expect(await asRefresh(login.refresh_token)).toBe(200);
  });
});
