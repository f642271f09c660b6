import type { Config } from "../../config/schema.ts";
import type { Platform, Received } from "../../platform/platform.ts";

/** What counts for everything that comes in from one platform (contract 10). */
export interface PlatformRules {
  readonly name: string;
  readonly kind: string;
  readonly enabled: boolean;
  /** Sender or chat ids; `*` for everybody. */
  readonly allow: readonly string[];
  readonly groups: "mention" | "all" | "off";
  readonly threads: "session" | "chat";
}

/** A platform of the configuration; `platform` is null while it is switched off. */
export interface Connected {
  rules: PlatformRules;
  config: Config["platforms"][string] | null;
  platform: Platform | null;
}

/** The platforms by name, `local` among them. */
export type Platforms = ReadonlyMap<string, Connected>;

/** Nothing was done, and nobody is told. */
export const IGNORED: Received = { outcome: "ignored", message_id: "" };

/** A sender of a platform as the journal names actors. */
export function senderActor(platform: string, sender: string): string {
  return `platform:${platform}:${sender}`;
}
