import { Buffer } from "node:buffer";
import { randomBytes, scrypt, timingSafeEqual } from "node:crypto";
import { ServiceError } from "../domain/error.ts";
import { SCRYPT_PHC, scryptMemory } from "../domain/password.ts";

/** Cost of hashing a password that a person chose: about 0.4 s off the main thread (facts, Deno 11). */
export const CHOSEN_COST = { ln: 16, r: 8, p: 2 };
/** A generated password holds 120 random bits, which no cost could protect any better. */
export const GENERATED_COST = { ln: 14, r: 8, p: 1 };

interface Cost {
  ln: number;
  r: number;
  p: number;
}

const HASHES_IN_FLIGHT_MAX = 2;
const HASHES_WAITING_MAX = 8;
const SALT_BYTES = 16;
const HASH_BYTES = 32;

/** The scrypt hash of a password as a PHC string (contract 2). */
export async function hashPassword(password: string, cost: Cost): Promise<string> {
  const salt = randomBytes(SALT_BYTES);
  const hash = await derive(password, salt, cost, HASH_BYTES);
  return `$scrypt$ln=${cost.ln},r=${cost.r},p=${cost.p}$${base64(salt)}$${base64(hash)}`;
}

/** Whether the password belongs to the PHC string. A string that is none belongs to no password. */
export async function verifyPassword(password: string, phc: string): Promise<boolean> {
  const parts = SCRYPT_PHC.exec(phc);
  if (parts === null) return false;
  const [, ln = "", r = "", p = "", salt = "", hash = ""] = parts;
  const expected = Buffer.from(hash, "base64");
  const cost = { ln: Number(ln), r: Number(r), p: Number(p) };
  const found = await derive(password, Buffer.from(salt, "base64"), cost, expected.length);
  return timingSafeEqual(found, expected);
}

/** A password for the first start: 24 letters and digits that are not mistaken for each other. */
export function generatePassword(): string {
  const alphabet = "abcdefghijkmnpqrstuvwxyz23456789";
  return [...randomBytes(24)].map((byte) => alphabet[byte % alphabet.length]).join("");
}

let inFlight = 0;
const waiting: (() => void)[] = [];

// Each hash takes 64 MB and a core: two at once, a short queue, and beyond that a polite no (reliability AUT-5).
async function derive(password: string, salt: Uint8Array, cost: Cost, length: number): Promise<Buffer> {
  if (inFlight >= HASHES_IN_FLIGHT_MAX) {
    if (waiting.length >= HASHES_WAITING_MAX) {
      throw new ServiceError("rate_limited", "Cannot log in: too many logins at once; try again", {
        retry_after_s: 2,
      });
    }
    // Whoever is done hands on its place, so nobody slips in between.
    await new Promise<void>((resolve) => waiting.push(resolve));
  } else inFlight++;
  try {
    return await new Promise<Buffer>((resolve, reject) => {
      const options = {
        N: 2 ** cost.ln,
        r: cost.r,
        p: cost.p,
        maxmem: 2 * scryptMemory(cost.ln, cost.r, cost.p),
      };
      scrypt(
        password.normalize("NFC"),
        salt,
        length,
        options,
        (error, key) => error ? reject(error) : resolve(key),
      );
    });
  } finally {
    const next = waiting.shift();
    if (next === undefined) inFlight--;
    else next();
  }
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64").replace(/=+$/, "");
}
