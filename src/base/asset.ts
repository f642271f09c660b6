import { createRequire } from "node:module";

/**
 * Opens a file of a package, such as `swagger-ui-dist/swagger-ui.css`. The build embeds exactly the files that such calls
 * name and replaces this function by openPackedAsset() (build/assets.ts).
 */
export async function openAsset(name: string, from: string): Promise<ReadableStream<Uint8Array>> {
  return (await Deno.open(createRequire(from).resolve(name), { read: true })).readable;
}

/** Opens a file that is compressed in the executable. */
export async function openPackedAsset(packed: URL): Promise<ReadableStream<Uint8Array>> {
  return (await Deno.open(packed, { read: true })).readable.pipeThrough(new DecompressionStream("gzip"));
}
