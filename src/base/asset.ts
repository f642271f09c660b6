import { createRequire } from "node:module";

/**
 * Opens a file that a package brings, such as `swagger-ui-dist/swagger-ui.css`. The build carries exactly the files that are
 * named in such calls and puts openPackedAsset() in their place (build/assets.ts).
 */
export async function openAsset(name: string, from: string): Promise<ReadableStream<Uint8Array>> {
  return (await Deno.open(createRequire(from).resolve(name), { read: true })).readable;
}

/** Opens a file that travels compressed in the executable. */
export async function openPackedAsset(packed: URL): Promise<ReadableStream<Uint8Array>> {
  return (await Deno.open(packed, { read: true })).readable.pipeThrough(new DecompressionStream("gzip"));
}
