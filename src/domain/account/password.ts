import { text } from "../call/field.ts";

const PASSWORD_MIN_CHARACTERS = 10;
export const PASSWORD_MAX_BYTES = 1_000;

export const chosenPassword = text(PASSWORD_MAX_BYTES).refine(
  (value) => [...value].length >= PASSWORD_MIN_CHARACTERS,
  { error: `must be at least ${PASSWORD_MIN_CHARACTERS} characters` },
).meta({ minLength: PASSWORD_MIN_CHARACTERS });

/** A scrypt hash as a PHC string: cost as ln, r and p, then salt and hash in Base64 without padding. */
export const SCRYPT_PHC =
  /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]+)\$([A-Za-z0-9+/]+)$/;

/** Memory limit of one hash: two of them must fit into a small machine. */
const SCRYPT_MEMORY_MAX = 1024 ** 3;

/** Returns the bytes of memory that scrypt needs for this cost. */
export function computeScryptBytes(ln: number, r: number, p: number): number {
  return 128 * r * (2 ** ln + p + 2);
}

/** Returns whether a hash has the supported form and an allowed cost. */
export function isScryptHash(phc: string): boolean {
  const [, ln, r, p] = (SCRYPT_PHC.exec(phc) ?? []).map(Number);
  if (ln === undefined || r === undefined || p === undefined) return false;
  return ln > 0 && r > 0 && p > 0 && computeScryptBytes(ln, r, p) <= SCRYPT_MEMORY_MAX;
}
