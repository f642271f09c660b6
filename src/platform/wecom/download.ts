import { createDecipheriv } from "node:crypto";
import { DeliveryError, type NamedBytes } from "../platform.ts";
import { answered } from "../request.ts";
import type { FileRef } from "./message.ts";

const HOSTS = /\.(qq\.com|myqcloud\.com)$/;
/** WeCom fills the last block up to a multiple of it. */
const PADDING_BYTES = 32;

/** A file of a message, opened with its own key as it comes. Its address lives for five minutes. Throws DeliveryError. */
export async function download(
  { url: address, key }: FileRef,
  baseUrl: string,
  signal: AbortSignal,
): Promise<NamedBytes> {
  const url = URL.parse(address);
  const isOurs = url?.protocol === "https:" && HOSTS.test(url.hostname) ||
    baseUrl !== "" && url?.hostname === new URL(baseUrl).hostname;
  if (!isOurs) throw new DeliveryError("refused", "WeCom named an address outside of WeCom");
  const response = await answered("WeCom", () => fetch(address, { redirect: "manual", signal }));
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    const why = response.status >= 500 ? "unreachable" : "refused";
    throw new DeliveryError(why, `WeCom answered ${response.status}`);
  }
  const name = nameOf(response.headers.get("content-disposition") ?? "");
  return { name, bytes: key === "" ? response.body : response.body.pipeThrough(opened(key)) };
}

function nameOf(disposition: string): string {
  const [, encoded] = /filename\*=UTF-8''([^;\s]+)/i.exec(disposition) ?? [];
  const [, plain = "file"] = /filename="?([^";]+)"?/i.exec(disposition) ?? [];
  try {
    return decodeURIComponent(encoded ?? plain);
  } catch {
    return plain;
  }
}

/** AES-256-CBC, whose first vector is the beginning of the key. */
function opened(base64: string): TransformStream<Uint8Array, Uint8Array> {
  const key = Buffer.from(base64, "base64");
  if (key.length !== 32) throw new DeliveryError("refused", "the key of the file is none");
  const decipher = createDecipheriv("aes-256-cbc", key, key.subarray(0, 16)).setAutoPadding(false);
  // The end is kept back: only there is seen how much of it is padding.
  let held: Uint8Array = new Uint8Array();
  const take = (bytes: Uint8Array) => {
    const all = Buffer.concat([held, bytes]);
    const known = Math.max(0, all.length - PADDING_BYTES);
    held = all.subarray(known);
    return all.subarray(0, known);
  };
  return new TransformStream({
    transform: (chunk, stream) => stream.enqueue(take(decipher.update(chunk))),
    flush(stream) {
      const rest = Buffer.concat([held, finished(decipher)]);
      const padding = rest.at(-1) ?? 0;
      const isWhole = padding >= 1 && padding <= Math.min(PADDING_BYTES, rest.length) &&
        rest.subarray(-padding).every((byte) => byte === padding);
      if (!isWhole) throw new DeliveryError("refused", "its key does not open the file");
      stream.enqueue(rest.subarray(0, rest.length - padding));
    },
  });
}

function finished(decipher: { final: () => Buffer }): Buffer {
  try {
    return decipher.final();
  } catch {
    throw new DeliveryError("refused", "its key does not open the file");
  }
}
