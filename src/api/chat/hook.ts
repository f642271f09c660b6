import { setOriginActor } from "../../base/origin.ts";
import { invalid, notFound, ServiceError } from "../../domain/call/error.ts";
import { type HookAnswer, hookMessageSchema } from "../../domain/chat/hook.ts";
import type { Caller } from "../../domain/call/scope.ts";
import type { WebhookPlatformConfig } from "../../config/platform.ts";
import { expand } from "../../domain/call/template.ts";
import {
  type SignedBody,
  verifyGitHub,
  verifySlack,
  verifyStandard,
} from "../../platform/webhook_signature.ts";
import type { EventReader } from "../../platform/platform.ts";
import { type Answer, answer } from "../call/answer.ts";
import { checkChainDepth } from "../call/chain_depth.ts";
import { type ForgeMessage, returnToAgent } from "./forge_branch.ts";
import { receiveMessage } from "./inbound.ts";
import { formatSenderActor, type PlatformConnection, type PlatformRules } from "../call/platforms.ts";
import type { Deps } from "../call/services.ts";

export interface Hook {
  name: string;
  /** Headers of the request by name in lower case. */
  headers: Readonly<Record<string, string>>;
  body: Uint8Array;
  /** The caller behind a token with `write:hooks`, or null without a token. */
  holder: Caller | null;
}

/**
 * Stores a program's message before acknowledging it (contract 10.5). Throws `not_found`, `invalid_request`,
 * `rate_limited`, or `unauthenticated` without a valid signature or token.
 */
export async function receiveHook(
  deps: HookDeps,
  hook: Hook,
): Promise<Answer<HookAnswer>> {
  const found = deps.platforms.get(hook.name);
  if (found?.config?.kind !== "webhook" || !found.rules.enabled) throw notFound("hook", hook.name);
  const { rules } = found;
  const events = findEventReader(found.config, found);
  // A token says nothing about the account that an event of a forge names.
  const needsSignature = hook.holder === null || events !== undefined;
  const secret = needsSignature ? await readSecret(deps, found.config) : "";
  const config = { ...found.config, secret };
  if (needsSignature && !isSigned(config, { ...hook, now: deps.clock.now() }, events)) {
    throw new ServiceError(
      "unauthenticated",
      "Cannot accept the message: the signature is missing, wrong or too old. Sign the request with this hook's secret, or send a token with write:hooks.",
    );
  }
  const body = parseBody(hook);
  if (events !== undefined) return await receiveEvent({ deps, rules, hook, events, config }, body);
  if (config.hmac === "slack" && isChallenge(body)) return answer({ challenge: body.challenge });
  const message = { ...readMessage(config, hook, body), excerpts: [] };
  return await storeMessage(deps, rules, hook, message);
}

type HookDeps = Deps<"db" | "clock" | "limits" | "platforms" | "runLimits" | "secrets">;

async function storeMessage(
  deps: HookDeps,
  rules: PlatformRules,
  { name, holder }: Hook,
  message: ForgeMessage,
): Promise<Answer<HookAnswer>> {
  const actor = holder?.subject ?? formatSenderActor(name, message.sender.id);
  const depth = holder === null ? 0 : await checkChainDepth(deps, { caller: holder }, "send this to a hook");
  if (holder !== null) await deps.runLimits.take({ caller: holder }, "messages");
  setOriginActor(actor);
  const received = await receiveMessage(deps, rules, {
    ...message,
    thread: "",
    files: [],
    repliesTo: "",
    choice: "",
    isDirect: true,
    isMentioned: true,
    unreadable: [],
    isData: true,
  }, { actor, depth });
  if (received.outcome !== "over") {
    return {
      ...answer({ status: "queued", message_id: received.message_id }),
      replayed: received.outcome === "repeated",
    };
  }
  throw buildTooMany(deps.limits.max_waiting_messages);
}

function buildTooMany(max: number): ServiceError {
  return new ServiceError(
    "rate_limited",
    `Cannot accept the message: ${max} messages of this conversation are waiting. Try again later.`,
    { retry_after_s: 5 },
  );
}

interface ForgeHook {
  deps: HookDeps;
  rules: PlatformRules;
  hook: Hook;
  events: EventReader;
  /** With the value of its secret. */
  config: WebhookPlatformConfig;
}

