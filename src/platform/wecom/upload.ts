import { createHash } from "node:crypto";
import type { PartFile } from "../part_file.ts";
import { DeliveryError } from "../platform.ts";
import { runBeforeSend } from "../request.ts";
import type { WeComClient } from "./client.ts";

const PIECE_BYTES = 512 * 1024;

/** Uploads a file in pieces. Returns its id, which messages can use for three days. Throws as call() does. */
export function upload(client: WeComClient, { name, bytes }: PartFile): Promise<string> {
  return runBeforeSend(async () => {
    if (bytes.length === 0) throw new DeliveryError("refused", `WeCom takes no empty file: ${name}`);
    const { upload_id } = await client.call<{ upload_id: string }>("aibot_upload_media_init", {
      type: "file",
      filename: name,
      total_size: bytes.length,
      total_chunks: Math.ceil(bytes.length / PIECE_BYTES),
      md5: createHash("md5").update(bytes).digest("hex"),
    });
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      await client.call("aibot_upload_media_chunk", {
        upload_id,
        chunk_index: at / PIECE_BYTES,
        base64_data: Buffer.from(bytes.subarray(at, at + PIECE_BYTES)).toString("base64"),
      });
    }
    const { media_id } = await client.call<{ media_id: string }>("aibot_upload_media_finish", { upload_id });
    return media_id;
  });
}
