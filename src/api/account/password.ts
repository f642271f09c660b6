import { Buffer } from "node:buffer";
import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../../domain/call/error.ts";
import { computeScryptBytes, SCRYPT_PHC } from "../../domain/account/password.ts";

/** Cost of hashing a chosen password: about 0.4 s off the main thread. */
export const CHOSEN_COST = { ln: 16, r: 8, p: 2 };
/** Cost of hashing a generated password, whose 120 random bits need no slow hash. */
export const GENERATED_COST = { ln: 14, r: 8, p: 1 };

interface Cost {
  ln: number;
  r: number;
  p: number;
}

// A hash uses one core for half a second. With two cores, one stays free for other requests and the other rests after
// each hash for as long as the hash took, so that a flood of guesses does not slow the service (decision 0014).
const IS_SMALL = navigator.hardwareConcurrency <= 2;
const HASHES_IN_FLIGHT_MAX = IS_SMALL ? 1 : 2;
const LONGEST_REST_MS = 2_000;
const HASHES_WAITING_MAX = 32;
const HASHES_WAITING_PER_NETWORK_MAX = 8;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** Hashes a password with scrypt into a PHC string. */
export async function hashPassword(password: string, cost: Cost, network = ""): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await runInTurn(network, () => derive(password, salt, cost, HASH_BYTES));
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${encodeBase64(salt)}$${encodeBase64(hash)}`;
}

/**
 * Checks a password against a PHC string. A malformed string matches no password. Checks of one network queue up and
 * the networks take turns. Throws `rate_limited` when the queue is full.
 */
export async function verifyPassword(password: string, phc: string, network = ""): Promise<boolean> {
  const parts = SCRYPT_PHC.exec(phc);
  if (parts === null) return false;
  const [, ln = "", r = "", p = "", salt = "", hash = ""] = parts;
  const expected = Buffer.from(hash, "base64");
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  const found = await runInTurn(
    network,
    () => derive(password, Buffer.from(salt, "base64"), cost, expected.length),
  );
  return timingSafeEqual(found, expected);
}

/** Generates a password of 24 letters and digits that do not look alike. */
export function generatePassword(): string {
  const alphabet = "abcdefghijkmnpqrstuvwxyz23456789";
  return [...randomBytes(24)].map((byte) => alphabet[byte % alphabet.length]).join("");
}

interface QueuedHash {
  start: () => void;
  refuse: () => void;
}

let inFlight = 0;
// Ordered by turn: the first network is next.
const queues = new Map<string, QueuedHash[]>();

// Each hash takes 64 MB and a core: at most two run at a time, a short queue waits, and the rest get 429. The networks
// take turns, so a flood from one does not delay the others.
async function runInTurn<T>(network: string, work: () => Promise<T>): Promise<T> {
  if (inFlight >= HASHES_IN_FLIGHT_MAX) await waitForTurn(network);
  else inFlight++;
  const began = performance.now();
  try {
    return await work();
  } finally {
    // The limit keeps a suspended process from resting for as long as it slept.
    if (IS_SMALL) setTimeout(startNext, Math.min(performance.now() - began, LONGEST_REST_MS));
    else startNext();
  }
}

// Passes the slot directly to the next hash, so that no new one takes it.
function startNext(): void {
  const next = takeNext();
  if (next === null) inFlight--;
  else next.start();
}

function waitForTurn(network: string): Promise<void> {
  const own = queues.get(network) ?? [];
  if (own.length >= HASHES_WAITING_PER_NETWORK_MAX || !freeQueuePlace(own.length)) {
    return Promise.reject(buildTooMany());
  }
  return new Promise<void>((resolve, reject) => {
    own.push({ start: resolve, refuse: () => reject(buildTooMany()) });
    queues.set(network, own);
  });
}

// Whether a network with `own` queued hashes may queue one more. In a full queue the longest network loses its last
// place to a shorter one.
function freeQueuePlace(own: number): boolean {
  const all = [...queues.values()];
  if (all.reduce((sum, waiting) => sum + waiting.length, 0) < HASHES_WAITING_MAX) return true;
  const longest = all.reduce((most, waiting) => waiting.length > most.length ? waiting : most, []);
  if (longest.length <= own + 1) return false;
  longest.pop()?.refuse();
  return true;
}

function takeNext(): QueuedHash | null {
  for (const [network, waiting] of queues) {
    const next = waiting.shift() ?? null;
    queues.delete(network);
    if (waiting.length > 0) queues.set(network, waiting);
    return next;
  }
  return null;
}

function buildTooMany(): ServiceError {
  return new ServiceError("rate_limited", "Cannot log in: too many simultaneous logins. Try again.", {
    retry_after_s: 2,
  });
}

function derive(password: string, salt: Uint8Array, cost: Cost, length: number): Promise<Buffer> {
  return new Promise<Buffer>((resolve, reject) => {
    const { ln, r, p } = cost;
    const options = { N: 2 ** ln, r, p, maxmem: 2 * computeScryptBytes(ln, r, p) };
    scrypt(
      password.normalize("NFC"),
      salt,
      length,
      options,
      (error, key) => error ? reject(error) : resolve(key),
    );
  });
}

function encodeBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64").replace(/=+$/, "");
}
