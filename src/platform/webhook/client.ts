import { parseRetryAfter } from "../retry_after.ts";
import type { GatewayAccess } from "../manifest.ts";
import { DeliveryError, PlatformError } from "../platform.ts";
import { readAnswerText, requireAnswer, runBeforeSend, TIMEOUT_MS } from "../request.ts";
import type { Forge } from "../../domain/call/vocabulary.ts";
import type { Account } from "./event.ts";
import { Payload } from "./payload.ts";

/** An issue, a pull request or a merge request. */
interface Thread {
  repo: string;
  mark: "#" | "!";
  number: string;
}

/** Parses a conversation. Null for a branch, which takes no comments. */
export function parseThread(conversation: string): Thread | null {
  const [, repo = "", mark = "", number = ""] = /^([^#!@]+)([#!])(\d+)$/.exec(conversation) ?? [];
  return repo === "" ? null : { repo, mark: mark === "!" ? "!" : "#", number };
}

interface Dialect {
  user: string;
  comments: (thread: Thread) => string;
  /** Query of a list of comments since a time, the page in question. */
  list: (since: string, page: number) => string;
}

const encodePath = (repo: string) => repo.split("/").map(encodeURIComponent).join("/");

const DIALECTS: Record<Forge, Dialect> = {
  github: {
    user: "/user",
    comments: ({ repo, number }) => `/repos/${encodePath(repo)}/issues/${number}/comments`,
    list: (since, page) => `?since=${since}&per_page=100&page=${page}`,
  },
  gitlab: {
    user: "/api/v4/user",
    comments: ({ repo, mark, number }) =>
      `/api/v4/projects/${encodeURIComponent(repo)}/${
        mark === "!" ? "merge_requests" : "issues"
      }/${number}/notes`,
    list: (_since, page) => `?order_by=created_at&sort=desc&per_page=100&page=${page}`,
  },
  gitea: {
    user: "/api/v1/user",
    comments: ({ repo, number }) => `/api/v1/repos/${encodePath(repo)}/issues/${number}/comments`,
    list: (since, page) => `?since=${since}&limit=50&page=${page}`,
  },
};

// Comments of others since the reply was created.
const COMMENT_PAGES_MAX = 10;
const DETAIL_CHARACTERS = 200;

class ForgeError extends PlatformError {
  readonly #status: number;

  constructor(forge: string, status: number, detail: string, retryAfterMs: number | null) {
    super(`${forge} answered ${status}${detail === "" ? "" : `: ${detail}`}`, retryAfterMs);
    this.#status = status;
  }

  get isUncertain(): boolean {
    return this.#status >= 500;
  }

  get isKeyRefused(): boolean {
    return this.#status === 401;
  }

  get why(): DeliveryError["why"] {
    // GitHub answers 403 for too many requests, with a time.
    if (this.#status === 429 || this.#status === 403 && this.retryAfterMs !== null) return "limited";
    return this.#status === 401 || this.#status === 408 || this.#status >= 500 ? "unreachable" : "refused";
  }
}

/** Requests of the service to the API of a forge, through a gateway. */
export class ForgeClient {
  readonly #forge: Forge;
  readonly #gateway: GatewayAccess;
  #own: Promise<Account> | null = null;

  constructor(forge: Forge, gateway: GatewayAccess) {
    this.#forge = forge;
    this.#gateway = gateway;
  }

  /** Returns the account of the key. Asks the forge once. Throws DeliveryError or PlatformError. */
  findOwnAccount(): Promise<Account> {
    this.#own ??= this.#readOwnAccount().catch((error) => {
      this.#own = null;
      throw error;
    });
    return this.#own;
  }

  async #readOwnAccount(): Promise<Account> {
    const user = new Payload(await runBeforeSend(() => this.#request("GET", DIALECTS[this.#forge].user)));
    const account = { id: user.id("id"), name: user.text("login") || user.text("username"), isBot: true };
    if (account.id === "") throw new DeliveryError("refused", `${this.#forge} names no account for the key`);
    return account;
  }

  /** Finds a comment with this text since a time. Returns its id, or "". */
  async findComment(thread: Thread, mark: string, since: number): Promise<string> {
    const { comments, list } = DIALECTS[this.#forge];
    const time = new Date(Math.floor(since / 1_000) * 1_000).toISOString().replace(".000", "");
    for (let page = 1; page <= COMMENT_PAGES_MAX; page++) {
      const path = `${comments(thread)}${list(time, page)}`;
      const rows = new Payload({ rows: await runBeforeSend(() => this.#request("GET", path)) }).list("rows");
      const found = rows.find((row) => (row.text("body") || row.text("note")).includes(mark));
      if (found !== undefined) return found.id("id");
      const last = rows.at(-1);
      if (last === undefined || this.#forge === "gitlab" && Date.parse(last.text("created_at")) < since) {
        break;
      }
    }
    return "";
  }

  /** Writes a comment. Returns its id. */
  async createComment(thread: Thread, body: string): Promise<string> {
    const path = DIALECTS[this.#forge].comments(thread);
    const answer = await this.#request("POST", path, { body }).catch((error) => {
      // A proxy in front of the forge may answer although the comment was stored.
      throw error instanceof ForgeError && error.isUncertain
        ? new DeliveryError("unanswered", error.message)
        : error;
    });
    return new Payload(answer).id("id");
  }

  async #request(method: "GET" | "POST", path: string, body?: object): Promise<unknown> {
    const { upstream } = this.#gateway;
    const header = await this.#gateway.readHeader().catch((error) => {
      throw new DeliveryError(
        "unreachable",
        `Cannot use the gateway: ${error instanceof Error ? error.message : error}`,
      );
    });
    const { response, text } = await requireAnswer(this.#forge, async () => {
      const response = await fetch(`${upstream.href.replace(/\/$/, "")}${path}`, {
        method,
        headers: {
          accept: "application/json",
          "user-agent": "svc",
          [header.name]: header.value,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      return { response, text: await readAnswerText(response) };
    });
    const answer = parseJson(text);
    if (response.ok) return answer;
    const detail = new Payload(answer).text("message").slice(0, DETAIL_CHARACTERS);
    throw new ForgeError(this.#forge, response.status, detail, findRetryAfter(response.headers));
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// GitHub names the end of its hourly limit in another header, which counts only when the limit is used up.
function findRetryAfter(headers: Headers): number | null {
  const after = parseRetryAfter(headers.get("retry-after") ?? undefined, Date.now());
  if (after !== null || headers.get("x-ratelimit-remaining") !== "0") return after;
  const reset = Number(headers.get("x-ratelimit-reset")) * 1_000;
  return Number.isFinite(reset) && reset > 0 ? Math.max(1_000, reset - Date.now()) : null;
}
