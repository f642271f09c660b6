import { ServiceError } from "../domain/call/error.ts";
import type { App } from "./app_types.ts";

/** A file of the console, compressed by gzip when it was built. */
interface ConsoleFile {
  type: string;
  read: () => Promise<Uint8Array<ArrayBuffer>>;
}

/** The files of the console by their names below /console/. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

/** The paths of the console: its page, and everything below. */
export const CONSOLE_PATHS = ["/", "/console", "/console/*"];

// Nothing from other hosts and nothing inline; no text can become markup (facts, console 2.1).
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' blob: data:",
  "connect-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "form-action 'none'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join("; ");

const PAGE = "index.html";
// A file that the build named after its content never changes.
const IMMUTABLE = "public, max-age=31536000, immutable";

/**
 * GET / and /console/*: the web console (contract 17). A path that is not a file answers the page, which has its own
 * routes, so that every address can be reloaded. An unknown asset is 404: an open page of an older version notices.
 */
export function mountConsole(app: App, open: () => Promise<ConsoleFiles>): void {
  for (const path of CONSOLE_PATHS) {
    app.get(path, async (c) => {
      const files = await open();
      const name = c.req.path.replace(/^\/(console\/?)?/, "");
      const asset = name.startsWith("assets/");
      const file = files.get(name) ?? (asset ? undefined : files.get(PAGE));
      if (file === undefined) {
        throw new ServiceError("not_found", "Cannot find this part of the console: reload the page");
      }
      const packed = /\bgzip\b/.test(c.req.header("accept-encoding") ?? "");
      const bytes = await file.read();
      return new Response(packed ? bytes : unpacked(bytes), {
        headers: {
          "content-type": file.type,
          ...(packed ? { "content-encoding": "gzip" } : {}),
          "vary": "accept-encoding",
          "cache-control": asset ? IMMUTABLE : "no-cache",
          "content-security-policy": CONTENT_SECURITY_POLICY,
          "x-content-type-options": "nosniff",
          "referrer-policy": "no-referrer",
        },
      });
    });
  }
}

function unpacked(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array> {
  return new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
}
