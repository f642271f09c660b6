import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import Provider from "oidc-provider";

export interface TestProvider extends AsyncDisposable {
  issuer: string;
  /** Returns the number of requests so far. */
  asked: () => number;
  stop: () => Promise<void>;
}

/** The registration of the service at the provider. */
export const CLIENT = { client_id: "svc", client_secret: "a secret of the provider" };

async function listening(server: HttpServer): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function createStop(server: HttpServer): () => Promise<void> {
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
}

/** Starts `oidc-provider` with its own pages for login and consent. `roles` maps login names to roles. */
export async function startRealProvider(
  callback: string,
  roles: Record<string, string[]>,
): Promise<TestProvider> {
  const server = createServer();
  const issuer = await listening(server);
  const provider = new Provider(issuer, {
    clients: [{ ...CLIENT, redirect_uris: [callback] }],
    claims: { openid: ["sub", "roles"], profile: ["preferred_username"], email: ["email"] },
    pkce: { required: () => true },
    findAccount: (_context: unknown, id: string) => ({
      accountId: id,
      claims: () => ({ sub: id, preferred_username: id.replace(/#.*/, ""), roles: roles[id] ?? [] }),
    }),
  });
  let asked = 0;
  const handle = provider.callback();
  server.on("request", (request, response) => {
    asked++;
    void handle(request, response);
  });
  const stop = createStop(server);
  return { issuer, asked: () => asked, stop, [Symbol.asyncDispose]: stop };
}

/** False statements of a lying provider. */
export interface Lies {
  /** Claims of the ID token; null omits one. */
  claims?: Record<string, unknown>;
  /** Signs with an unpublished key. */
  otherKey?: boolean;
  /** Claims of the userinfo response. */
  userinfo?: Record<string, unknown>;
  /** The `iss` parameter next to the code; null omits it. */
  iss?: string | null;
  /** Delays the token response. */
  delayMs?: number;
}

type KeyPair = Awaited<ReturnType<typeof generateKeyPair>>;
let keyPairs: Promise<[KeyPair, KeyPair]> | null = null;

// A pair takes a second of processor time, so all providers have the same two.
function loadKeyPairs(): Promise<[KeyPair, KeyPair]> {
  return keyPairs ??= Promise.all([generateKeyPair("RS256"), generateKeyPair("RS256")]);
}

/** Starts a small provider that redirects every login straight back and lies as configured. */
export async function startLyingProvider(lies: Lies): Promise<TestProvider> {
  const [own, other] = await loadKeyPairs();
  const jwk = { ...await exportJWK(own.publicKey), kid: "k", alg: "RS256", use: "sig" };
  const server = createServer();
  const issuer = await listening(server);
  let nonce = "";
  let asked = 0;
  server.on("request", async (request, response) => {
    asked++;
    const url = new URL(request.url ?? "", issuer);
    const json = (value: unknown) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(value));
    };
    if (url.pathname === "/.well-known/openid-configuration") {
      return json({
        issuer,
        authorization_endpoint: `${issuer}/authorize`,
        token_endpoint: `${issuer}/token`,
        userinfo_endpoint: `${issuer}/userinfo`,
        jwks_uri: `${issuer}/jwks`,
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        id_token_signing_alg_values_supported: ["RS256"],
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
      });
    }
    if (url.pathname === "/jwks") return json({ keys: [jwk] });
    if (url.pathname === "/userinfo") return json(lies.userinfo ?? { sub: "mallory" });
    if (url.pathname === "/authorize") {
      nonce = url.searchParams.get("nonce") ?? "";
      const back = new URL(url.searchParams.get("redirect_uri") ?? "");
      back.searchParams.set("code", "a-code");
      back.searchParams.set("state", url.searchParams.get("state") ?? "");
      if (lies.iss !== null) back.searchParams.set("iss", lies.iss ?? issuer);
      response.statusCode = 303;
      response.setHeader("location", back.href);
      return response.end();
    }
    if (lies.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, lies.delayMs));
    const now = Math.floor(Date.now() / 1000);
    const claims: Record<string, unknown> = {
      iss: issuer,
      sub: "mallory",
      aud: CLIENT.client_id,
      iat: now,
      exp: now + 60,
      nonce,
      roles: ["staff"],
      preferred_username: "mallory",
      ...lies.claims,
    };
    for (const [name, value] of Object.entries(claims)) if (value === null) delete claims[name];
    const key = lies.otherKey ? other.privateKey : own.privateKey;
    const id_token = await new SignJWT(claims).setProtectedHeader({ alg: "RS256", kid: "k" }).sign(key);
    json({ access_token: "at", token_type: "bearer", expires_in: 60, id_token });
  });
  const stop = createStop(server);
  return { issuer, asked: () => asked, stop, [Symbol.asyncDispose]: stop };
}
