import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import Provider from "oidc-provider";

/** An OpenID provider on this machine. */
export interface TestProvider extends AsyncDisposable {
  issuer: string;
  /** How many requests it had. */
  asked: () => number;
  stop: () => Promise<void>;
}

/** What our service is at the provider. */
export const CLIENT = { client_id: "svc", client_secret: "a secret of the provider" };

async function listening(server: HttpServer): Promise<string> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function stopper(server: HttpServer): () => Promise<void> {
  return () =>
    new Promise((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
}

/**
 * The real thing: `oidc-provider` with its own pages for login and consent. Whoever logs in as `name` has the roles that
 * `roles` gives that name.
 */
export async function realProvider(callback: string, roles: Record<string, string[]>): Promise<TestProvider> {
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
  const stop = stopper(server);
  return { issuer, asked: () => asked, stop, [Symbol.asyncDispose]: stop };
}

/** What a provider that lies says instead of the truth. */
export interface Lies {
  /** Claims of the ID token; null leaves one out. */
  claims?: Record<string, unknown>;
  /** Signs with a key that it does not publish. */
  otherKey?: boolean;
  /** What userinfo says. */
  userinfo?: Record<string, unknown>;
  /** The `iss` beside the code; null leaves it out. */
  iss?: string | null;
  /** Waits so long before it answers for a token. */
  delayMs?: number;
}

/** A provider of a few lines that sends everybody straight back, and lies as it is told. */
export async function lyingProvider(lies: Lies): Promise<TestProvider> {
  const [own, other] = [await generateKeyPair("RS256"), await generateKeyPair("RS256")];
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
  const stop = stopper(server);
  return { issuer, asked: () => asked, stop, [Symbol.asyncDispose]: stop };
}
