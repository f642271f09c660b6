import { join } from "node:path";
import { expect, it } from "vitest";
import { World } from "../../harness/model/scenario.ts";
import { waitUntil } from "../../harness/wait.ts";
import { findFreePort } from "../../harness/service/port.ts";

const NGINX = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/bin/nginx"].find((path) => {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
});

/** Starts nginx with a cache in front of a server, as in docs/how-to/use-a-proxy-with-tls.md. */
async function startProxy(folder: string, upstream: string): Promise<{ url: string } & AsyncDisposable> {
  const port = findFreePort();
  const config = join(folder, "nginx.conf");
  await Deno.writeTextFile(
    config,
    `daemon off; worker_processes 1; pid ${folder}/pid; error_log ${folder}/error.log;
    ${Deno.uid() === 0 ? "user root;" : ""}
    events { worker_connections 64; }
    http {
      access_log off;
      proxy_cache_path ${folder}/cache keys_zone=all:1m;
      proxy_temp_path ${folder}/temp; client_body_temp_path ${folder}/body; fastcgi_temp_path ${folder}/f;
      uwsgi_temp_path ${folder}/u; scgi_temp_path ${folder}/s;
      server {
        listen 127.0.0.1:${port};
        location / {
          proxy_pass ${upstream};
          proxy_set_header Host $proxy_host;
          proxy_cache all;
          proxy_cache_key $request_uri;
          add_header X-Cache $upstream_cache_status always;
        }
      }
    }`,
  );
  const child = new Deno.Command(NGINX ?? "", { args: ["-p", folder, "-c", config], stderr: "null" }).spawn();
  const url = `http://127.0.0.1:${port}`;
  const answers = async () => (await fetch(`${url}/livez`).then((answer) => answer.text(), () => "")) !== "";
  await waitUntil("nginx answers", answers);
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await child.status;
    },
  };
}

it.skipIf(NGINX === undefined)(
  "a caching proxy returns a finished log again to its reader, and to no other client [SEC-4]",
  async () => {
    await using world = await World.serve();
    const { server, api } = world;
    const ada = await api.call("POST /api/workers", { name: "Ada" });
    const eve = await api.call("POST /api/workers", { name: "Eve" });
    const give = (worker_id: string, instruction: string) =>
      api.call("POST /api/tasks", { message_id: "m", worker_id, instruction, type: "immediate" });
    const { id } = await give(ada.id, "say the-secret-of-ada");
    const task = await api.call(`GET /api/tasks/${id}/wait?timeout_ms=10000`);
    const tokenFile = world.path("token");
    await give(eve.id, `show-token-and-stay ${tokenFile}`);
    const tokenOf = () => Deno.readTextFile(tokenFile).then((text) => text.trim(), () => "");
    await waitUntil("Eve has a token", async () => await tokenOf() !== "");
    const evil = await tokenOf();

    const proxyFolder = world.path("proxy");
    await Deno.mkdir(proxyFolder);
    await using proxy = await startProxy(proxyFolder, server.url);
    const path = `/api/executions/${task.execution_id}/logs`;
    const get = async (by: string | null, query = "") => {
      const headers: Record<string, string> = by === null ? {} : { authorization: `Bearer ${by}` };
      const answer = await fetch(proxy.url + path + query, { headers });
      const text = await answer.text();
      return [answer.status, answer.headers.get("x-cache"), text.includes("the-secret-of-ada")];
    };
    expect(await get(api.token)).toEqual([200, "MISS", true]);
    expect(await get(api.token)).toEqual([200, "HIT", true]);
    expect(await get(evil)).toEqual([403, "MISS", false]);
    expect(await get("x")).toEqual([401, "MISS", false]);
    expect(await get(null)).toEqual([401, "MISS", false]);
    expect(await get(null, `?token=${api.token}`)).toEqual([200, "MISS", true]);
    expect(await get(null, `?token=${api.token}`)).toEqual([200, "HIT", true]);
    expect(await get(null, `?token=${evil}`)).toEqual([403, "MISS", false]);
    // A refused request must not fill the cache, and errors are not stored.
    expect(await get(evil)).toEqual([403, "MISS", false]);
    expect(await get(api.token)).toEqual([200, "HIT", true]);
  },
);
