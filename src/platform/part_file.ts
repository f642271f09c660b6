import { shownName } from "./message_parts.ts";
import { DeliveryError, type Part } from "./platform.ts";

/** A file that is sent. */
export interface PartFile {
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
  mime: string;
}

/** The file of a part, or null when it is text. Throws DeliveryError when it is gone. */
export async function fileOf({ text, media, asFile }: Part): Promise<PartFile | null> {
  if (asFile !== undefined) {
    return { name: asFile, bytes: new TextEncoder().encode(text), mime: "text/markdown" };
  }
  if (media === null) return null;
  try {
    return { name: shownName(media), bytes: await Deno.readFile(media.path), mime: media.mime };
  } catch {
    throw new DeliveryError("refused", `the file ${shownName(media)} is not there any more`);
  }
}
