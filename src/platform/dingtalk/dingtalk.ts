import type { Backoff } from "../../base/backoff.ts";
import { createConnectedPlatform } from "../connected_platform.ts";
import type { PlatformBase } from "../manifest.ts";
import type { Platform, Receive } from "../platform.ts";
import { isAnswered, parseOrDrop, storeOrDrop } from "../receive_guard.ts";
import { parseJsonObject } from "../request.ts";
import { buildPressChange } from "./card.ts";
import { DingTalkClient, type DingTalkSettings } from "./client.ts";
import { parseMessage, parsePress, parsePressValue, type Press, type RobotMessage } from "./message.ts";
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
      signs.remove(delivery.answers);
      return sentAs;
    },
    async progress(progress) {
      const { text, answers, sentAs } = progress;
      if (text !== null) return await showText(client, progress, { text, template });
      await signs.add(answers);
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
    const message = parseJsonObject<RobotMessage>(data) as RobotMessage;
    const incoming = parseOrDrop("DingTalk", () => parseMessage(message));
    if (incoming === null) return {};
    signs.remember(incoming.id, message.conversationId);
    await storeOrDrop("DingTalk", receive, incoming);
  }
  if (topic !== PRESSES) return {};
  const press = parseJsonObject<Press>(data) as Press;
  const pressed = parsePressValue(press);
  if (pressed === null) return {};
  const received = await storeOrDrop("DingTalk", receive, parsePress(press, pressed));
  if (isAnswered(received?.outcome)) return buildPressChange(`> ${pressed.label}`);
  // The card may show an answer already: it stays.
  return received?.outcome === "late" ? buildPressChange("") : {};
}
