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
import { locateSecret, PLATFORM_SECRETS } from "../config/platform.ts";
import { createLogger } from "../base/log.ts";
import { buildGateway, SECRET_MARK } from "../domain/workers/gateway.ts";
import type { GatewayAccess } from "../platform/manifest.ts";
import { readSecretReference } from "../domain/account/secret.ts";
import type { SecretStore } from "../store/account/secret_store.ts";
import { LOCAL_PLATFORM } from "../domain/call/message_id.ts";
import { createAttachments } from "../pipeline/intake/attachments.ts";
import type { Stage } from "../pipeline/stage/stage.ts";
import { createDeviceEvents } from "../pipeline/delivery/device_events.ts";
import { createDevicePushes } from "../pipeline/delivery/device_pushes.ts";
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

const log = createLogger("platform");

type PlatformConfig = Config["platforms"][string];

/** Creates the enabled platforms of the configuration without connecting them. Loads the code of their kinds (decision 0005). */
export async function createPlatforms(
  { platforms, gateways }: Config,
  clock: Clock,
  replaced: readonly Platform[] = [],
  secrets: SecretStore | null = null,
): Promise<Platforms> {
  const all = new Map<string, PlatformConnection>([[LOCAL_PLATFORM, createLocalPlatform(clock)]]);
  for (const [name, config] of Object.entries(platforms).sort(([a], [b]) => a < b ? -1 : 1)) {
    const given = replaced.find((platform) => platform.name === name);
    const rules = buildRules(name, config);
    try {
      const resolved = config.enabled ? await resolveSecrets(config, secrets) : config;
      const gateway = findGateway(config, gateways, secrets);
      const platform = config.enabled ? given ?? await createPlatform(name, resolved, clock, gateway) : null;
      all.set(name, { rules, config, platform });
    } catch (error) {
      if (!(error instanceof UnresolvedError)) throw error;
      // The service starts without this platform. Its state and doctor show the reason.
      log.error("Cannot connect the platform {name}: {reason}", { name, reason: error.message });
      all.set(name, { rules, config, platform: null, problem: error.message });
    }
  }
  return all;
}

class UnresolvedError extends Error {}

// The values stay out of the configuration that the service keeps.
async function resolveSecrets(config: PlatformConfig, secrets: SecretStore | null): Promise<PlatformConfig> {
  const resolved = structuredClone(config);
  for (const secret of PLATFORM_SECRETS) {
    const { holder, key } = locateSecret(resolved, secret) ?? { holder: {}, key: "" };
    const text = holder[key];
    if (typeof text !== "string" || readSecretReference(text) === null) continue;
    if (secrets === null) throw new UnresolvedError(`${secret} names a secret`);
    holder[key] = await secrets.resolve(text).catch((error) => {
      throw new UnresolvedError(`${secret}: ${error instanceof Error ? error.message : error}`);
    });
  }
  return resolved;
}

function findGateway(
  config: PlatformConfig,
  gateways: Config["gateways"],
  secrets: SecretStore | null,
): GatewayAccess | null {
  const name = config.kind === "webhook" ? config.gateway : "";
  const settings = Object.hasOwn(gateways, name) ? gateways[name] : undefined;
  if (settings === undefined || secrets === null) return null;
  const { upstream, secret, header } = buildGateway(name, settings);
  return {
    upstream,
    async readHeader() {
      const found = await secrets.read(secret);
      if (found.state !== "value") throw new Error(`the secret of gateway ${name} is ${found.state}`);
      return { name: header.name, value: header.value.replace(SECRET_MARK, () => found.value) };
    },
  };
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

async function createPlatform(
  name: string,
  config: PlatformConfig,
  clock: Clock,
  gateway: GatewayAccess | null,
): Promise<Platform> {
  const manifest = MANIFESTS.find(({ kind }) => kind === config.kind);
  if (manifest === undefined) throw new Error(`No manifest of the platform kind ${config.kind}`);
  return await manifest.create(name, config, clock, gateway);
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
  secrets: SecretStore;
  steps: RecentActivity;
  paths: DataPaths;
  config: Config;
  umask: number;
  key: () => Uint8Array;
  publicUrl: () => string;
}

/** Creates the stages that send replies, progress, events and notices. */
export function createDeliveryStages(
  base: { db: Database; clock: Clock; wakeups: Wakeups },
  { platforms: all, secrets, steps, paths, config, umask, key, publicUrl }: DeliveryDeps,
): { stages: Stage[]; settled: () => Promise<void> } {
  const platforms = [...all.values()].flatMap(({ platform }) =>
    platform === null || platform.kind === "local" ? [] : [platform]
  );
  const outbox = new Outbox({ ...base, platforms });
  const showing = platforms.filter(({ progress }) => progress !== undefined);
  const signs = new ProgressSigns({ ...base, platforms: showing, steps, cooldowns: outbox.cooldowns });
  const maxUploadBytes = config.limits.max_upload_bytes;
  const webhooks = createWebhookStage(base, secrets);
  const { allow_private: allowPrivate } = config.push;
  const devices = createDevicePushes({ ...base, secrets, allowPrivate, key, publicUrl });
  const stages = [
    outbox.stage,
    webhooks.stage,
    createDeviceEvents({ ...base, secrets }),
    devices.stage,
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
    settled: async () =>
      void await Promise.all([outbox.waitForDeliveries(), webhooks.settled(), devices.settled()]),
  };
}
