// The result of an import, in the form of a fleet file (contract 34).
import { countBytes } from "../../../src/base/bytes.ts";
import { normalizeName } from "../../../src/domain/call/name_key.ts";
import { usageError } from "../../terminal/exit.ts";
import { asSettings, asText, asTexts, type Settings } from "./files.ts";

/** The limits of the service for the fields of a fleet file. */
const NAME_MAX_BYTES = 200;
export const TEXT_MAX_BYTES = 256 * 1024;
const SECRET_NAME_MAX_CHARACTERS = 63;
const SECRET_MAX_BYTES = 64 * 1024;
const MCP_SERVERS_MAX = 20;
/** Workers and schedules of one import, each. */
export const OBJECTS_MAX = 1_000;
const LEFT_OUT_MAX = 500;
const REASON_MAX_BYTES = 1_000;
/** Secrets of one import, and values that no output may have. */
const SECRETS_MAX = 1_000;
/** The limit of the service for a fleet (contract 16). */
export const FLEET_MAX_BYTES = 16 * 1024 * 1024;
/** Shorter values are too common in texts to be found in them. */
const FOUND_SECRET_MIN_CHARACTERS = 8;

export interface ImportedWorker {
  name: string;
  memory: string;
  mcp: Record<string, Settings>;
}

interface ImportedSchedule {
  name: string;
  worker: string;
  cron: string;
  time_zone?: string;
  instruction: string;
  paused?: boolean;
}

/** A platform for the configuration. */
type ImportedPlatform = Settings & { kind: string; allow: string[] };

/** Collects the fleet, the lines for the configuration, the secrets, and what has no equal. */
export class Imported {
  readonly workers: ImportedWorker[] = [];
  readonly schedules: ImportedSchedule[] = [];
  readonly platforms: Record<string, ImportedPlatform> = {};
  /** Values by the name of the secret; null for one that a person has to set. */
  readonly secrets = new Map<string, string | null>();
  readonly #source: string;
  readonly #leftOut: string[] = [];
  /** Values that no output may have. */
  readonly #hidden = new Set<string>();
  #leftOutCount = 0;
  #memoryBytes = 0;

  constructor(source: string) {
    this.#source = source;
  }

  get leftOut(): string[] {
    const more = this.#leftOutCount - this.#leftOut.length;
    return more === 0 ? this.#leftOut : [...this.#leftOut, `${more} more`];
  }

