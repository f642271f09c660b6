import { type HeaderField, listValues, removeComments } from "./header.ts";

export interface Sender {
  address: string;
  domain: string;
  /** Name that the sender chose. */
  name: string;
}

interface Rules {
  trusted_authserv: string;
  aligned: readonly string[];
}

/** Finds the sender whose domain the receiving server has verified. Returns the reason as text when there is none. */
export function verifySender(header: readonly HeaderField[], rules: Rules): Sender | string {
  const sender = parseFrom(listValues(header, "from"));
  if (sender === null) return "it does not have one From with one address";
  const results = findTrustedResults(header, rules.trusted_authserv);
  if (typeof results === "string") return results;
  const isVerified = results.some((result) => verifies(result, sender.domain, rules.aligned));
  return isVerified ? sender : `${rules.trusted_authserv} did not verify the domain of its From`;
}

const ATOM = "[\\w!#$%&'*+/=?^`{|}~-]+";
const ADDRESS = `(${ATOM}(?:\\.${ATOM})*)@([A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)+)`;
/** A name has no @, since programs disagree on which of two addresses is the sender. */
const NAMED = new RegExp(`^("(?:[^"\\\\]|\\\\.)*"|[^"<>()@,:;\\\\]*?)\\s*<${ADDRESS}>$`);
const PLAIN = new RegExp(`^${ADDRESS}$`);
const FROM_MAX_CHARACTERS = 1_000;

function parseFrom(values: readonly string[]): Sender | null {
  const [value, ...others] = values;
  if (value === undefined || others.length > 0 || value.length > FROM_MAX_CHARACTERS) return null;
  const [, name = "", local, host] = NAMED.exec(value) ?? ["", "", ...PLAIN.exec(value)?.slice(1) ?? []];
  if (local === undefined || host === undefined) return null;
  const domain = host.toLowerCase();
  return { address: `${local.toLowerCase()}@${domain}`, domain, name: name.replace(/^"|"$|\\/g, "") };
}

interface MethodResult {
  method: string;
  result: string;
  /** Values of each property, such as `header.d`. */
  properties: Map<string, string[]>;
}

function findTrustedResults(header: readonly HeaderField[], trusted: string): MethodResult[] | string {
  const at = header.findIndex(({ name }) => name === "authentication-results");
  const field = header[at];
  if (field === undefined) return "it has no Authentication-Results";
  const { server, results } = parseResults(field.value);
  if (server !== trusted) return `its first Authentication-Results are of ${server || "no server"}`;
  const isForeign = header.slice(0, at).some(({ name, value }) =>
    name === "received" && !isReceivedBy(value, trusted)
  );
  return isForeign ? "another server received it after its Authentication-Results" : results;
}

/** Checks that a server, or a host below its name, wrote a line of `Received`. */
function isReceivedBy(received: string, server: string): boolean {
  const words = removeComments(received).replace(/;.*/s, "").trim().split(/\s+/);
  const hosts = words.flatMap((word, at) => word.toLowerCase() === "by" ? [words[at + 1] ?? ""] : []);
  const host = hosts[0]?.toLowerCase() ?? "";
  return hosts.length === 1 && (host === server || host.endsWith(`.${server}`));
}

/** Parses `Authentication-Results` (RFC 8601). */
function parseResults(value: string): { server: string; results: MethodResult[] } {
  const text = removeComments(value).replace(/\s+/g, " ").replace(/ ?= ?/g, "=");
  const [first = "", ...rest] = splitOutsideQuotes(text, ";");
  const [server = ""] = splitOutsideQuotes(first, " ");
  return { server: unquote(server).toLowerCase(), results: rest.flatMap(parseResult) };
}

function parseResult(text: string): MethodResult[] {
  const [verdict, ...pairs] = splitOutsideQuotes(text, " ").map(parsePair);
  if (verdict === undefined) return [];
  const properties = new Map<string, string[]>();
  for (const { key, value } of pairs) {
    const values = properties.get(key);
    if (values === undefined) properties.set(key, [value]);
    else values.push(value);
  }
  return [{ method: verdict.key.replace(/\/\d+$/, ""), result: verdict.value.toLowerCase(), properties }];
}

function parsePair(word: string): { key: string; value: string } {
  const at = word.indexOf("=");
  return at === -1
    ? { key: word.toLowerCase(), value: "" }
    : { key: word.slice(0, at).toLowerCase(), value: unquote(word.slice(at + 1)) };
}

function unquote(word: string): string {
  return word.replace(/\\(.)|"/g, "$1");
}

function splitOutsideQuotes(text: string, separators: string): string[] {
  const words = [""];
  let isQuoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at] ?? "";
    if (character === '"') isQuoted = !isQuoted;
    if (!isQuoted && separators.includes(character)) words.push("");
    else words[words.length - 1] += character === "\\" ? text.slice(at, ++at + 1) : character;
  }
  return words.filter((word) => word.trim() !== "");
}

/** Property that names the domain that a method verified. */
const PROPERTIES: Record<string, string> = { dkim: "header.d", spf: "smtp.mailfrom", dmarc: "header.from" };

function verifies(
  { method, result, properties }: MethodResult,
  domain: string,
  aligned: readonly string[],
): boolean {
  const name = PROPERTIES[method];
  if (name === undefined || result !== "pass") return false;
  // A server that names the domain twice does not say which of them it verified.
  const [value, ...others] = properties.get(name) ?? [];
  if (others.length > 0) return false;
  if (value === undefined) return method === "dmarc";
  const verified = value.replace(/^.*@/s, "").replace(/[>.]$/, "").toLowerCase();
  return verified === domain || domain.endsWith(`.${verified}`) && aligned.includes(verified);
}
