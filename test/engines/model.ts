import { join } from "node:path";
import { ROOT } from "../harness/tree.ts";

/** One request as the model saw it. */
export interface ModelRequest {
  path: string;
  prompt?: string;
  system?: number;
  tools?: number;
}

/** A scripted model for agent CLIs: what a prompt says in [[…]] decides. */
export interface Model extends AsyncDisposable {
  url: string;
  requests: ModelRequest[];
  /** What a 429 looks like from here on; null: as the scripted model has it. */
  limit: ((path: string) => Response) | null;
}

interface Stub {
  url: string;
  requests: ModelRequest[];
  close: () => Promise<void>;
}

const STUB = join(ROOT, "../shared/tools/stub-model/stub.mjs");

/** Starts the scripted model, behind a door that can dress up its rate limits as providers do. */
export async function startModel(): Promise<Model> {
  const { startStub } = await import(STUB) as { startStub: (options: object) => Promise<Stub> };
  const stub = await startStub({ port: 0, quiet: true });
  const model: Model = {
    url: "",
    requests: stub.requests,
    limit: null,
    async [Symbol.asyncDispose]() {
      await door.shutdown();
      await stub.close();
    },
  };
  const door = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, async (request) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers, body } = request;
    const response = await fetch(stub.url + pathname + search, { method, headers, body, redirect: "manual" });
    if (response.status !== 429 || model.limit === null) return response;
    await response.body?.cancel();
    return model.limit(pathname);
  });
  model.url = `http://127.0.0.1:${door.addr.port}`;
  return model;
}
