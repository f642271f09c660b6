import { createGapStore, listLastReceived, receiveMessage } from "../api/chat/inbound.ts";
import { moveChat } from "../api/chat/moved_chat.ts";
import type { Deps } from "../api/call/services.ts";
import type { PlatformConnection, PlatformRules, Platforms } from "../api/call/platforms.ts";
import { createId } from "../base/id.ts";
import type { Wakeups } from "../base/wakeups.ts";
import type { RecentActivity } from "../base/recent_activity.ts";
import type { DataPaths } from "../base/paths.ts";
import type { Clock } from "../base/clock.ts";
import type { Config } from "../config/schema.ts";
import { LOCAL_PLATFORM } from "../domain/call/message_id.ts";
import { createAttachments } from "../pipeline/intake/attachments.ts";
import type { Stage } from "../pipeline/stage/stage.ts";
import { createNotices } from "../pipeline/delivery/notices.ts";
import { ProgressSigns } from "../pipeline/delivery/progress.ts";
import { createHealthMonitor } from "../pipeline/maintenance/health_monitor.ts";
import { Outbox } from "../pipeline/delivery/outbox.ts";
import { createWebhookStage } from "../pipeline/delivery/webhooks.ts";
import { createLocal } from "../platform/local/local.ts";
import type { Platform } from "../platform/platform.ts";
import { MANIFESTS } from "../platform/registry.ts";
import type { Database } from "../store/db/database.ts";
import { syncWebhooks } from "../store/events/webhook.ts";

type PlatformConfig = Config["platforms"][string];

/** Creates the enabled platforms of the configuration without connecting them. Loads the code of their kinds (decision 0005). */
export async function createPlatforms(
  { platforms }: Config,
  clock: Clock,
  replaced: readonly Platform[] = [],
): Promise<Platforms> {
  const all = new Map<string, PlatformConnection>([[LOCAL_PLATFORM, createLocalPlatform(clock)]]);
  for (const [name, config] of Object.entries(platforms).sort(([a], [b]) => a < b ? -1 : 1)) {
    const given = replaced.find((platform) => platform.name === name);
    const platform = config.enabled ? given ?? await createPlatform(name, config, clock) : null;
    all.set(name, { rules: buildRules(name, config), config, platform });
  }
  return all;
}

function createLocalPlatform(clock: Clock): PlatformConnection {
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

function buildRules(name: string, config: PlatformConfig): PlatformRules {
  const { kind, enabled, allow, groups, threads } = config;
  return { name, kind, enabled, allow: allow.map(String), groups, threads };
}

async function createPlatform(name: string, config: PlatformConfig, clock: Clock): Promise<Platform> {
  const manifest = MANIFESTS.find(({ kind }) => kind === config.kind);
  if (manifest === undefined) throw new Error(`No manifest of the platform kind ${config.kind}`);
  return await manifest.create(name, config, clock);
}

/** Stores the webhooks of the configuration and removes those that it no longer defines. Runs before any event is sent. */
export async function storeWebhooks(
  { db, clock }: Deps<"db" | "clock">,
  { webhooks }: Config,
): Promise<void> {
  await db.write(syncWebhooks(webhooks.map((one) => ({ ...one, id: createId() })), clock.now()));
}

export function startPlatforms(needs: Deps<"db" | "clock" | "limits" | "platforms">): void {
  for (const { platform, rules } of needs.platforms.values()) {
    platform?.start(
      (incoming) => receiveMessage(needs, rules, incoming),
      () => listLastReceived(needs, rules.name),
      createGapStore(needs, rules.name),
      (from, to) => moveChat(needs, rules.name, from, to),
    );
  }
}

export async function stopPlatforms(platforms: Platforms): Promise<void> {
  await Promise.all([...platforms.values()].map(({ platform }) => platform?.stop()));
}

interface DeliveryDeps {
  platforms: Platforms;
  steps: RecentActivity;
  paths: DataPaths;
  config: Config;
  umask: number;
}

/** Creates the stages that send replies, progress, events and notices. */
export function createDeliveryStages(
  base: { db: Database; clock: Clock; wakeups: Wakeups },
  { platforms: all, steps, paths, config, umask }: DeliveryDeps,
): { stages: Stage[]; settled: () => Promise<void> } {
  const platforms = [...all.values()].flatMap(({ platform }) =>
    platform === null || platform.kind === "local" ? [] : [platform]
  );
  const outbox = new Outbox({ ...base, platforms });
  const showing = platforms.filter(({ progress }) => progress !== undefined);
  const signs = new ProgressSigns({ ...base, platforms: showing, steps, cooldowns: outbox.cooldowns });
  const maxUploadBytes = config.limits.max_upload_bytes;
  const webhooks = createWebhookStage(base);
  const stages = [
    outbox.stage,
    webhooks.stage,
    createNotices({ ...base, rules: config.notices, umask }),
    createHealthMonitor({ ...base, platforms, root: paths.root }),
    // A stage that no platform needs would cost a query per second.
    ...(showing.length === 0 ? [] : [signs.stage]),
    ...(platforms.some(({ fetch }) => fetch !== undefined)
      ? [createAttachments({ ...base, platforms, paths, maxUploadBytes })]
      : []),
  ];
  return {
    stages,
    settled: async () => void await Promise.all([outbox.waitForDeliveries(), webhooks.settled()]),
  };
}
