import { Buffer } from "node:buffer";
import type { Clock } from "../../base/clock.ts";
import type { Connection } from "../connection.ts";
import { listen, type Socket } from "../monitored_socket.ts";
import { parseJsonObject } from "../request.ts";
import { Frame } from "./frame.ts";
import type { FeishuEvent } from "./message.ts";
import { Pieces } from "./pieces.ts";

/** Limits the interval that Feishu asks for, so that the service notices a dead connection. */
const PING_MAX_MS = 30_000;
const PING_MIN_MS = 1_000;

interface FrameOptions {
  url: string;
  pingMs: number | null;
  clock: Clock;
  connection: Connection;
  signal: AbortSignal;
  /** Stores an event and returns the answer. The acknowledgement follows. */
  handle: (event: FeishuEvent) => Promise<object | null>;
}

/** Listens on one long connection. Throws when the connection ends. */
export async function listenFrames({ url, pingMs, handle, ...parts }: FrameOptions): Promise<void> {
  const service = Number(URL.parse(url)?.searchParams.get("service_id") ?? 0);
  const pieces = new Pieces();
  await listen({
    ...parts,
    platform: "Feishu",
    url,
    pingMs: limitInterval(pingMs ?? PING_MAX_MS),
    ping: (wire) => wire.send(Frame.ping(service).encode()),
    isReadyWhenOpen: true,
    async take(data, socket) {
      const frame = Frame.decode(new Uint8Array(data));
      if (!frame.isData) return configure(frame, socket);
      if (frame.header("type") !== "event") return;
      const place = { sum: Number(frame.header("sum")), at: Number(frame.header("seq")) };
      const whole = pieces.add(frame.header("message_id"), place, frame.payload);
      if (whole === null) return;
      parts.connection.recordEvent();
      const shown = await handle(
        parseJsonObject<FeishuEvent>(new TextDecoder().decode(whole)) as FeishuEvent,
      );
      socket.send(frame.answer(buildAcknowledgement(shown)).encode());
    },
  });
}

function limitInterval(ms: number): number {
  return Math.min(Math.max(ms, PING_MIN_MS), PING_MAX_MS);
}

// A pong can contain another interval.
function configure(frame: Frame, socket: Socket): void {
  if (frame.header("type") !== "pong" || frame.payload.length === 0) return;
  const { PingInterval: seconds } = JSON.parse(new TextDecoder().decode(frame.payload));
  if (typeof seconds === "number") socket.pingEvery(limitInterval(seconds * 1000));
}

function buildAcknowledgement(shown: object | null): Uint8Array {
  const data = shown === null ? {} : { data: Buffer.from(JSON.stringify(shown)).toString("base64") };
  return new TextEncoder().encode(JSON.stringify({ code: 200, ...data }));
}
