import { Buffer } from "node:buffer";

// Labels of HKDF. A changed label loses every stored value.
const VALUE_LABEL = "svc secret values v1";
const ID_LABEL = "svc secret key id v1";

const NONCE_BYTES = 12;
const KEY_BITS = 256;
const ID_BITS = 64;

/** An encrypted value and the id of its key. */
export interface SealedSecret {
  key_id: string;
  /** Nonce and ciphertext in base64url. */
  sealed: string;
}

interface DerivedKey {
  id: string;
  cipher: CryptoKey;
}

// Deriving costs more than encrypting, and a signing key seldom changes.
const DERIVED = new WeakMap<Uint8Array, Promise<DerivedKey>>();

function getDerivedKey(signingKey: Uint8Array): Promise<DerivedKey> {
  const known = DERIVED.get(signingKey);
  if (known !== undefined) return known;
  const made = deriveKey(signingKey);
  DERIVED.set(signingKey, made);
  return made;
}

async function deriveKey(signingKey: Uint8Array): Promise<DerivedKey> {
  const root = await crypto.subtle.importKey("raw", Uint8Array.from(signingKey), "HKDF", false, [
    "deriveKey",
    "deriveBits",
  ]);
  const hkdf = (label: string) => ({
    name: "HKDF",
    hash: "SHA-256",
    salt: new Uint8Array(),
    info: new TextEncoder().encode(label),
  });
  const [id, cipher] = await Promise.all([
    crypto.subtle.deriveBits(hkdf(ID_LABEL), root, ID_BITS),
    crypto.subtle.deriveKey(hkdf(VALUE_LABEL), root, { name: "AES-GCM", length: KEY_BITS }, false, [
      "encrypt",
      "decrypt",
    ]),
  ]);
  return { id: Buffer.from(id).toString("hex"), cipher };
}

/** Returns the id of the key that a signing key gives. It reveals nothing about the key. */
export async function computeSecretKeyId(signingKey: Uint8Array): Promise<string> {
  return (await getDerivedKey(signingKey)).id;
}

/** Encrypts a value. The name is authenticated, so a row with another name's value does not open. */
export async function sealSecret(
  signingKey: Uint8Array,
  name: string,
  value: string,
): Promise<SealedSecret> {
  const { id, cipher } = await getDerivedKey(signingKey);
  const nonce = crypto.getRandomValues(new Uint8Array(NONCE_BYTES));
  const text = new TextEncoder().encode(value);
  const ciphertext = new Uint8Array(await crypto.subtle.encrypt(buildParameters(nonce, name), cipher, text));
  return { key_id: id, sealed: Buffer.concat([nonce, ciphertext]).toString("base64url") };
}

/** Decrypts a value. Returns null for another key, another name or a changed ciphertext. */
export async function openSecret(
  signingKey: Uint8Array,
  name: string,
  { key_id, sealed }: SealedSecret,
): Promise<string | null> {
  const { id, cipher } = await getDerivedKey(signingKey);
  if (key_id !== id) return null;
  const bytes = Buffer.from(sealed, "base64url");
  const nonce = Uint8Array.from(bytes.subarray(0, NONCE_BYTES));
  const ciphertext = Uint8Array.from(bytes.subarray(NONCE_BYTES));
  try {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(
      await crypto.subtle.decrypt(buildParameters(nonce, name), cipher, ciphertext),
    );
  } catch {
    // WebCrypto throws the same error for every wrong key, name, nonce and ciphertext.
    return null;
  }
}

function buildParameters(nonce: Uint8Array<ArrayBuffer>, name: string): AesGcmParams {
  return { name: "AES-GCM", iv: nonce, additionalData: new TextEncoder().encode(name) };
}
