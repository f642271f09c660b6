import { Buffer } from "node:buffer";
import { Busboy, type BusboyFileStream, type BusboyHeaders } from "@fastify/busboy";
import type { Call } from "../api/call/call.ts";
import { digest } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { invalid, ServiceError } from "../domain/call/error.ts";
import type { UploadTarget } from "../api/chat/media.ts";
import type { IncomingFile } from "../files/uploads.ts";
import { type IncomingBody, openIncomingBody } from "./server/incoming_body.ts";

/** A parsed form. The caller must finish or discard the file. */
interface Form {
  fields: Record<string, string>;
  file: IncomingFile | null;
}

const FIELD_MAX_BYTES = 256 * 1024;
const FIELDS_MAX = 10;
// Boundaries, part headers and text fields in addition to the file.
const OVERHEAD_BYTES = FIELD_MAX_BYTES + 64 * 1024;

/**
 * Reads a multipart form with at most one file in the field `file`, and writes the file to disk. Throws `payload_too_large`,
 * `unsupported_media_type` and `invalid_request`, after deleting the partial file (reliability UPL-1, UPL-3).
 */
export async function readForm(
  request: Request,
  target: UploadTarget,
  clock: Clock,
): Promise<Form> {
  const type = request.headers.get("content-type") ?? "";
  if (!/^multipart\/form-data\s*;/i.test(type)) {
    throw new ServiceError(
      "unsupported_media_type",
      "Cannot read the upload: it is not a form. Send multipart/form-data.",
    );
  }
  const body = openIncomingBody(request, clock);
  if (body === null) throw invalid("", "the body is empty. Send multipart/form-data.");
  const length = Number(request.headers.get("content-length") ?? 0);
  if (length > target.maxBytes + OVERHEAD_BYTES) throw createSizeError(target.maxBytes);
  const upload = new Upload(target, length);
  try {
    await upload.read(body, type);
    return upload.finish();
  } catch (error) {
    await upload.discard();
    // Faults of our disk are not errors of the client.
    if (error instanceof ServiceError || error === upload.fault) throw error;
    throw createReadError(error);
  }
}

function createSizeError(max: number): ServiceError {
  return new ServiceError("payload_too_large", `Cannot accept the file: it is larger than ${max} bytes`);
}

function createReadError(error: unknown): ServiceError {
  return new ServiceError("invalid_request", `Cannot read the upload: ${describeError(error)}`);
}

function describeError(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return /boundary|multipart|part|unexpected end|header/i.test(text)
    ? text.slice(0, 200)
    : "the body was cut off";
}

class Upload {
  readonly #target: UploadTarget;
  readonly #bytes: number;
  readonly #fields: Record<string, string> = Object.create(null);
  #file: IncomingFile | null = null;
  #writing: Promise<void> = Promise.resolve();
  fault: Error | null = null;

  constructor(target: UploadTarget, bytes: number) {
    this.#target = target;
    this.#bytes = Math.min(bytes, target.maxBytes);
  }

  async read(body: IncomingBody, type: string): Promise<void> {
    const busboy = new Busboy({
      headers: { "content-type": type } as BusboyHeaders,
      limits: {
        files: 1,
        fields: FIELDS_MAX,
        parts: FIELDS_MAX + 1,
        fileSize: this.#target.maxBytes + 1,
        fieldSize: FIELD_MAX_BYTES,
        fieldNameSize: 100,
        headerPairs: 20,
      },
    });
    const ended = new Promise<void>((resolve, reject) => {
      busboy.on("finish", resolve);
      busboy.on("error", reject);
    });
    // The promise may reject long before the await.
    ended.catch(() => {});
    busboy.on("file", (field, stream, name) => this.#startFile(field, stream, name));
    busboy.on("field", (name, value, _nameCut, valueCut) => {
      if (valueCut) this.#fail(invalid(name.slice(0, 100), `must be at most ${FIELD_MAX_BYTES} bytes`));
      else if (name in this.#fields) this.#fail(invalid(name.slice(0, 100), "is a duplicate"));
      else this.#fields[name] = value;
    });
    for (const limit of ["partsLimit", "filesLimit", "fieldsLimit"] as const) {
      busboy.on(
        limit,
        () => this.#fail(invalid("file", "an upload has one file and text fields only")),
      );
    }
    while (true) {
      const value = await body.read();
      if (this.fault !== null) throw this.fault;
      if (value === null) break;
      // Waiting for the disk limits memory when the client is faster.
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      if (!busboy.write(bytes)) await Promise.race([waitForDrain(busboy), ended]);
      await this.#writing;
    }
    busboy.end();
    await ended;
    await this.#writing;
    if (this.fault !== null) throw this.fault;
  }

  #fail(error: Error): void {
    this.fault ??= error;
  }

  #startFile(field: string, stream: BusboyFileStream, name: string | undefined): void {
    stream.on("error", (error: Error) => this.#fail(createReadError(error)));
    if (field !== "file" || this.#file !== null) {
      this.#fail(
        invalid(
          "file",
          `must be the field of the file, not ${JSON.stringify(field.slice(0, 100))}`,
        ),
      );
      stream.resume();
      return;
    }
    const opening = this.#target.open(decodeFormName(name ?? ""), this.#bytes).then((file) => {
      this.#file = file;
    }).catch((error) => this.#fail(error));
    this.#writing = opening;
    stream.on("data", (chunk: Buffer) => {
      this.#writing = this.#writing.then(() => this.#write(chunk)).catch((error) => this.#fail(error));
    });
  }

  async #write(chunk: Uint8Array): Promise<void> {
    if (this.fault !== null || this.#file === null) return;
    if (this.#file.size + chunk.length > this.#target.maxBytes) {
      return this.#fail(createSizeError(this.#target.maxBytes));
    }
    await this.#file.write(chunk);
  }

  finish(): Form {
    return { fields: { ...this.#fields }, file: this.#file };
  }

  async discard(): Promise<void> {
    await this.#writing.catch(() => {});
    await this.#file?.discard();
  }
}

// Browsers and `svc ctl` percent-encode these characters in a name (HTML standard, multipart form data).
function decodeFormName(name: string): string {
  return name.replace(/%(22|0D|0A)/gi, decodeURIComponent);
}

function waitForDrain(busboy: InstanceType<typeof Busboy>): Promise<void> {
  return new Promise((resolve) => busboy.once("drain", () => resolve()));
}

/** Adds the fingerprint of a form to the call, for a comparison with earlier calls of the same Idempotency-Key (contract 1.9, contract 8.4). */
export async function addFormFingerprint(
  call: Call,
  input: unknown,
  sent: IncomingFile | null,
): Promise<Call> {
  if (call.idempotency === null) return call;
  const file = sent === null ? null : [sent.originalName, await sent.digest()];
  return {
    ...call,
    idempotency: { ...call.idempotency, fingerprint: digest(JSON.stringify([input, file])) },
  };
}
