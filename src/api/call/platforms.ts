import type { Config } from "../../config/schema.ts";
import { LOCAL_PLATFORM } from "../../domain/call/message_id.ts";
import type { Platform, ReceiveResult } from "../../platform/platform.ts";

/** Settings for messages from one platform (contract 10). */
export interface PlatformRules {
  readonly name: string;
  readonly kind: string;
  readonly enabled: boolean;
  /** Sender or chat ids; `*` allows all. */
  readonly allow: readonly string[];
  readonly groups: "mention" | "all" | "off";
  readonly threads: "session" | "chat";
}

/** A configured platform. `platform` is null while it is disabled. */
export interface PlatformConnection {
  rules: PlatformRules;
  config: Config["platforms"][string] | null;
  platform: Platform | null;
  /** Why an enabled platform could not be created. */
  problem?: string;
}

export type Platforms = ReadonlyMap<string, PlatformConnection>;

export const IGNORED: ReceiveResult = { outcome: "ignored", message_id: "" };

/** The sender of a local message is already the name of its caller. */
export function formatSenderActor(platform: string, sender: string): string {
  return platform === LOCAL_PLATFORM ? sender : `platform:${platform}:${sender}`;
}
