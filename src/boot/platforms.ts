import { receiveMessage } from "../api/inbound.ts";
import type { Needs } from "../api/parts.ts";
import type { Connected, PlatformRules, Platforms } from "../api/platforms.ts";
import type { Clock } from "../base/clock.ts";
import type { Config } from "../config/schema.ts";
import { LOCAL_PLATFORM } from "../domain/message.ts";
import { createLocal } from "../platform/local/local.ts";
import type { Platform } from "../platform/platform.ts";
import { createWebhook } from "../platform/webhook/webhook.ts";

type PlatformConfig = Config["platforms"][string];

/** Makes every platform of the configuration, without connecting; one that is switched off is only named (contract 10). */
export function createPlatforms(
  { platforms }: Config,
  clock: Clock,
  replaced: readonly Platform[] = [],
): Platforms {
  const all = new Map<string, Connected>([[LOCAL_PLATFORM, localOf(clock)]]);
  for (const [name, config] of Object.entries(platforms).sort(([a], [b]) => a < b ? -1 : 1)) {
    const given = replaced.find((platform) => platform.name === name);
    const platform = config.enabled ? given ?? create(name, config, clock) : null;
    all.set(name, { rules: rulesOf(name, config), config, platform });
  }
  return all;
}

function localOf(clock: Clock): Connected {
  const rules: PlatformRules = {
    name: LOCAL_PLATFORM,
    kind: "local",
    enabled: true,
    allow: [],
    groups: "off",
    threads: "session",
  };
  return { rules, config: null, platform: createLocal(clock) };
}

function rulesOf(name: string, config: PlatformConfig): PlatformRules {
  const { kind, enabled, allow, groups, threads } = config;
  return { name, kind, enabled, allow: allow.map(String), groups, threads };
}

function create(name: string, config: PlatformConfig, clock: Clock): Platform {
  switch (config.kind) {
    case "webhook":
      return createWebhook(name, config, clock);
  }
}

/** Connects every platform; what comes in goes to the one operation for all. */
export function startPlatforms(needs: Needs<"db" | "clock" | "limits" | "platforms">): void {
  for (const { platform, rules } of needs.platforms.values()) {
    platform?.start((incoming) => receiveMessage(needs, rules, incoming));
  }
}

/** Ends every connection. */
export async function stopPlatforms(platforms: Platforms): Promise<void> {
  await Promise.all([...platforms.values()].map(({ platform }) => platform?.stop()));
}

/** Those that replies are sent to: all that are switched on, but for `local`. */
export function sendingPlatforms(platforms: Platforms): Platform[] {
  return [...platforms.values()].flatMap(({ platform }) =>
    platform === null || platform.kind === "local" ? [] : [platform]
  );
}
