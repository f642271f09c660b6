// Gateways: which requests of a run pass, and where they go (contract-3 22)
import type { GatewayKind } from "../call/vocabulary.ts";

/** A gateway as in `config.yaml`. Empty values mean the defaults of its kind. */
export interface GatewayConfig {
  kind: GatewayKind;
  /** The name of the secret that the gateway adds. */
  secret: string;
  upstream: string;
  /** `<name>: <value>` with `{secret}` in the value. */
  header: string;
  allow: string[];
}

/** A gateway with the defaults of its kind. */
export interface Gateway {
  name: string;
  kind: GatewayKind;
  secret: string;
  /** Host and base path. */
  upstream: URL;
  header: { name: string; value: string };
  allow: readonly AllowRule[];
}

/** A method and the segments of a path. `*` matches one segment, and `**` at the end matches all further segments. */
interface AllowRule {
  method: string;
  segments: readonly string[];
}

/** The settings that a gateway of this kind has without configuration. */
const DEFAULTS: Record<GatewayKind, { upstream: string; header: string; allow: readonly string[] }> = {
  anthropic: {
    upstream: "https://api.anthropic.com",
    header: "x-api-key: {secret}",
    allow: [
      "POST /v1/messages",
      "POST /v1/messages/count_tokens",
      "GET /v1/models",
      "GET /v1/models/*",
    ],
  },
  openai: {
    upstream: "https://api.openai.com",
    header: "authorization: Bearer {secret}",
    allow: ["POST /v1/responses", "POST /v1/chat/completions", "GET /v1/models", "GET /v1/models/*"],
  },
  http: { upstream: "", header: "", allow: [] },
};

/** The part of a header's value that the secret replaces. */
export const SECRET_MARK = "{secret}";

/** Names of gateways and secrets. */
export const GATEWAY_NAME = /^[a-z][a-z0-9_-]{0,62}$/;

const RULE = /^([A-Z]+) (\/\S*)$/;
const HEADER = /^([A-Za-z0-9-]+): *(\S[\x20-\x7e]*)$/;
// The gateway and HTTP set these headers.
const FIXED_HEADERS = /^(host|connection|content-length|transfer-encoding|expect|upgrade|te|trailer)$/i;

/** Finds the first problem of a gateway's settings, as its key and text, or null. */
export function findGatewayProblem(config: GatewayConfig): { key: string; text: string } | null {
  const { kind, upstream, header, allow } = addDefaults(config);
  if (upstream === "") return { key: "upstream", text: `is required for kind ${kind}` };
  const url = URL.parse(upstream);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    return { key: "upstream", text: "must be a URL that starts with https:// or http://" };
  }
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    return { key: "upstream", text: "must be a host and a path only, without a user, a query or a fragment" };
  }
  const [, name = "", value = ""] = HEADER.exec(header) ?? [];
  if (name === "" || value.split(SECRET_MARK).length !== 2) {
    return {
      key: "header",
      text: header === ""
        ? `is required for kind ${kind}, such as "authorization: Bearer {secret}"`
        : 'must be a name and a value with one {secret}, such as "authorization: Bearer {secret}"',
    };
  }
  if (FIXED_HEADERS.test(name)) return { key: "header", text: `cannot be ${name}: HTTP sets it` };
  if (allow.length === 0) {
    return { key: "allow", text: `is required for kind ${kind}, such as "GET /**"` };
  }
  const wrong = allow.find((rule) => parseRule(rule) === null);
  return wrong === undefined ? null : {
    key: "allow",
    text: `${
      JSON.stringify(wrong)
    } must be a method and a path, such as "GET /repos/*/issues". * is one segment, and ** the rest`,
  };
}

