import { basename } from "node:path";
import { explainUnreadable, usageError } from "../terminal/exit.ts";

/** A multipart form with a file, streamed so that a large file needs little memory. */
interface UploadForm {
  size: number;
  /** Builds the body. `sent` gets the progress. */
  stream: (sent: (bytes: number, size: number) => void) => Upload;
}

/** The body of an upload request. */
export interface Upload {
  body: ReadableStream<Uint8Array>;
  contentType: string;
}

/** Builds a form of texts and one file, in the field `file`. Throws a usage error for an unreadable file. */
export async function buildForm(path: string, fields: Record<string, string>): Promise<UploadForm> {
  const file = await openFile(path);
  const { size } = await file.stat();
  const boundary = `svc-${crypto.randomUUID()}`;
  const encoder = new TextEncoder();
  const head = encoder.encode(
    Object.entries(fields).map(([name, value]) =>
      `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    ).join("") +
      `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="${
        escapeFileName(basename(path))
      }"\r\n` +
      "content-type: application/octet-stream\r\n\r\n",
  );
  const tail = encoder.encode(`\r\n--${boundary}--\r\n`);
  async function* parts(sent: (bytes: number, size: number) => void) {
    yield head;
    let bytes = 0;
    for await (const chunk of file.readable) {
      yield chunk;
      sent(bytes += chunk.length, size);
    }
    yield tail;
  }
  return {
    size,
    stream: (sent) => ({
      body: ReadableStream.from(parts(sent)),
      contentType: `multipart/form-data; boundary=${boundary}`,
    }),
  };
}

async function openFile(path: string): Promise<Deno.FsFile> {
  try {
    const file = await Deno.open(path, { read: true });
    if ((await file.stat()).isFile) return file;
    file.close();
  } catch (error) {
    throw usageError(`--media-path: cannot read ${path}: ${explainUnreadable(error)}`);
  }
  throw usageError(`--media-path: ${path} is not a file`);
}

// Quotes and line breaks would end the name early (HTML standard, multipart form data).
function escapeFileName(name: string): string {
  return name.replaceAll('"', "%22").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
}
