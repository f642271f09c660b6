import type { Backoff } from "../../base/backoff.ts";
import { createConnectedPlatform } from "../connected_platform.ts";
import type { PlatformBase } from "../manifest.ts";
import type { Platform, Receive } from "../platform.ts";
import { isAnswered, readOrLeave, storeOrLeave } from "../receive_guard.ts";
import { objectOf } from "../request.ts";
import { afterPress } from "./card.ts";
import { DingTalkClient, type DingTalkSettings } from "./client.ts";
import { messageOf, type Press, pressedOf, pressOf, type RobotMessage } from "./message.ts";
import { deliver, showText } from "./send.ts";
import { Signs } from "./sign.ts";
import { listenStream } from "./socket.ts";

const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
const MESSAGES = "/v1.0/im/bot/messages/get";
const PRESSES = "/v1.0/card/instances/callback";
const TOPICS = [
  { type: "EVENT", topic: "*" },
  { type: "CALLBACK", topic: MESSAGES },
  { type: "CALLBACK", topic: PRESSES },
];

interface Settings extends DingTalkSettings {
  /** Template from the card editor. "": questions have no buttons. */
  card_template: string;
}

/** Creates a DingTalk robot. The robot opens a stream, so it needs no public address. */
export function createDingTalk(base: PlatformBase, settings: Settings): Platform {
  const { client_id, client_secret, card_template: template } = settings;
  const client = new DingTalkClient(settings, base.clock);
  const signs = new Signs(client);
  return createConnectedPlatform({
    ...{ base, retry: RETRY, required: { client_id, client_secret } },
    createSession: ({ receive, connection, clock, signal }) => async (resetBackoff) => {
      const url = await client.connection(TOPICS, signal);
      const handle = (topic: string, data: string) => {
        resetBackoff();
        return handleEvent(receive, signs, topic, data);
      };
      await listenStream({ url, clock, connection, signal, handle });
    },
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
    fetch: (ref, signal) => client.download(ref, signal),
    async test() {
      await client.check();
      await client.connection(TOPICS);
      return `the robot is ${client.robotCode}`;
    },
  });
}

/** Stores a message or press. Returns the change of the card whose button was pressed. */
async function handleEvent(receive: Receive, signs: Signs, topic: string, data: string): Promise<object> {
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
  if (isAnswered(received?.outcome)) return afterPress(`> ${pressed.label}`);
  // The card may show an answer already: it stays.
  return received?.outcome === "late" ? afterPress("") : {};
}
