import { z } from "zod";
import { formatDuration } from "../base/duration.ts";
import { QUIET_WINDOW_LOCAL_MS, QUIET_WINDOW_OTHER_MS } from "../domain/chat/quiet_window.ts";
import { locateSecret, PLATFORM_SECRETS } from "./platform.ts";
import { type Config, configSchema } from "./schema.ts";

const HIDDEN = "(set, not shown)";
const SECRETS = [["database", "auth_token"], ["auth", "password_hash"], ["auth", "jwt_secret"]] as const;

const QUIET_WINDOWS = `${formatDuration(QUIET_WINDOW_LOCAL_MS)} for local, ${
  formatDuration(QUIET_WINDOW_OTHER_MS)
} for other platforms`;

interface ShownConfig {
  [key: string]: unknown;
}

/** Formats the configuration as in a file: durations as text, secrets and environment variables hidden. */
export function formatConfig(config: Config): ShownConfig {
  const shown = structuredClone(z.encode(configSchema, config)) as unknown as Record<string, ShownConfig>;
  for (const [group, key] of SECRETS) {
    if (shown[group]?.[key]) shown[group][key] = HIDDEN;
  }
  // The default depends on the platform.
  if (shown.bee !== undefined && config.bee.quiet_window === undefined) {
    shown.bee.quiet_window = QUIET_WINDOWS;
  }
  const { oidc } = shown.auth as { oidc?: ShownConfig };
  if (oidc?.client_secret) oidc.client_secret = HIDDEN;
  for (
    const entry of [
      ...Object.values(shown.platforms ?? {}),
      ...(shown.webhooks as unknown as unknown[] ?? []),
    ]
  ) {
    hideSecrets(entry as ShownConfig);
  }
  for (const engine of Object.values(shown.engines ?? {})) {
    const env = typeof engine === "object" && engine !== null && "env" in engine ? engine.env : null;
    if (typeof env !== "object" || env === null) continue;
    Object.assign(env, Object.fromEntries(Object.keys(env).map((name) => [name, HIDDEN])));
  }
  return shown;
}

function hideSecrets(entry: ShownConfig): void {
  for (const secret of PLATFORM_SECRETS) {
    const found = locateSecret(entry, secret);
    if (found?.holder[found.key]) found.holder[found.key] = HIDDEN;
  }
}

export function buildConfigJsonSchema(): object {
  return z.toJSONSchema(configSchema, { io: "input" });
}
