/// <reference lib="deno.worker" />
// Requests /livez continuously in a separate thread, so that the hostile client's delays do not count as the service's.
const PROBE_EVERY_MS = 50;

let url: string | null = null;

self.onmessage = ({ data }: MessageEvent<string | null>) => {
  url = data;
};

while (true) {
  const asked: string | null = url;
  if (asked !== null) {
    const started = performance.now();
    const ok: ArrayBuffer | null = await fetch(`${asked}/livez`).then((response) => response.arrayBuffer())
      .catch(() => null);
    // A server that was killed meanwhile sends no response.
    if (ok !== null && asked === url) self.postMessage(performance.now() - started);
  }
  await new Promise((resolve) => setTimeout(resolve, PROBE_EVERY_MS));
}
