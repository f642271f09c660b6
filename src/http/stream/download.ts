import type { MediaFile } from "../../api/chat/media.ts";
import { cleanFileName, toAsciiName } from "../../files/file_name.ts";

/** Builds the response for a stored file: an attachment without sniffing, so that it never runs as a page of this server (reliability UPL-4). */
export function buildDownload({ file, size, mime, originalName }: MediaFile): Response {
  const shown = cleanFileName(originalName);
  const exact = encodeURIComponent(shown).replace(
    /['()*]/g,
    (c) => `%${c.charCodeAt(0).toString(16)}`,
  );
  return new Response(file.readable, {
    headers: {
      "content-type": mime,
      "content-length": String(size),
      "content-disposition": `attachment; filename="${toAsciiName(shown)}"; filename*=UTF-8''${exact}`,
      "x-content-type-options": "nosniff",
      "content-security-policy": "default-src 'none'; sandbox",
      "cache-control": "private, no-store",
    },
  });
}
