import type { Backoff } from "../base/backoff.ts";
import type { Clock } from "../base/clock.ts";
import { Connection } from "./connection.ts";
import { keepConnected, type Session, type Trouble } from "./keep_connected.ts";
import type { PlatformBase } from "./manifest.ts";
import { cutReply } from "./message_parts.ts";
import {
  type Delivery,
  type Gap,
  type LastMessage,
  type MoveChat,
  type Platform,
  PlatformError,
  type Progress,
  type Receive,
  toDeliveryError,
} from "./platform.ts";

const RETRY: Backoff = { firstMs: 500, lastMs: 60_000 };
// Long, since a person has to replace the key or grant a right first.
const REFUSED_PAUSE_MS = 300_000;

/** Says that a platform refuses the connection until a person acts. */
export class ConnectionRefused extends Error {}

export interface SessionDeps {
  connection: Connection;
  clock: Clock;
  signal: AbortSignal;
  receive: Receive;
  lastHeard: () => Promise<LastMessage[]>;
  gap: Gap | undefined;
  move: MoveChat;
}

interface Options {
  base: PlatformBase;
  retry?: Backoff;
  refusedPauseMs?: number;
  /** Settings without which the platform can't connect, by name. */
  required: Record<string, string>;
  /** Creates what all sessions of one start share. */
  createSession: (deps: SessionDeps) => Session;
  deliver: (delivery: Delivery) => Promise<string>;
  progress?: (progress: Progress) => Promise<string>;
  fetch: NonNullable<Platform["fetch"]>;
  test: (connection: Connection) => Promise<string>;
}

/** Creates a platform with a permanent connection. Turns each error of a delivery into a DeliveryError. */
export function createConnectedPlatform(options: Options): Platform {
  const { retry = RETRY, refusedPauseMs = REFUSED_PAUSE_MS, required, progress: showProgress } = options;
  const { name, kind, limits, clock } = options.base;
  const connection = new Connection(name, clock);
  const stopped = new AbortController();
  const { signal } = stopped;
  let running = Promise.resolve();
  return {
    name,
    kind,
    takesFiles: limits.fileBytes > 0,
    start(receive, lastHeard, gap, move = () => Promise.resolve()) {
      if (Object.values(required).includes("")) {
        return connection.setState(
          "refused",
          `set ${Object.keys(required).join(" and ")} in the configuration`,
        );
      }
      const session = options.createSession({ connection, clock, signal, receive, lastHeard, gap, move });
      const classifyTrouble = (error: unknown) => classify(error, refusedPauseMs);
      running = keepConnected({ connection, clock, signal, retry, session, classifyTrouble });
    },
    async stop() {
      stopped.abort();
      await running;
    },
    cut: (content, media) => cutReply(content, media, limits),
    deliver: (delivery) => options.deliver(delivery).catch(rethrow),
    ...(showProgress === undefined
      ? {}
      : { progress: (progress: Progress) => showProgress(progress).catch(rethrow) }),
    fetch: (ref, signal) => options.fetch(ref, signal).catch(rethrow),
    test: () => options.test(connection),
    health: () => connection.health,
  };
}

function rethrow(error: unknown): never {
  throw toDeliveryError(error);
}

function classify(error: unknown, refusedPauseMs: number): Trouble {
  const isRefused = error instanceof ConnectionRefused ||
    error instanceof PlatformError && error.isKeyRefused;
  if (isRefused) return { state: "refused", pauseMs: refusedPauseMs };
  if (!(error instanceof PlatformError)) return { state: "down", pauseMs: null };
  return { state: error.why === "limited" ? "limited" : "down", pauseMs: error.pauseMs };
}
