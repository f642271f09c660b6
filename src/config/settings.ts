import { isMap, isPair, isScalar, type Node } from "yaml";
import { redact } from "../base/log.ts";
import type { Setting } from "../domain/system/settings.ts";
import type { ConfigSource } from "./file.ts";
import { PLATFORM_SECRETS } from "./platform.ts";
import type { LoadedConfig } from "./schema.ts";
import { formatConfig } from "./show.ts";

type Origin = Pick<Setting, "source" | "at">;

const DEFAULT: Origin = { source: "default", at: "" };

/** Lists every key of the effective configuration with its value and where that value comes from. Secrets are hidden. */
export function listSettings(
  { config, source, fromEnvironment }: Pick<LoadedConfig, "config" | "source" | "fromEnvironment">,
): Setting[] {
  const origins = new Map<string, Origin>();
  if (source.document !== null) collectOrigins(source.document.contents, [], { source, origins });
  for (const [key, name] of fromEnvironment) origins.set(key, { source: "environment", at: name });
  return flatten(formatConfig(config), []).map(([path, value]) => ({
    key: path.join("."),
    value: hideSecrets(typeof value === "string" ? value : JSON.stringify(value)),
    ...findOrigin(origins, path),
  }));
}

// A URL or an argument may carry a secret, such as `?authToken=...` of a database.
const SECRET_PARAMETER = /((?:[?&]|--)[\w-]*(?:token|key|secret|password)=)[^&\s"]+/gi;

function hideSecrets(text: string): string {
  return redact(text).replace(SECRET_PARAMETER, "$1[redacted]");
}

/** Finds the origin of a key, or of the nearest key above it that has one as a whole, such as a list. */
function findOrigin(origins: ReadonlyMap<string, Origin>, path: string[]): Origin {
  for (let length = path.length; length > 0; length--) {
    const origin = origins.get(path.slice(0, length).join("."));
    if (origin !== undefined) return origin;
  }
  return DEFAULT;
}

interface Collection {
  source: ConfigSource;
  origins: Map<string, Origin>;
}

function collectOrigins(node: Node | null, path: string[], collection: Collection): void {
  if (!isMap(node)) return;
  for (const pair of node.items) {
    if (!isPair(pair) || !isScalar(pair.key)) continue;
    const { source, origins } = collection;
    const name = String(pair.key.value);
    const inner = [...path, name];
    const value = pair.value as Node | null;
    if (isMap(value) && value.items.length > 0) {
      collectOrigins(value, inner, collection);
      continue;
    }
    const { line } = source.position((pair.key as Node).range?.[0] ?? 0);
    // `token_file` sets the key `token`, and `password_file` in `imap` sets `imap.password`.
    const secret = PLATFORM_SECRETS.map((one) => one.replace(/^.*\./, "")).find((one) =>
      name === `${one}_file`
    );
    const key = secret === undefined ? inner : [...path, secret];
    origins.set(key.join("."), { source: "file", at: `${source.path}:${line}` });
  }
}

function flatten(value: unknown, path: string[]): [path: string[], value: unknown][] {
  const isGroup = typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isGroup || path.length > 0 && Object.keys(value).length === 0) return [[path, value]];
  return Object.entries(value).flatMap(([key, inner]) => flatten(inner, [...path, key]));
}