  /** Adds a line to the list of what has no equal. */
  leaveOut(what: string, why: string): void {
    if (this.#leftOutCount++ >= LEFT_OUT_MAX) return;
    this.#leftOut.push(`${cutText(what, NAME_MAX_BYTES)}: ${cutText(why, REASON_MAX_BYTES)}`);
  }

  /** Adds a worker. Throws a usage error for a fleet that would be too large. */
  addWorker(wanted: string, memory: string): ImportedWorker {
    this.#memoryBytes += countBytes(memory);
    if (this.#memoryBytes > FLEET_MAX_BYTES || this.workers.length === OBJECTS_MAX) {
      throw usageError(
        `Cannot import the directory: at most ${OBJECTS_MAX} agents with ${FLEET_MAX_BYTES} bytes of memory are possible`,
      );
    }
    const worker = { name: findFreeName(wanted, this.workers), memory, mcp: {} };
    this.workers.push(worker);
    return worker;
  }

  addSchedule(schedule: ImportedSchedule): void {
    if (this.schedules.length === OBJECTS_MAX) {
      return this.leaveOut(`schedule ${schedule.name}`, `only ${OBJECTS_MAX} schedules are imported`);
    }
    const name = findFreeName(schedule.name, this.schedules);
    this.schedules.push({ ...schedule, name });
  }

  /** Keeps a value out of every text of the output. */
  hide(value: unknown): void {
    if (typeof value !== "string") return;
    // A header has the kind of the token before it.
    for (const one of [value, value.replace(/^\w+ /, "")]) {
      if (one.length >= FOUND_SECRET_MIN_CHARACTERS) this.#hidden.add(one);
    }
    // mask() searches every text for each value.
    if (this.#hidden.size > 2 * SECRETS_MAX) {
      throw usageError(`Cannot import the directory: it has more than ${SECRETS_MAX} secrets`);
    }
  }

  /** Whether a secret of the import has this value. */
  isNamed(value: unknown): boolean {
    return [...this.secrets.values()].some((one) =>
      one !== null && typeof value === "string" && one.includes(value)
    );
  }

  /** Replaces the known secrets in a text. */
  mask(text: string): string {
    // A longer value may contain a shorter one.
    const values = [...this.#hidden].sort((a, b) => b.length - a.length);
    return values.reduce((masked, value) => masked.replaceAll(value, "[secret]"), text);
  }

  /** Replaces the known secrets in every text of a value, but not in references to secrets of the import. */
  maskAll(value: unknown): unknown {
    if (typeof value === "string") {
      return this.secrets.has(value.replace(/^secret:/, "")) ? value : this.mask(value);
    }
    if (Array.isArray(value)) return value.map((one) => this.maskAll(one));
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, this.maskAll(one)]));
  }

  /** Returns `secret:<name>` for a value. A person sets one that the directory does not have, or the service does not take. */
  nameSecret(wanted: string, given: string | null): string {
    this.hide(given);
    const value = given !== null && isSecretValue(given) ? given : null;
    const base = `${this.#source}-${wanted}`.toLowerCase().replace(/[^a-z0-9_]+/g, "-").replace(/-+$/, "");
    for (let count = 1;; count++) {
      const end = count === 1 ? "" : `-${count}`;
      const name = base.slice(0, SECRET_NAME_MAX_CHARACTERS - end.length) + end;
      if (this.secrets.has(name) && this.secrets.get(name) !== value) continue;
      this.secrets.set(name, value);
      return `secret:${name}`;
    }
  }

  /** Adds an MCP server of the other program to workers that have the same servers. `resolve` returns a value, or null for one that is elsewhere. */
  addServer(
    workers: readonly ImportedWorker[],
    wanted: string,
    server: Settings,
    resolve: (value: unknown) => string | null,
  ): void {
    const what = `MCP server ${wanted}`;
    const fault = findServerFault(server);
    if (fault !== null) {
      for (const value of [server.args, server.env, server.headers].flatMap(listTexts)) this.hide(value);
      return this.leaveOut(what, fault);
    }
    const name = buildServerName(wanted);
    const [first] = workers;
    if (first === undefined || Object.hasOwn(first.mcp, name)) {
      return this.leaveOut(what, `another server is called ${name}, too`);
    }
    if (Object.keys(first.mcp).length === MCP_SERVERS_MAX) {
      return this.leaveOut(what, `a worker has at most ${MCP_SERVERS_MAX} servers`);
    }
    const isCommand = typeof server.command === "string";
    const values = Object.entries(asSettings(isCommand ? server.env : server.headers));
    const kept = Object.fromEntries(values.flatMap(([key, value]) => {
      const fault = isCommand ? findVariableFault(key) : findHeaderFault(key);
      if (fault !== null) {
        this.leaveOut(`${key} of ${what}`, fault);
        return [];
      }
      const text = resolve(value);
      if (text !== null && isPlain(text)) return [[key, text]];
      return [[key, this.nameSecret(`${name}-${key}`, text)]];
    }));
    const made = isCommand
      ? { command: [server.command, ...asTexts(server.args)], env: kept }
      : { url: server.url, headers: kept };
    for (const worker of workers) worker.mcp[name] = made;
  }
}

function isSecretValue(text: string): boolean {
  return text !== "" && text.isWellFormed() && !text.includes("\0") && countBytes(text) <= SECRET_MAX_BYTES;
}

function listTexts(value: unknown): string[] {
  return Array.isArray(value) ? asTexts(value) : asTexts(Object.values(asSettings(value)));
}

// Such a value is no secret. Any other one of a server may be.
function isPlain(value: string): boolean {
  return /^(true|false|\d{0,5})$/i.test(value);
}

