import { LRUCache } from "lru-cache";
import { jwtVerify } from "jose/jwt/verify";
import { SignJWT } from "jose/jwt/sign";
import type * as OpenId from "openid-client";
import type { Clock } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import { ISSUER } from "../../base/token.ts";
import { ServiceError } from "../../domain/call/error.ts";
import { type Role, ROLES } from "../../domain/call/vocabulary.ts";

/** The OpenID provider and the roles that its claims map to (`auth.oidc`). */
export interface OidcConfig {
  issuer: string;
  client_id: string;
  client_secret: string;
  scopes: string[];
  role_claim: string;
  roles: Record<string, Role>;
}

/** A pending sign-in, which the browser keeps in a signed cookie. The provider's answer must match it. */
interface Flow {
  id: string;
  state: string;
  nonce: string;
  verifier: string;
  /** The local path to return to. */
  returnTo: string;
}

export interface Identity {
  issuer: string;
  subject: string;
  name: string;
  role: Role;
}

/** Time limit at the provider, in seconds. */
export const FLOW_LIFE_S = 600;
/** How long an OpenID login can be refreshed, in ms. */
export const OIDC_LOGIN_MS = 12 * 60 * 60 * 1000;

// A slow provider must not block the browser.
const ANSWER_MAX_S = 5;
const USED_FLOWS_MAX = 10_000;
// A separate audience keeps a sign-in cookie from being accepted as a token, which has no audience.
const FLOW_AUDIENCE = "oidc";

const log = createLogger("oidc");

/** Signs users in with an OpenID provider: authorization code with PKCE, state and nonce. */
export class OidcSignIn {
  readonly #config: OidcConfig;
  readonly #key: () => Uint8Array;
  readonly #clock: Clock;
  readonly #used: LRUCache<string, true>;
  #library: Promise<typeof OpenId> | null = null;
  #provider: Promise<OpenId.Configuration> | null = null;

  constructor(config: OidcConfig, key: () => Uint8Array, clock: Clock) {
    this.#config = config;
    this.#key = key;
    this.#clock = clock;
    this.#used = new LRUCache({ max: USED_FLOWS_MAX, ttl: FLOW_LIFE_S * 1000 });
  }

