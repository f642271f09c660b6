import { Buffer } from "node:buffer";
import { createECDH } from "node:crypto";
import ece from "http_ece";
import { importJWK, jwtVerify } from "jose";
import type { Json } from "../../harness/service/client.ts";

/** A push that arrived, after its authorization was verified and its body decrypted. */
export interface GotPush {
  path: string;
  message: Json;
  topic: string;
  headers: Record<string, string>;
  contact: string;
}

/** Answer to a push: a status, or `silent` for a connection without an answer. */
export type PushMode = number | "silent" | { status: number; headers: Record<string, string> };

/** A browser's subscription, with the private key that decrypts its pushes. */
interface Browser {
  pair: ReturnType<typeof createECDH>;
  auth: Buffer;
}

/** A push service that verifies VAPID and decrypts by other code than the service's. Anything wrong is in `faults`. */
export class PushService implements AsyncDisposable {
  readonly got: GotPush[] = [];
  readonly faults: string[] = [];
  /** The answers to a path's pushes, then 201. */
  readonly modes = new Map<string, PushMode>();
  /** How many requests arrived for each path, answered or not. */
  readonly tries = new Map<string, number>();
  serverKey = "";
  readonly #browsers = new Map<string, Browser>();
  readonly #released = Promise.withResolvers<void>();
  readonly #server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    (request) => this.#answer(request),
  );

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Subscribes a browser. Returns its `PushSubscription` as JSON. */
  subscribe(
    name: string,
  ): { endpoint: string; expirationTime: null; keys: { p256dh: string; auth: string } } {
    const pair = createECDH("prime256v1");
    pair.generateKeys();
    const auth = Buffer.from(crypto.getRandomValues(new Uint8Array(16)));
    this.#browsers.set(`/${name}`, { pair, auth });
    const keys = { p256dh: pair.getPublicKey("base64url"), auth: auth.toString("base64url") };
    return { endpoint: `${this.url}/${name}`, expirationTime: null, keys };
  }

  countTries(name: string): number {
    return this.tries.get(`/${name}`) ?? 0;
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    this.tries.set(pathname, (this.tries.get(pathname) ?? 0) + 1);
    const body = Buffer.from(await request.arrayBuffer());
    const mode = this.modes.get(pathname) ?? 201;
    if (mode === "silent") {
      await this.#released.promise;
      return new Response(null, { status: 503 });
    }
    try {
      this.got.push(await this.#read(request, pathname, body));
    } catch (error) {
      this.faults.push(String(error));
      return new Response(null, { status: 400 });
    }
    const { status, headers } = typeof mode === "number" ? { status: mode, headers: {} } : mode;
    return new Response(null, { status, headers });
  }

  async #read(request: Request, path: string, body: Buffer): Promise<GotPush> {
    const headers = Object.fromEntries(request.headers);
    const browser = this.#browsers.get(path);
    if (browser === undefined) throw new Error(`nobody subscribed at ${path}`);
    if (request.method !== "POST") throw new Error(`method ${request.method}`);
    if (headers["content-encoding"] !== "aes128gcm") {
      throw new Error(`encoding ${headers["content-encoding"]}`);
    }
    if (!/^\d+$/.test(headers.ttl ?? "")) throw new Error(`TTL ${headers.ttl}`);
    if (!/^[A-Za-z0-9_-]{1,32}$/.test(headers.topic ?? "")) throw new Error(`topic ${headers.topic}`);
    if (body.length > 4096) throw new Error(`${body.length} bytes`);
    const contact = await this.#verify(headers.authorization ?? "");
    const text = ece.decrypt(body, {
      version: "aes128gcm",
      privateKey: browser.pair,
      authSecret: browser.auth.toString("base64url"),
    }).toString("utf8");
    return { path, message: JSON.parse(text), topic: headers.topic ?? "", headers, contact };
  }

  /** Verifies the token as RFC 8292 asks a push service to. Returns the contact. */
  async #verify(authorization: string): Promise<string> {
    const [, token = "", key = ""] = /^vapid t=([^,]+), ?k=([\w-]+)$/.exec(authorization) ?? [];
    if (key === "" || this.serverKey !== "" && key !== this.serverKey) {
      throw new Error(`key ${authorization}`);
    }
    const point = Buffer.from(key, "base64url");
    const jwk = {
      kty: "EC",
      crv: "P-256",
      x: point.subarray(1, 33).toString("base64url"),
      y: point.subarray(33).toString("base64url"),
    };
    const { payload } = await jwtVerify(token, await importJWK(jwk, "ES256"), {
      audience: this.url,
      algorithms: ["ES256"],
    });
    const now = Math.floor(Date.now() / 1000);
    if (payload.exp === undefined || payload.exp > now + 86_400) throw new Error(`expiry ${payload.exp}`);
    return String(payload.sub);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#released.resolve();
    await this.#server.shutdown();
  }
}
