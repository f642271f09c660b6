import { createHmac } from "node:crypto";
import { dropConnection } from "./server.ts";

export const FORGE_SECRET = "a secret of the forge";
export const FORGE_KEY = "key-of-the-bot";
/** The account of the key. */
export const BOT = { id: 4711, login: "svc-bot", username: "svc-bot" };

interface Comment {
  id: number;
  path: string;
  body: string;
  created_at: string;
}

/** The part of the API of a forge that the service uses. Requests without the key are refused. */
export class FakeForge implements AsyncDisposable {
  readonly comments: Comment[] = [];
  readonly requests: string[] = [];
  /** Outcome of each new comment, then "ok". `lost`: stores it and drops the connection. */
  readonly modes: ("ok" | "lost" | number)[] = [];
  /** Status of every answer but 0. */
  down = 0;
  readonly #server: Deno.HttpServer<Deno.NetAddr>;

  constructor() {
    this.#server = Deno.serve(
      { port: 0, hostname: "127.0.0.1", onListen: () => {} },
      (request) => this.#answer(request),
    );
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.addr.port}`;
  }

  async #answer(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    this.requests.push(`${request.method} ${pathname}${search}`);
    if (request.headers.get("authorization") !== `Bearer ${FORGE_KEY}`) {
      return Response.json({}, { status: 401 });
    }
    if (this.down !== 0) return Response.json({ message: "down" }, { status: this.down });
    if (pathname.endsWith("/user")) return Response.json(BOT);
    if (request.method === "GET") {
      const page = Number(new URLSearchParams(search).get("page"));
      return Response.json(page > 1 ? [] : this.comments.filter(({ path }) => path === pathname));
    }
    const { body } = await request.json();
    const mode = this.modes.shift() ?? "ok";
    if (typeof mode === "number") return Response.json({ message: "no" }, { status: mode });
    const comment = {
      id: this.comments.length + 1,
      path: pathname,
      body,
      created_at: new Date().toISOString(),
    };
    this.comments.push(comment);
    return mode === "lost" ? dropConnection() : Response.json(comment, { status: 201 });
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.shutdown();
  }
}

/** Signs a body as GitHub does. */
export function signGitHub(body: string, event: string, secret = FORGE_SECRET): Record<string, string> {
  const mac = createHmac("sha256", secret).update(body).digest("hex");
  return {
    "x-hub-signature-256": `sha256=${mac}`,
    "x-github-event": event,
    "x-github-delivery": crypto.randomUUID(),
  };
}

/** Signs a body as Gitea does. */
export function signGitea(body: string, event: string, secret = FORGE_SECRET): Record<string, string> {
  return {
    "x-gitea-signature": createHmac("sha256", secret).update(body).digest("hex"),
    "x-gitea-event": event,
  };
}
