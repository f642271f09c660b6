import { invalid, ServiceError } from "../../domain/call/error.ts";

/** A request to a model API, as the gateway sends it. */
export interface ModelRequest {
  body: Uint8Array;
  /** Whether the answer gets a chunk that its client did not ask for. */
  addsUsage: boolean;
}

/** A member of a JSON object, with its value as written. */
interface Member {
  name: string;
  text: string;
}

/**
 * Prepares a request to OpenAI's API: forbids background work, stores nothing, and asks for usage in a stream. Everything else stays byte
 * for byte. Throws `invalid_request`, and `forbidden` for a stored response that `hasResponse` does not know.
 */
export function prepareOpenAiRequest(
  bytes: Uint8Array,
  path: string,
  hasResponse: (id: string) => boolean,
): ModelRequest {
  const members = readMembers(bytes);
  const values = new Map(members.map(({ name, text }) => [name, text]));
  if (path.endsWith("/responses")) {
    checkResponse(values, hasResponse);
    return { body: writeMembers(members, { store: "false" }), addsUsage: false };
  }
  const unstored: Record<string, string> = values.has("store") ? { store: "false" } : {};
  if (!path.endsWith("/completions") || values.get("stream") !== "true") {
    return { body: writeMembers(members, unstored), addsUsage: false };
  }
  const options = JSON.parse(values.get("stream_options") ?? "null") as { include_usage?: unknown } | null;
  if (options?.include_usage === true) return { body: writeMembers(members, unstored), addsUsage: false };
  const stream_options = JSON.stringify({ ...options, include_usage: true });
  return { body: writeMembers(members, { ...unstored, stream_options }), addsUsage: true };
}

/** Throws `invalid_request` for a body that is not one JSON object. */
export function checkJsonObject(bytes: Uint8Array): void {
  readMembers(bytes);
}

function checkResponse(values: ReadonlyMap<string, string>, hasResponse: (id: string) => boolean): void {
  const isSet = (name: string) => !["null", "false", undefined].includes(values.get(name));
  if (isSet("background")) {
    throw invalid(
      "background",
      "cannot be set: a run ends with its requests, and the gateway counts their answers",
    );
  }
  const previous = JSON.parse(values.get("previous_response_id") ?? "null");
  if (previous !== null && !(typeof previous === "string" && hasResponse(previous))) {
    throw buildForeignError("previous_response_id");
  }
  if (isSet("conversation")) throw buildForeignError("conversation");
}

export function buildForeignError(field: string): ServiceError {
  return new ServiceError(
    "forbidden",
    `Cannot use ${field}: this conversation did not get a stored response with this id`,
  );
}

/** Reads the members of a JSON object. Refuses a repeated name, because two servers could use different ones of its values. */
function readMembers(bytes: Uint8Array): Member[] {
  const text = decode(bytes);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new ServiceError("invalid_request", "Cannot read the body: it is not valid JSON");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ServiceError("invalid_request", "Cannot read the body: it is not a JSON object");
  }
  const members = splitMembers(text);
  const seen = new Set<string>();
  for (const { name } of members) {
    if (seen.has(name)) throw invalid(name.slice(0, 100), "cannot be repeated in the body");
    seen.add(name);
  }
  return members;
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw new ServiceError("invalid_request", "Cannot read the body: it is not UTF-8");
  }
}

/** Splits the text of a valid JSON object at the commas between its members. */
function splitMembers(text: string): Member[] {
  const members: Member[] = [];
  let depth = 0;
  let from = 0;
  const add = (to: number) => {
    const member = text.slice(from, to).trim();
    if (member === "") return;
    const nameEnd = findStringEnd(member, 0) + 1;
    const value = member.slice(nameEnd).trim().slice(1).trim();
    members.push({ name: JSON.parse(member.slice(0, nameEnd)), text: value });
  };
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === '"') {
      at = findStringEnd(text, at);
    } else if (character === "{" || character === "[") {
      if (depth++ === 0) from = at + 1;
    } else if (character === "}" || character === "]") {
      if (--depth === 0) add(at);
    } else if (character === "," && depth === 1) {
      add(at);
      from = at + 1;
    }
  }
  return members;
}

function findStringEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1);; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text[before] === "\\") before--;
    if ((at - before) % 2 === 1) return at;
  }
}

function writeMembers(members: readonly Member[], changes: Readonly<Record<string, string>>): Uint8Array {
  const kept = members.filter(({ name }) => !Object.hasOwn(changes, name));
  const all = [...kept, ...Object.entries(changes).map(([name, text]) => ({ name, text }))];
  return new TextEncoder().encode(
    `{${all.map(({ name, text }) => `${JSON.stringify(name)}:${text}`).join(",")}}`,
  );
}
