import type { Clock } from "../../base/clock.ts";
import type { Connection } from "../connection.ts";
import { listen } from "../monitored_socket.ts";

const PING_MS = 10_000;

/** `data` is JSON in a string. */
interface Frame {
  type: "SYSTEM" | "EVENT" | "CALLBACK";
  headers: { topic: string; messageId: string };
  data: string;
}

interface StreamOptions {
  url: string;
  clock: Clock;
  connection: Connection;
  signal: AbortSignal;
  /** Stores an event and returns the answer. The acknowledgement follows. */
  handle: (topic: string, data: string) => Promise<object>;
}

/** Listens on one stream until DingTalk wants the next one. Throws when the stream ends. */
export async function listenStream({ handle, ...parts }: StreamOptions): Promise<void> {
  await listen({
    ...parts,
    platform: "DingTalk",
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
      parts.connection.recordEvent();
      if (type === "EVENT") answer(JSON.stringify({ status: "SUCCESS" }));
      else answer(JSON.stringify({ response: await handle(topic, data) }));
    },
  });
}
