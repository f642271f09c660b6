import { asText, type Settings } from "./files.ts";
import { type Imported, toLine } from "./imported.ts";

/** The kinds of channels that the service has, with the names of their settings here and there. */
const CHANNELS: Record<string, { secrets: Record<string, string>; plain?: Record<string, string> }> = {
  telegram: { secrets: { token: "botToken" } },
  discord: { secrets: { token: "token" } },
  slack: { secrets: { bot_token: "botToken", app_token: "appToken" } },
  feishu: { secrets: { app_secret: "appSecret" }, plain: { app_id: "appId" } },
};

const ALLOW_MAX = 1_000;

/** Adds a channel as a platform, with its allow list. One of an unknown kind is left out. */
export function addChannel(
  imported: Imported,
  { name, kind, settings, allow, worker, resolve }: {
    name: string;
    kind: string;
    settings: Settings;
    allow: readonly string[];
    worker: string;
    resolve: (value: unknown) => string | null;
  },
): void {
  const known = Object.hasOwn(CHANNELS, kind) ? CHANNELS[kind] : undefined;
  if (known === undefined) return imported.leaveOut(`channel ${name}`, "the service has no such platform");
  if (settings.enabled === false) return imported.leaveOut(`channel ${name}`, "it is disabled");
  const plain = Object.entries(known.plain ?? {}).map(([mine, theirs]) => [mine, asText(settings[theirs])]);
  const secrets = Object.entries(known.secrets).flatMap(([mine, theirs]) =>
    settings[theirs] === undefined
      ? []
      : [[mine, imported.nameSecret(`${name}-${mine}`, resolve(settings[theirs]))]]
  );
  // An id may have its kind as a prefix.
  const ids = allow.map((one) => toLine(one).replace(/^(telegram|tg|discord|slack|feishu|lark|user):/i, ""));
  const platform = name.toLowerCase().replace(/[^a-z0-9-]+/g, "-").replace(/^[^a-z]+/, "") || kind;
  imported.platforms[platform] = {
    kind,
    ...Object.fromEntries([...plain, ...secrets]),
    ...(worker === "" ? {} : { worker }),
    allow: [...new Set(ids)].filter((id) => id !== "").slice(0, ALLOW_MAX),
  };
}