  /** Returns the provider's URL and the cookie that the browser must send back. Throws `unavailable`. */
  async start(redirectUri: string, returnTo: string): Promise<{ url: URL; cookie: string }> {
    const openId = await this.#load();
    const provider = await this.#getProvider();
    const flow: Flow = {
      id: crypto.randomUUID(),
      state: openId.randomState(),
      nonce: openId.randomNonce(),
      verifier: openId.randomPKCECodeVerifier(),
      returnTo,
    };
    const url = openId.buildAuthorizationUrl(provider, {
      redirect_uri: redirectUri,
      scope: this.#config.scopes.join(" "),
      code_challenge: await openId.calculatePKCECodeChallenge(flow.verifier),
      code_challenge_method: "S256",
      state: flow.state,
      nonce: flow.nonce,
    });
    return { url, cookie: await this.#seal(flow) };
  }

  /**
   * Checks the provider's answer and returns the user's identity. Each sign-in works once, even when it fails. Throws
   * `forbidden` with a reason for the user, or `unavailable` when the provider does not respond.
   */
  async finish(answer: URL, cookie: string | null): Promise<{ identity: Identity; flow: Flow }> {
    const flow = cookie === null ? null : await this.#open(cookie);
    if (flow === null) throw buildRefusal("this browser did not start it, or took longer than ten minutes");
    if (this.#used.has(flow.id)) throw buildRefusal("its answer was used before");
    this.#used.set(flow.id, true);
    const openId = await this.#load();
    const provider = await this.#getProvider();
    try {
      const tokens = await openId.authorizationCodeGrant(provider, answer, {
        pkceCodeVerifier: flow.verifier,
        expectedState: flow.state,
        expectedNonce: flow.nonce,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw buildRefusal("the provider sent no identity");
      return { identity: await this.#readIdentity(openId, provider, claims, tokens.access_token), flow };
    } catch (error) {
      throw this.#explain(error);
    }
  }

  async #readIdentity(
    openId: typeof OpenId,
    provider: OpenId.Configuration,
    claims: OpenId.IDToken,
    accessToken: string,
  ): Promise<Identity> {
    let known: Record<string, unknown> = claims;
    const { role_claim: name } = this.#config;
    const incomplete = claims[name] === undefined || claims.preferred_username === undefined;
    if (incomplete && provider.serverMetadata().userinfo_endpoint !== undefined) {
      known = { ...await openId.fetchUserInfo(provider, accessToken, claims.sub), ...claims };
    }
    const role = this.#findRole(known[name]);
    if (role === null) {
      throw buildRefusal(
        `your ${name} claim at the provider maps to no role. Ask an administrator to extend auth.oidc.roles`,
      );
    }
    const names = [known.preferred_username, known.email, claims.sub];
    return {
      issuer: claims.iss,
      subject: claims.sub,
      name: String(names.find((one) => typeof one === "string" && one !== "")),
      role,
    };
  }

  // The highest of several roles wins.
  #findRole(claim: unknown): Role | null {
    const values = (Array.isArray(claim) ? claim : [claim]).filter((one) => typeof one === "string");
    const { roles } = this.#config;
    const granted = values.filter((one) => Object.hasOwn(roles, one)).map((one) => roles[one]);
    return ROLES.toReversed().find((role) => granted.includes(role)) ?? null;
  }

  /** Returns the sign-in's id from a cookie, or "" when the cookie is invalid or expired. */
  async findFlowId(cookie: string | null): Promise<string> {
    return cookie === null ? "" : (await this.#open(cookie))?.id ?? "";
  }

  #load(): Promise<typeof OpenId> {
    return this.#library ??= import("openid-client");
  }

  // Caches the provider's metadata. After a failure the next sign-in tries again.
  async #getProvider(): Promise<OpenId.Configuration> {
    const openId = await this.#load();
    this.#provider ??= this.#discover(openId);
    try {
      return await this.#provider;
    } catch (error) {
      this.#provider = null;
      throw this.#explain(error);
    }
  }

  async #discover(openId: typeof OpenId): Promise<OpenId.Configuration> {
    const { issuer, client_id, client_secret } = this.#config;
    const url = new URL(issuer);
    const insecure = url.protocol === "http:" ? [openId.allowInsecureRequests] : [];
    const options = { execute: insecure, timeout: ANSWER_MAX_S };
    const found = await openId.discovery(url, client_id, undefined, openId.None(), options);
    if (client_secret === "") return requireSignatures(openId, found);
    const ways = found.serverMetadata().token_endpoint_auth_methods_supported;
    // Basic is the default when the provider lists no methods, and many providers list both.
    const way = ways?.includes("client_secret_post") && !ways.includes("client_secret_basic")
      ? openId.ClientSecretPost(client_secret)
      : openId.ClientSecretBasic(client_secret);
    const configured = new openId.Configuration(found.serverMetadata(), client_id, undefined, way);
    configured.timeout = ANSWER_MAX_S;
    for (const allow of insecure) allow(configured);
    return requireSignatures(openId, configured);
  }

  #explain(error: unknown): ServiceError {
    if (error instanceof ServiceError) return error;
    const { code, message } = error as { code?: string; message: string };
    log.warning("A sign-in with {issuer} failed: {error}", { issuer: this.#config.issuer, error });
    const refusal = /^OAUTH_(?!TIMEOUT)/.test(code ?? "") && code !== "OAUTH_RESPONSE_IS_NOT_CONFORM" ||
      (error as Error).name === "AuthorizationResponseError" || (error as Error).name === "ResponseBodyError";
    if (refusal) return buildRefusal(`the response of the provider does not match: ${message}`);
    return new ServiceError(
      "unavailable",
      "Cannot sign in: the OpenID provider gave no valid response. Try again, or log in with a name and a password.",
      { cause: undefined, retry_after_s: ANSWER_MAX_S },
    );
  }

  #seal({ id, ...flow }: Flow): Promise<string> {
    const now = Math.floor(this.#clock.now() / 1000);
    return new SignJWT(flow)
      .setProtectedHeader({ alg: "HS256", typ: "JWT" })
      .setIssuer(ISSUER)
      .setAudience(FLOW_AUDIENCE)
      .setJti(id)
      .setIssuedAt(now)
      .setExpirationTime(now + FLOW_LIFE_S)
      .sign(this.#key());
  }

  async #open(cookie: string): Promise<Flow | null> {
    const rules = { algorithms: ["HS256"], issuer: ISSUER, audience: FLOW_AUDIENCE };
    try {
      const currentDate = new Date(this.#clock.now());
      const { payload } = await jwtVerify<Flow>(cookie, this.#key(), { ...rules, currentDate });
      const { jti = "", state, nonce, verifier, returnTo } = payload;
      return { id: jti, state, nonce, verifier, returnTo };
    } catch {
      return null;
    }
  }
}

// By default the library trusts the provider's connection and checks no signatures.
function requireSignatures(openId: typeof OpenId, provider: OpenId.Configuration): OpenId.Configuration {
  openId.enableNonRepudiationChecks(provider);
  return provider;
}

function buildRefusal(why: string): ServiceError {
  return new ServiceError("forbidden", `Cannot sign in: ${why}. Start again.`);
}
