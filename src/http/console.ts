import { ServiceError } from "../domain/call/error.ts";
import type { App } from "./app_types.ts";

/** A file of the console, compressed by the build. */
interface ConsoleFile {
  type: string;
  read: () => Promise<Uint8Array<ArrayBuffer>>;
}

/** Console files by name below /console/. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

export const CONSOLE_PATHS = ["/", "/console", "/console/*"];

// Blocks other hosts, inline code, and text that becomes markup (facts, console 2.1). The one policy for Trusted Types registers the
// service worker.
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
  "trusted-types svc-worker",
].join("; ");

const PAGE = "index.html";
// The build names assets after their content.
const IMMUTABLE = "public, max-age=31536000, immutable";

/**
 * Mounts the web console at / and /console/* (contract 17). Every path that is not a file returns the page, which has its own routes. An
 * unknown asset returns 404, so that an open page of an older version notices the upgrade.
 */
export function mountConsole(app: App, open: () => Promise<ConsoleFiles>): void {
  for (const path of CONSOLE_PATHS) {
    app.get(path, async (c) => {
      const files = await open();
      const name = c.req.path.replace(/^\/(console\/?)?/, "");
      const asset = name.startsWith("assets/");
      const file = files.get(name) ?? (asset ? undefined : files.get(PAGE));
      if (file === undefined) {
        throw new ServiceError(
          "not_found",
          "Cannot find this part of the console: it has another version. Reload the page.",
        );
      }
      const packed = /\bgzip\b/.test(c.req.header("accept-encoding") ?? "");
      const bytes = await file.read();
      return new Response(packed ? bytes : decompress(bytes), {
        headers: {
          "content-type": file.type,
          ...(packed ? { "content-encoding": "gzip" } : {}),
          "vary": "accept-encoding",
          "cache-control": asset ? IMMUTABLE : "no-cache",
          "content-security-policy": CONTENT_SECURITY_POLICY,
          "x-content-type-options": "nosniff",
        },
      });
    });
  }
}

function decompress(bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array> {
  return new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
}
