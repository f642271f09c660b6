import { lookup } from "node:dns/promises";
import { BlockList, isIP, isIPv4 } from "node:net";

/** Returns the addresses of a name. */
export type ResolveName = (name: string) => Promise<string[]>;

/** The address is forbidden. No request was sent. */
export class RefusedAddressError extends Error {}

/** No connection was established. No request was sent. */
export class NotReachedError extends Error {}

const resolveName: ResolveName = async (name) => {
  const found = await lookup(name, { all: true });
  return found.map(({ address }) => address);
};

// Addresses that a URL from outside must not reach: this machine, private networks and reserved ranges.
const INSIDE_V4: readonly (readonly [string, number])[] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

const inside = new BlockList();
for (const [net, bits] of INSIDE_V4) inside.addSubnet(net, bits, "ipv4");

/**
 * Returns whether an IP address belongs to the public internet: neither this machine nor a private, link-local, CGNAT,
 * documentation or multicast network, nor an IPv6 form of one (reliability WHK-2). Returns false for text that is not an
 * address.
 */
export function isPublicAddress(address: string): boolean {
  const text = address.replace(/^\[(.*)\]$/, "$1").replace(/%.*$/, "");
  const version = isIP(text);
  if (version === 4) return !inside.check(text, "ipv4");
  if (version !== 6) return false;
  const words = parseWords(text);
  // Only 2000::/3 is allocated. Some ranges in it only carry an IPv4 address, which decides then.
  const embedded = findEmbedded(words);
  if (embedded !== null) return isPublicAddress(embedded);
  const [first = 0, second = 0] = words;
  if ((first & 0xe000) !== 0x2000) return false;
  const isDocumentation = first === 0x2001 && second === 0x0db8 || (first & 0xfff0) === 0x3ff0;
  // 2001::/23 is reserved for protocols (Teredo, ORCHID), not for hosts.
  return !isDocumentation && !(first === 0x2001 && second < 0x0200);
}

const loopback = new BlockList();
loopback.addSubnet("127.0.0.0", 8, "ipv4");
loopback.addAddress("::1", "ipv6");

/** Returns whether a host is this machine: an address of its loopback network, or the name localhost. */
export function isLoopback(host: string): boolean {
  const text = host.replace(/^\[(.*)\]$/, "$1");
  const version = isIP(text);
  return version === 0
    ? text.toLowerCase() === "localhost"
    : loopback.check(text, version === 4 ? "ipv4" : "ipv6");
}

/**
 * Returns the addresses of a host, IPv4 first. Throws NotReachedError, and RefusedAddressError when one of them is not public: the caller
 * connects to one of these, so that a second DNS answer cannot redirect it (contract 11).
 */
export async function findCheckedAddresses(
  host: string,
  { allowPrivate = false, timeoutMs, resolve = resolveName }: {
    allowPrivate?: boolean | undefined;
    timeoutMs: number;
    resolve?: ResolveName | undefined;
  },
): Promise<[string, ...string[]]> {
  let addresses: string[];
  try {
    addresses = isIP(host) === 0 ? await limitTime(timeoutMs, resolve(host)) : [host];
  } catch (error) {
    throw new NotReachedError(
      `the name ${host} has no address: ${error instanceof Error ? error.message : error}`,
    );
  }
  const [first, ...rest] = [...addresses.filter(isIPv4), ...addresses.filter((one) => !isIPv4(one))];
  if (first === undefined) throw new NotReachedError(`the name ${host} has no address`);
  const wrong = allowPrivate ? undefined : addresses.find((address) => !isPublicAddress(address));
  if (wrong !== undefined) {
    throw new RefusedAddressError(`${host} is at ${wrong}, which is not a public address`);
  }
  return [first, ...rest];
}

/** Rejects when the work takes longer, because a name server or host may be slow on purpose. */
async function limitTime<T>(ms: number, work: Promise<T>): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`no answer within ${ms / 1000} s`)), ms);
  return await Promise.race([work, late.promise]).finally(() => clearTimeout(timer));
}

/** Returns the IPv4 address inside a mapped, compatible, NAT64 or 6to4 address, or null. */
function findEmbedded(words: readonly number[]): string | null {
  const starts = (...prefix: number[]) => prefix.every((word, at) => words[at] === word);
  const last = formatDotted(words[6] ?? 0, words[7] ?? 0);
  if (starts(0, 0, 0, 0, 0, 0xffff) || starts(0, 0, 0, 0, 0xffff, 0)) return last;
  if (starts(0x64, 0xff9b, 0, 0, 0, 0)) return last;
  if (starts(0x2002)) return formatDotted(words[1] ?? 0, words[2] ?? 0);
  return null;
}

function formatDotted(high: number, low: number): string {
  return [high >> 8, high & 0xff, low >> 8, low & 0xff].join(".");
}

/** Parses a valid IPv6 address into its eight words. */
function parseWords(text: string): number[] {
  const v4 = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(text);
  const plain = v4 === null
    ? text
    : `${v4[1]}${formatHex(Number(v4[2]), Number(v4[3]))}:${formatHex(Number(v4[4]), Number(v4[5]))}`;
  const [head = "", tail] = plain.split("::");
  const parse = (part: string | undefined) =>
    part ? part.split(":").map((word) => Number.parseInt(word, 16)) : [];
  const before = parse(head);
  const after = parse(tail);
  return tail === undefined
    ? before
    : [...before, ...Array(8 - before.length - after.length).fill(0), ...after];
}

function formatHex(high: number, low: number): string {
  return ((high << 8) | low).toString(16);
}
