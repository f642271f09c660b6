import type { Backoff } from "../../base/backoff.ts";
import type { Clock } from "../../base/clock.ts";
import { Connection } from "../connection.ts";
import { partsOf } from "../message_parts.ts";
import { keepConnected, type Trouble } from "../keep_connected.ts";
import type { Platform, Receive } from "../platform.ts";
import { readOrLeave, storeOrLeave } from "../receive_guard.ts";
import { objectOf } from "../request.ts";
import { afterPress } from "./card.ts";
import { deliveryError, DingTalkClient, DingTalkError, type DingTalkSettings } from "./client.ts";
import { messageOf, type Press, pressedOf, pressOf, type RobotMessage } from "./message.ts";
import { deliver, showText } from "./send.ts";
import { Signs } from "./sign.ts";
import { listenStream } from "./socket.ts";

const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
// A key that does not count: somebody has to do something first.
const REFUSED_PAUSE_MS = 300_000;
// A message has 3,800 characters; the ends of lines grow.
const LIMITS = { characters: 3_000, fileBytes: 20_000_000 };
const MESSAGES = "/v1.0/im/bot/messages/get";
const PRESSES = "/v1.0/card/instances/callback";
const TOPICS = [
  { type: "EVENT", topic: "*" },
  { type: "CALLBACK", topic: MESSAGES },
  { type: "CALLBACK", topic: PRESSES },
];

interface Settings extends DingTalkSettings {
  /** A template made in the card editor; without it there are no buttons. */
  card_template: string;
}

/** A robot of DingTalk: a stream that it opens itself, so no public address is needed (contract 10, decision 0023). */
export function createDingTalk(name: string, settings: Settings, clock: Clock): Platform {
  const client = new DingTalkClient(settings, clock);
  const template = settings.card_template;
  const signs = new Signs(client);
  const connection = new Connection(name, clock);
  const stopped = new AbortController();
  const signal = stopped.signal;
  let running = Promise.resolve();
  return {
    name,
    kind: "dingtalk",
    takesFiles: true,
    start(receive) {
      if (settings.client_id === "" || settings.client_secret === "") {
        return connection.become("refused", "it needs client_id and client_secret");
      }
      const session = async (wellAgain: () => void) => {
        const url = await client.connection(TOPICS, signal);
        const handle = (topic: string, data: string) => {
          wellAgain();
          return take({ receive, signs }, topic, data);
        };
        await listenStream({ url, clock, connection, signal, handle });
      };
      running = keepConnected({ connection, clock, signal, retry: RETRY, session, troubleOf });
    },
    async stop() {
      stopped.abort();
      await running;
    },
    cut: (content, media) => partsOf(content, media, LIMITS),
    async deliver(delivery) {
      const sentAs = await deliver(client, delivery, template);
      signs.take(delivery.answers);
      return sentAs;
    },
    async progress(progress) {
      const { text, answers, sentAs } = progress;
      if (text !== null) return await showText(client, progress, { text, template });
      await signs.give(answers);
      return sentAs;
    },
    async fetch(ref, signal) {
      return await client.download(ref, signal).catch((error) => {
        throw deliveryError(error);
      });
    },
    async test() {
      await client.check();
      await client.connection(TOPICS);
      return `the robot is ${client.robotCode}`;
    },
    health: () => connection.health,
  };
}

function troubleOf(error: unknown): Trouble {
  if (!(error instanceof DingTalkError)) return { state: "down", pauseMs: null };
  if (error.isRefused) return { state: "refused", pauseMs: REFUSED_PAUSE_MS };
  return { state: error.isLimited ? "limited" : "down", pauseMs: null };
}

interface Taking {
  receive: Receive;
  signs: Signs;
}

/** Stores what came; answers how a card changes, where it came from one. */
async function take({ receive, signs }: Taking, topic: string, data: string): Promise<object> {
  if (topic === MESSAGES) {
    const message = objectOf<RobotMessage>(data) as RobotMessage;
    const incoming = readOrLeave("DingTalk", () => messageOf(message));
    if (incoming === null) return {};
    signs.heard(incoming.id, message.conversationId);
    await storeOrLeave("DingTalk", receive, incoming);
  }
  if (topic !== PRESSES) return {};
  const press = objectOf<Press>(data) as Press;
  const pressed = pressedOf(press);
  if (pressed === null) return {};
  const received = await storeOrLeave("DingTalk", receive, pressOf(press, pressed));
  const isAnswered = received?.outcome === "queued" || received?.outcome === "repeated";
  if (isAnswered) return afterPress(`> ${pressed.label}`);
  // An answer that is shown already stays.
  return received?.outcome === "late" ? afterPress("") : {};
}
