import { NotReachedError } from "../../base/address.ts";
import { NoAnswerError, type OutsideAnswer } from "../guarded_fetch.ts";
import { Connection } from "../connection.ts";
import type { Forge } from "../../domain/call/vocabulary.ts";
import { createForge, PASSIVE } from "./forge.ts";
import type { PlatformBase } from "../manifest.ts";
import { type Delivery, DeliveryError, type Platform } from "../platform.ts";
import { parseRetryAfter } from "../retry_after.ts";
import { postSigned } from "../webhook_event.ts";

interface Settings {
  reply_url: string;
  secret: string;
  allow_private: boolean;
  preset: "" | Forge;
}

/** Creates a platform for programs that send webhooks. Signed replies go to `reply_url`. */
export function createWebhook(base: PlatformBase<null>, settings: Settings): Platform {
  if (settings.preset !== "") return createForge(base, settings.preset, base.gateway);
  const { name, kind, clock } = base;
  const connection = new Connection(name, clock, "connected");
  return {
    name,
    kind,
    ...PASSIVE,
    deliver: (delivery) => deliver(base, settings, connection, delivery),
    test: () => testReplyUrl(settings),
    health: () => connection.health,
  };
}

async function deliver(
  { name, clock }: PlatformBase<null>,
  settings: Settings,
  connection: Connection,
  { key, chat, answers, part }: Delivery,
): Promise<string> {
  // Without an address, programs read the replies over the API.
  if (settings.reply_url === "") return "";
  const now = clock.now();
  const body = JSON.stringify({
    type: "message.reply",
    timestamp: new Date(now).toISOString(),
    data: {
      platform: name,
      conversation: chat,
      answers,
      text: part.text,
      file: part.media === null
        ? null
        : { name: part.media.original_name, size: part.media.size, mime: part.media.mime },
    },
  });
  try {
    checkAnswer(await postSigned({ ...settings, url: settings.reply_url }, key, now, body), now);
    connection.setState("connected");
    return key;
  } catch (error) {
    const fault = classifyError(error);
    if (fault.why === "unreachable") connection.setState("down", fault.message);
    throw fault;
  }
}

function checkAnswer({ status, headers }: OutsideAnswer, now: number): void {
  if (status >= 200 && status < 300) return;
  const words = `reply_url answered ${status}`;
  const retryAfterMs = parseRetryAfter(headers["retry-after"], now);
  if (status === 429) throw new DeliveryError("limited", words, { retryAfterMs });
  if (status === 401 || status === 403 || status === 408 || status >= 500) {
    throw new DeliveryError("unreachable", words, { retryAfterMs });
  }
  throw new DeliveryError("refused", words);
}

function classifyError(error: unknown): DeliveryError {
  if (error instanceof DeliveryError) return error;
  const words = error instanceof Error ? error.message : String(error);
  if (error instanceof NoAnswerError) return new DeliveryError("unanswered", words);
  if (error instanceof NotReachedError) return new DeliveryError("unreachable", words);
  return new DeliveryError("refused", words);
}

function testReplyUrl({ reply_url }: Settings): Promise<string> {
  return Promise.resolve(
    reply_url === "" ? "it takes messages; programs read replies over the API" : `replies go to ${reply_url}`,
  );
}