/** Builds a gateway from settings without a problem. */
export function buildGateway(name: string, config: GatewayConfig): Gateway {
  const { kind, secret, upstream, header, allow } = addDefaults(config);
  const [, headerName = "", value = ""] = HEADER.exec(header) ?? [];
  return {
    name,
    kind,
    secret,
    upstream: new URL(upstream),
    header: { name: headerName.toLowerCase(), value },
    allow: allow.flatMap((rule) => parseRule(rule) ?? []),
  };
}

// `allow` adds to the requests of a kind.
function addDefaults({ kind, secret, upstream, header, allow }: GatewayConfig): GatewayConfig {
  const own = DEFAULTS[kind];
  return {
    kind,
    secret,
    upstream: upstream || own.upstream,
    header: header || own.header,
    allow: [...own.allow, ...allow],
  };
}

function parseRule(text: string): AllowRule | null {
  const [, method, path = ""] = RULE.exec(text) ?? [];
  if (method === undefined) return null;
  const segments = path === "/" ? [] : path.slice(1).split("/");
  const isSound = segments.every((segment, at) =>
    segment !== "" && segment !== "." && segment !== ".." && !/[%?#\\]/.test(segment) &&
    (segment === "*" || !segment.includes("*") || segment === "**" && at === segments.length - 1)
  );
  return isSound ? { method, segments } : null;
}

/** The target of a request to `/gateway/<name>/...`. */
export interface GatewayTarget {
  name: string;
  /** The segments after the name, decoded once; null if the path is one that two servers could read differently. */
  segments: readonly string[] | null;
  /** Path and query after the name, as the client wrote them. */
  rest: string;
}

/** Parses the raw target of a request. Returns null if it is not one of a gateway. */
export function parseGatewayTarget(raw: string): GatewayTarget | null {
  const path = raw.replace(/^https?:\/\/[^/?#]*/i, "");
  const [, name = "", rest = ""] = /^\/gateway(?:\/([^/?#]*)(.*))?$/s.exec(path) ?? [];
  if (!/^\/gateway(\/|$)/.test(path)) return null;
  const at = rest.indexOf("?");
  return { name, segments: parseSegments(at === -1 ? rest : rest.slice(0, at)), rest };
}

// Dots, also before the parameters that some servers cut off (`..;a`), and what a server that decodes twice would read as a dot or a slash.
const AMBIGUOUS = /^\.\.?(;|$)|[/\\\0]|%(2e|2f|5c|00)/i;

/** Decodes a path once, segment by segment. Returns null for a segment that a server could resolve to another path. */
function parseSegments(path: string): string[] | null {
  if (path === "" || path === "/") return [];
  const segments: string[] = [];
  for (const raw of path.slice(1).split("/")) {
    if (!/^[\x21-\x7e]+$/.test(raw) || /[\\#]/.test(raw)) return null;
    const segment = decodeOnce(raw);
    if (segment === null || AMBIGUOUS.test(segment)) return null;
    segments.push(segment);
  }
  return segments;
}

function decodeOnce(raw: string): string | null {
  try {
    return decodeURIComponent(raw);
  } catch {
    return null;
  }
}

/** Returns whether a gateway passes this request. */
export function isAllowed({ allow }: Gateway, method: string, segments: readonly string[]): boolean {
  return allow.some((rule) => rule.method === method && matches(rule.segments, segments));
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  const isOpen = pattern.at(-1) === "**";
  const fixed = isOpen ? pattern.slice(0, -1) : pattern;
  if (isOpen ? segments.length < fixed.length : segments.length !== fixed.length) return false;
  return fixed.every((part, at) => part === "*" || part === segments[at]);
}

const MODEL_CALLS = /^(messages|responses|completions)$/;

/** Returns whether the service reads this request and counts the tokens of its answer. Uploads, for example, pass unread. */
export function isMetered(
  { kind }: Gateway,
  { method, segments, isJson }: { method: string; segments: readonly string[]; isJson: boolean },
): boolean {
  const last = segments.at(-1) ?? "";
  if (kind === "http" || method !== "POST" || last === "count_tokens") return false;
  return isJson || MODEL_CALLS.test(last);
}
