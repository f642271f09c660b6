import { createDecipheriv } from "node:crypto";
import { DeliveryError, type NamedBytes } from "../platform.ts";
import { requireAnswer } from "../request.ts";
import type { FileRef } from "./content.ts";

const HOSTS = /\.(qq\.com|myqcloud\.com)$/;
/** WeCom pads a file to a multiple of this. */
const PADDING_BYTES = 32;

/** Opens and decrypts a file of a message. The address is valid for five minutes. Throws DeliveryError. */
export async function download(
  { url: address, key }: FileRef,
  baseUrl: string,
  signal: AbortSignal,
): Promise<NamedBytes> {
  const url = URL.parse(address);
  const isWeCom = url?.protocol === "https:" && HOSTS.test(url.hostname) ||
    baseUrl !== "" && url?.hostname === new URL(baseUrl).hostname;
  if (!isWeCom) throw new DeliveryError("refused", "WeCom named an address outside of WeCom");
  const response = await requireAnswer("WeCom", () => fetch(address, { redirect: "manual", signal }));
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    const why = response.status >= 500 ? "unreachable" : "refused";
    throw new DeliveryError(why, `WeCom answered ${response.status}`);
  }
  const name = parseName(response.headers.get("content-disposition") ?? "");
  return { name, bytes: key === "" ? response.body : response.body.pipeThrough(createDecryption(key)) };
}

function parseName(disposition: string): string {
  const [, encoded] = /filename\*\s*=\s*"?UTF-8'[^']*'([^;\s"]+)/i.exec(disposition) ?? [];
  const [, quoted, bare] = /filename\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;]+))/i.exec(disposition) ?? [];
  const plain = decodeBytes(quoted?.replace(/\\(.)/g, "$1") ?? bare?.trim() ?? "file");
  return decodePercent(encoded) ?? decodePercent(plain) ?? plain;
}

function decodePercent(text: string | undefined): string | null {
  try {
    return text === undefined ? null : decodeURIComponent(text);
  } catch {
    return null;
  }
}

// A header arrives decoded as Latin-1, but its bytes are mostly UTF-8.
function decodeBytes(text: string): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(text, "latin1"));
  } catch {
    return text;
  }
}

/** Decrypts AES-256-CBC. The initialization vector is the start of the key. */
function createDecryption(base64: string): TransformStream<Uint8Array, Uint8Array> {
  const key = Buffer.from(base64, "base64");
  if (key.length !== 32) throw new DeliveryError("refused", "the key of the file is not valid");
  const decipher = createDecipheriv("aes-256-cbc", key, key.subarray(0, 16)).setAutoPadding(false);
  // Keeps the last bytes back, since the last byte names the length of the padding.
  let tail: Uint8Array = new Uint8Array();
  const take = (bytes: Uint8Array) => {
    const all = Buffer.concat([tail, bytes]);
    const known = Math.max(0, all.length - PADDING_BYTES);
    tail = all.subarray(known);
    return all.subarray(0, known);
  };
  return new TransformStream({
    transform: (chunk, stream) => stream.enqueue(take(decipher.update(chunk))),
    flush(stream) {
      const rest = Buffer.concat([tail, finish(decipher)]);
      const padding = rest.at(-1) ?? 0;
      const isWhole = padding >= 1 && padding <= Math.min(PADDING_BYTES, rest.length) &&
        rest.subarray(-padding).every((byte) => byte === padding);
      if (!isWhole) throw new DeliveryError("refused", "the key does not decrypt the file");
      stream.enqueue(rest.subarray(0, rest.length - padding));
    },
  });
}

function finish(decipher: { final: () => Buffer }): Buffer {
  try {
    return decipher.final();
  } catch {
    throw new DeliveryError("refused", "the key does not decrypt the file");
  }
}
