import { LRUCache } from "lru-cache";
import type { Backoff } from "../../base/backoff.ts";
import { createConnectedPlatform, type SessionDeps } from "../connected_platform.ts";
import type { PlatformBase } from "../manifest.ts";
import { MessageSigns } from "../message_signs.ts";
import { listen } from "../monitored_socket.ts";
import type { Platform, Receive } from "../platform.ts";
import { isAnswered, parseOrDrop, storeOrDrop } from "../receive_guard.ts";
import { parseJsonObject } from "../request.ts";
import { buildPressChange } from "./card.ts";
import { DingTalkClient, type DingTalkSettings } from "./client.ts";
import { parseMessage, parsePress, parsePressValue, type Press, type RobotMessage } from "./message.ts";
import { deliver, showText } from "./send.ts";

const RETRY: Backoff = { firstMs: 1_000, lastMs: 60_000 };
const PING_MS = 10_000;
const MESSAGES = "/v1.0/im/bot/messages/get";
const PRESSES = "/v1.0/card/instances/callback";
const TOPICS = [
  { type: "EVENT", topic: "*" },
  { type: "CALLBACK", topic: MESSAGES },
  { type: "CALLBACK", topic: PRESSES },
];

const EMOTION_NAME = "🤔Thinking";
const EMOTION = {
  emotionType: 2,
  emotionName: EMOTION_NAME,
  textEmotion: {
    emotionId: "2659900",
    emotionName: EMOTION_NAME,
    text: EMOTION_NAME,
    backgroundId: "im_bg_1",
  },
};
// Messages whose conversation the process knows. Other messages get no emotion, such as those from before the start of the service.
const CONVERSATIONS_KEPT = 1_000;

/** `data` is JSON in a string. */
interface Frame {
  type: "SYSTEM" | "EVENT" | "CALLBACK";
  headers: { topic: string; messageId: string };
  data: string;
}

interface Settings extends DingTalkSettings {
  /** Template from the card editor. With "", questions have no buttons. */
  card_template: string;
}

/** Creates a DingTalk robot. The robot opens a stream, so it needs no public address. */
export function createDingTalk(base: PlatformBase, settings: Settings): Platform {
  const { client_id, client_secret, card_template: template } = settings;
  const client = new DingTalkClient(settings, base.clock);
  /** Conversation of each message. */
  const conversations = new LRUCache<string, string>({ max: CONVERSATIONS_KEPT });
  const signs = createSigns(client, conversations);
  return createConnectedPlatform({
    ...{ base, retry: RETRY, required: { client_id, client_secret } },
    createSession: (deps) => (resetBackoff) =>
      listenStream(client, deps, (topic, data) => {
        resetBackoff();
        return handleEvent(deps.receive, conversations, topic, data);
      }),
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

// DingTalk has no typing sign, so the message gets an emotion.
function createSigns(client: DingTalkClient, conversations: LRUCache<string, string>): MessageSigns {
  const call = async (path: string, openMsgId: string) => {
    const openConversationId = conversations.get(openMsgId);
    if (openConversationId === undefined) return "";
    const { robotCode } = client;
    await client.call(path, { robotCode, openMsgId, openConversationId, ...EMOTION });
    return EMOTION_NAME;
  };
  return new MessageSigns({
    platform: "DingTalk",
    add: (message) => call("/v1.0/robot/emotion/reply", message),
    remove: (message) => call("/v1.0/robot/emotion/recall", message),
  });
}

/** Listens on one stream until DingTalk wants the next one. Acknowledges an event after `handle`. Throws when the stream ends. */
async function listenStream(
  client: DingTalkClient,
  deps: SessionDeps,
  handle: (topic: string, data: string) => Promise<object>,
): Promise<void> {
  await listen({
    ...deps,
    platform: "DingTalk",
    url: await client.connection(TOPICS, deps.signal),
    pingMs: PING_MS,
    isReadyWhenOpen: true,
    async take(bytes, socket) {
      const { type, headers, data }: Frame = JSON.parse(new TextDecoder().decode(bytes));
      const { topic, messageId } = headers;
      const answer = (given: string) => {
        const sent = { contentType: "application/json", messageId };
        socket.send(JSON.stringify({ code: 200, headers: sent, message: "OK", data: given }));
      };
      if (type === "SYSTEM") {
        if (topic === "ping") answer(data);
        else if (topic === "disconnect") socket.next();
        return;
      }
      deps.connection.recordEvent();
      if (type === "EVENT") answer(JSON.stringify({ status: "SUCCESS" }));
      else answer(JSON.stringify({ response: await handle(topic, data) }));
    },
  });
}

/** Stores a message or press. Returns the change of the card whose button was pressed. */
async function handleEvent(
  receive: Receive,
  conversations: LRUCache<string, string>,
  topic: string,
  data: string,
): Promise<object> {
  if (topic === MESSAGES) {
    const message = parseJsonObject<RobotMessage>(data) as RobotMessage;
    const incoming = parseOrDrop("DingTalk", () => parseMessage(message));
    if (incoming === null) return {};
    conversations.set(incoming.id, message.conversationId);
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