// Stores an event of a forge, or says why it is none for the worker.
async function receiveEvent(
  { deps, rules, hook, events, config: { secret, worker, rounds } }: ForgeHook,
  json: unknown,
): Promise<Answer<HookAnswer>> {
  const message = await events.read({ ...hook, json }, { secret, worker, allow: rules.allow }).catch(
    (error) => {
      throw new ServiceError(
        "unavailable",
        `Cannot accept the event: ${error.message}. Deliver it again later.`,
      );
    },
  );
  if (typeof message === "string") return answer({ status: "ignored", reason: message });
  const { change, ...rest } = message;
  const returned = change === null
    ? null
    : await returnToAgent(deps, { rules, message: rest, change, rounds });
  switch (returned?.outcome) {
    case "queued":
    case "repeated":
      return {
        ...answer({ status: "queued" as const, message_id: returned.message_id }),
        replayed: returned.outcome === "repeated",
      };
    case "inbox":
      return answer({ status: "ignored", reason: `after ${rounds} rounds it is in the inbox` });
    case "over":
      throw buildTooMany(deps.limits.max_waiting_messages);
    default:
      return await storeMessage(deps, rules, hook, rest);
  }
}

// The configuration may name a secret of the service. Its name must not count as a key.
async function readSecret({ secrets }: Deps<"secrets">, { secret }: WebhookPlatformConfig): Promise<string> {
  return await secrets.resolve(secret).catch((error) => {
    throw new ServiceError("unavailable", `Cannot check the signature: ${error.message}`);
  });
}

function findEventReader(
  { preset }: WebhookPlatformConfig,
  { platform, problem }: PlatformConnection,
): EventReader | undefined {
  if (preset !== "" && platform?.events === undefined) {
    throw new ServiceError(
      "unavailable",
      `Cannot accept the event: ${problem ?? "the platform did not start"}`,
    );
  }
  return platform?.events;
}

function isSigned(
  { hmac, secret }: WebhookPlatformConfig,
  signed: SignedBody,
  events: EventReader | undefined,
): boolean {
  if (secret === "") return false;
  if (events !== undefined) return events.isSigned(secret, signed);
  if (hmac === "github") return verifyGitHub(secret, signed);
  return hmac === "slack" ? verifySlack(secret, signed) : verifyStandard(secret, signed);
}

function parseBody({ headers, body }: Hook): unknown {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    throw new ServiceError("invalid_request", "Cannot read the body: it is not valid UTF-8");
  }
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers["content-type"] ?? "");
  try {
    return JSON.parse(isForm ? new URLSearchParams(text).get("payload") ?? "" : text);
  } catch {
    throw new ServiceError("invalid_request", "Cannot read the body: it is not valid JSON");
  }
}

function isChallenge(body: unknown): body is { challenge: string } {
  const { type, challenge } = (body ?? {}) as { type?: unknown; challenge?: unknown };
  return type === "url_verification" && typeof challenge === "string" && challenge.length <= 1_000;
}

function readMessage(config: WebhookPlatformConfig, hook: Hook, body: unknown) {
  const sender = { id: hook.name, name: "" };
  if (config.template !== "") {
    return {
      id: findMessageId(config, hook, body),
      chat: expand(config.conversation, body),
      sender,
      text: expand(config.template, body),
    };
  }
  const result = hookMessageSchema.safeParse(body);
  if (!result.success) {
    const [issue] = result.error.issues;
    throw invalid(
      issue?.path.map(String).join(".") ?? "",
      `${
        issue?.message ?? "is invalid"
      }. Send {conversation, id, sender, text}, or configure a template for the hook.`,
    );
  }
  const plain = result.data;
  return {
    id: plain.id === undefined ? findMessageId(config, hook, body) : String(plain.id),
    chat: plain.conversation ?? expand(config.conversation, body),
    sender: plain.sender === undefined ? sender : { id: plain.sender, name: plain.sender },
    text: plain.text,
  };
}

/** Finds the id that identifies a repeated message (decision 0024). */
function findMessageId({ hmac }: WebhookPlatformConfig, { headers, holder }: Hook, body: unknown): string {
  const own = (body ?? {}) as { id?: unknown; event_id?: unknown };
  // GitHub signs only the body: a repeated body with other headers is the same message.
  const signature = headers["x-hub-signature-256"];
  if (hmac === "github" && holder === null && signature) return signature.replace("sha256=", "");
  if (hmac === "slack" && typeof own.event_id === "string") return own.event_id;
  // Slack signs the time and the body, so a request with an equal signature is a repetition.
  const slack = headers["x-slack-signature"];
  if (hmac === "slack" && holder === null && slack) return slack.replace("v0=", "");
  const given = headers["webhook-id"] ?? headers["x-github-delivery"] ?? own.id;
  if (typeof given === "string" && given !== "" || typeof given === "number") return String(given);
  throw invalid("id", "is missing. Send it in the body, or as the header webhook-id or X-GitHub-Delivery.");
}
