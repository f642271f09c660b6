import type { Clock } from "../../base/clock.ts";
import { LOCAL_PLATFORM } from "../../domain/call/message_id.ts";
import { Connection } from "../connection.ts";
import type { Platform } from "../platform.ts";

/** Creates the built-in chat. Its messages come over the API, and a stored reply counts as delivered. */
export function createLocal(clock: Clock): Platform {
  const connection = new Connection(LOCAL_PLATFORM, clock, "connected");
  return {
    name: LOCAL_PLATFORM,
    kind: "local",
    takesFiles: true,
    start: () => {},
    stop: () => Promise.resolve(),
    cut: (text, media) => [{ text, media }],
    deliver: () => Promise.resolve(""),
    test: () => Promise.resolve("it is part of this service"),
    health: () => connection.health,
  };
}
