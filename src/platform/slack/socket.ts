import type { Clock } from "../../base/clock.ts";
import { createLogger } from "../../base/log.ts";
import type { Connection } from "../connection.ts";
import { listen } from "../monitored_socket.ts";
import { SlackError } from "./client.ts";
import type { Envelope } from "./message.ts";

const log = createLogger("slack");
const PING_MS = 10_000;

interface EnvelopeOptions {
  url: string;
  clock: Clock;
  connection: Connection;
  /** Stores a message. The acknowledgement follows. */
  handle: (envelope: Envelope) => Promise<void>;
  /** Reads the messages of the gap. */
  readHistory: () => Promise<void>;
  signal: AbortSignal;
}

/** Listens on one socket until Slack wants the next one. Throws when the socket ends. */
export async function listenEnvelopes({ handle, readHistory, ...parts }: EnvelopeOptions): Promise<void> {
  await listen({
    ...parts,
    platform: "Slack",
    pingMs: PING_MS,
    async take(data, socket) {
      const frame = JSON.parse(new TextDecoder().decode(data));
      if (frame.type === "hello") {
        socket.ready();
        void readHistory().catch((error) =>
          log.warning("Cannot read the history of Slack: {error}", { error })
        );
      } else if (frame.type === "disconnect") {
        if (frame.reason === "link_disabled") throw new SlackError("link_disabled");
        socket.next();
      } else if (typeof frame.envelope_id === "string") {
        parts.connection.recordEvent();
        await handle(frame);
        // Without this, Slack sends the message again, which changes nothing.
        socket.send(JSON.stringify({ envelope_id: frame.envelope_id }));
      }
    },
  });
}
