import { DeliveryError, type Part } from "./platform.ts";

export interface PartFile {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
  mime: string;
}

/** Reads the file of a part. Returns null for text. Throws DeliveryError when the file no longer exists. */
export async function readPartFile({ text, media, asFile }: Part): Promise<PartFile | null> {
  if (asFile !== undefined) {
    return { name: asFile, bytes: new TextEncoder().encode(text), mime: "text/markdown" };
  }
  if (media === null) return null;
  try {
    return { name: media.original_name, bytes: await Deno.readFile(media.path), mime: media.mime };
  } catch {
    throw new DeliveryError("refused", `Cannot read the file ${media.original_name}: it no longer exists`);
  }
}