const SECRET_WORD = /(token|secret|passw|api-?_?key|auth|credential|bearer)/i;
const TOKEN_TEXT = /^(?=.*\d)(?=.*[a-z])[\w-]{20,}$/i;

/** Whether a word of a command line, or a part of an address, may be a secret. */
function looksSecret(word: string): boolean {
  return TOKEN_TEXT.test(word) || /^(sk|gh[a-z]|xox[a-z]|glpat|AKIA)[-_]?\w/.test(word) && word.length > 12;
}

function findServerFault(server: Settings): string | null {
  const { command, url } = server;
  if (server.enabled === false || server.disabled === true) return "it is disabled";
  if (typeof command === "string") {
    const args = asTexts(server.args);
    if (!/^(\/.+|[^-/][^/]*)$/.test(command) || /[\0\s]/.test(command)) {
      return "its command is no program on PATH and no absolute path";
    }
    const named = args.some((word) => SECRET_WORD.test(word) || word.split(/[=:/]/).some(looksSecret));
    if (named) return "its arguments may have a secret, which other processes see. Give it in a variable";
    if (args.some((word) => /\$\{/.test(word))) return "its arguments name variables";
    return server.cwd === undefined ? null : "a server cannot have a directory (cwd)";
  }
  const parsed = typeof url === "string" ? URL.parse(url) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) return "it has no command, and no address";
  if (/sse/i.test(asText(server.transport) + asText(server.type))) {
    return "its transport is SSE; only streamable HTTP is possible";
  }
  if (parsed.username !== "" || parsed.search !== "" || parsed.pathname.split("/").some(looksSecret)) {
    return "its address may have a secret. Give it in a header";
  }
  return server.auth === "oauth" ? "it uses OAuth. Give a token in a header" : null;
}

function findVariableFault(name: string): string | null {
  if (!/^[A-Za-z_][A-Za-z0-9_]{0,127}$/.test(name)) return "is not the name of a variable";
  return /^(SVC_.*|__proto__)$/i.test(name) ? "the name is reserved" : null;
}

function findHeaderFault(name: string): string | null {
  if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/.test(name)) return "is not the name of a header";
  return /^(host|connection|content-.*|accept|transfer-encoding|expect|upgrade|te|trailer|mcp-.*)$/i.test(
      name,
    )
    ? "the engine sets this header"
    : null;
}

function buildServerName(wanted: string): string {
  const plain = wanted.toLowerCase().replace(/[^a-z0-9_]+/g, "_").slice(0, 31);
  const name = /^[a-z]/.test(plain) ? plain : `m${plain}`.slice(0, 31);
  return name === "svc" ? "svc_" : name;
}

/** Returns a name that the service accepts and no other object has. */
function findFreeName(wanted: string, others: readonly { name: string }[]): string {
  const taken = new Set(others.map(({ name }) => normalizeName(name)));
  const base = cutText(toLine(wanted), NAME_MAX_BYTES - 8) || "unnamed";
  for (let count = 1;; count++) {
    const name = count === 1 ? base : `${base} ${count}`;
    if (!taken.has(normalizeName(name))) return name;
  }
}

/** Returns a text as one visible line. */
export function toLine(text: string): string {
  return text.toWellFormed().replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ")
    .replace(/[\p{Default_Ignorable_Code_Point}\p{Cf}\u2800\ufffc\u{1d159}]/gu, "").trim();
}

/** Removes the control characters that a text of the service cannot have. */
export function toText(text: string): string {
  return text.toWellFormed().replace(/\r\n?/g, "\n").replace(/[^\P{Cc}\n\t]/gu, "");
}

function cutText(text: string, maxBytes: number): string {
  if (countBytes(text) <= maxBytes) return text;
  let cut = text.slice(0, maxBytes);
  while (countBytes(cut) > maxBytes) cut = [...cut].slice(0, -1).join("");
  return cut.trim();
}

/** Whether a name of a setting says that its value is a secret. */
export function isSecretName(name: string): boolean {
  return SECRET_WORD.test(name);
}
